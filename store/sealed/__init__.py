"""Storage of old records: sealed Parquet files, their states and checkpoints, and erasure in them."""
