"""Editor of one entry on a terminal: its keys, history and completion."""
