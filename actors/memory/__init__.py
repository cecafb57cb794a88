"""What does an agent remember? Core memory, shared blocks, recall, the archive and its documents."""
