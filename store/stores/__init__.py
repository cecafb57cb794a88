"""Whole stores: in a folder, in memory, and checks of the file systems under them."""
