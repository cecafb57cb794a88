"""Limits of the projections, with their unit last in the name."""

MEMORY_MB = 512
"""Memory that one DuckDB may use before it writes to its temporary directory."""

THREADS = 1
"""Threads of one DuckDB: a host has many agents and few cores, so one each."""
