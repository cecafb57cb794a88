"""How does a person talk to an agent? Commands that run turns."""
