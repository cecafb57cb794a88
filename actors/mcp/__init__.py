"""Servers that lend functions to agents by the Model Context Protocol: which there are, what they offer, and calls."""
