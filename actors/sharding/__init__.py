"""Move agents between the shards of a store while they run."""
