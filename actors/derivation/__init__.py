"""Conclude memories from what was said: facts, insights and plans, by rules or by a model. Nothing here writes a log."""
