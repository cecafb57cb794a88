"""Effects of an agent (models, clocks, ids) as protocols, and the one file with the real clock and ids."""
