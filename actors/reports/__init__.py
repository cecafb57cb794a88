"""How is the fleet? Questions to all agents at once, figures, exports."""
