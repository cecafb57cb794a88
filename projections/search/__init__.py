"""Ranked search in what was said: an index of one agent's talk in memory, and what makes a result and its score."""
