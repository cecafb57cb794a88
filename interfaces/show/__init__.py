"""Commands that read and write nothing."""
