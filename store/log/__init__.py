"""Writing, reading, recovering and following one log."""
