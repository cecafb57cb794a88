"""What if? A fork that is given the same inputs again, with another model, prompt or memory."""
