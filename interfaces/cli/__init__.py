"""The command line: its parser, its arguments, and one run of a command."""
