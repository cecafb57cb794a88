"""Runs as every surface of the server sees them: what comes out of one, and how a reader joins one that is at work."""
