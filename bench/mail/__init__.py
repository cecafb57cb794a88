"""Costs of messages between agents, beside plain talk."""
