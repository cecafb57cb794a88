"""Output of commands: JSON shapes, pages, the terminal, and the notices that people get while an agent works."""
