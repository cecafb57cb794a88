"""Keep the hot table of an engine up to date, and what is planned, parsed and read once for it."""
