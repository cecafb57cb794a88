"""Decide who speaks next in a group of agents, from the group's log alone."""
