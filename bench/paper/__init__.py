"""Benchmarks of the tasks in the MemGPT paper."""
