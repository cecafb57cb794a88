"""How is a thing shown? JSON shapes, pages, the terminal, and what is told while an agent works."""
