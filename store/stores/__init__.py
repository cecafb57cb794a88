"""What is a whole store? In a folder, in memory, and on which file systems."""
