"""Shared parts of benchmarks: harness, rigs, peers, history."""
