"""Build the context that the model sees, render the system prompt, and fit both into the window."""
