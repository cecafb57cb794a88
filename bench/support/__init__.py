"""What several benchmarks share: harness, rigs, peers, history."""
