"""Agents of other programs that agents may ask, by the A2A protocol: the operator's file of them, and calls."""
