"""Commands that bring agents and conversations into a store, and take them out of it, as files."""
