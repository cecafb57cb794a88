"""A page for every error type, as data, and the command that prints the pages."""
