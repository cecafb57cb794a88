"""Deliver the messages of an agent to others from its log, and take those of others."""
