"""Let the shards of a cluster follow their load."""
