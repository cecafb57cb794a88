"""Derive memories of an open agent: by command, and while it is idle."""
