"""Checks, statistics, and one consistent position of all logs."""
