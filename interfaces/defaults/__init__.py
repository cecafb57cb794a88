"""Defaults of options: their files, the environment variables, and the log of the program."""
