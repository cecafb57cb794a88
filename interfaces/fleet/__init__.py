"""Commands that start, stop and show a cluster, and a load test with many agents."""
