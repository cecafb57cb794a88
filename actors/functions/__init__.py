"""Functions that an agent can call: those of its memory, of its user, and those that reach outside the log."""
