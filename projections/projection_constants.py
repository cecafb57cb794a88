"""Limits of the projections, with their unit last in the name."""

MEMORY_MB = 512
"""Memory that one DuckDB may use before it writes to its temporary directory."""

THREADS = 1
"""Threads of one DuckDB: a host has many agents and few cores, so one each."""

BATCH_BYTES = 64 * 1024 * 1024
"""Text and payload of the agents whose states are derived in one engine; one agent may have more."""

STATE_VERSION = 1
"""Raised when states come to mean something else though no SQL file and no event has changed."""

FEW_AGENTS = 32
"""Up to so many agents in one query, inclusive, their rows are picked out first, and fetched one by one."""

MANY_AGENTS = 128
"""Agents in one engine, from which on it pays to pick out the rows of a few."""

COMPACT_ROWS_MIN = 8192
"""Changed rows, added or dropped, after which an engine is worth compacting; above it, as many as it had left."""

FLEET_MEMORY_MB = 2048
"""Memory that one query over the whole fleet may use before it writes to its temporary folder."""

FLEET_SCRATCH_MB = 8192
"""What a query over the whole fleet may write to its temporary folder."""

HOT_OPTIMIZERS = frozenset(
    {"build_side_probe_side", "cte_inlining", "deliminator", "filter_pushdown", "unnest_rewriter", "unused_columns"}
)
"""What the agent's own queries gain from. The others cost 0.8 ms a query and gain nothing over a window of records."""

OF_A_STATE = frozenset(
    {
        "configurations", "context_window", "core_memory", "memory_pressure", "open_turns", "sources", "standing",
        "timers", "turn_records", "waking",
    }
)  # fmt: skip
"""Projections whose rows of now a state is enough for. Any other reads all records, however long ago."""
