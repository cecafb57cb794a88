"""Pages that answer a question about one agent or many: search, comparison, costs."""
