"""What may an agent touch? The protocols of its effects (models, clocks, ids), and the one file with the real ones."""
