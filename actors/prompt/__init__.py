"""What does the model see? The context made of records, the system prompt, and how all of it fits the window."""
