"""How are old records kept? Sealed Parquet files, their states and checkpoints, and erasure in them."""
