"""Report on the whole fleet: SQL over all agents, figures, exports."""
