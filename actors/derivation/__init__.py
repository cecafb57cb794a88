"""Conclude memories from what was said: facts, insights and plans, by rules or by a model. Nothing is written here."""
