"""What can be read? Commands that write nothing."""
