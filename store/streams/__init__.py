"""Locating an agent's stream: the register, moves between partitions, and forks."""
