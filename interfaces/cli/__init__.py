"""What can be typed? The parser, its arguments, and one run of the command line."""
