"""Where is an agent's stream? The register, moves between partitions, and forks."""
