"""Benchmarks of stores in buckets, whose requests are delayed."""
