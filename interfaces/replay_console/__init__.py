"""Console of `everlog replay`, which plays back the recorded events of an agent."""
