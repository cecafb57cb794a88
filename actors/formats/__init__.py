"""Render requests to bytes, parse and repair replies: one renderer and parser for each calling format."""
