"""Readers of committed records: runs looked up by the id of their input, and records followed as they are written."""
