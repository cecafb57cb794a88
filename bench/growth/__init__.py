"""Benchmarks of what an agent costs as it grows."""
