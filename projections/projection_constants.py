"""Limits of the projections, with the unit last in the name.

Used by the files of this folder. Raise `STATE_VERSION` when states change their meaning: stored states of the old
version are then ignored.
"""

HEAD = 2**63 - 2
"""`as_of` for "now": above every seq, below the `ended` of records in the current incarnation."""

MEMORY_MB = 512
"""Maximum memory in MB of one DuckDB, before it writes to its temporary directory."""

THREADS = 1
"""Threads of one DuckDB: a host has many agents and few cores, so each engine gets one thread."""

BATCH_BYTES = 64 * 1024 * 1024
"""Maximum bytes of text and payload of agents whose states are derived in one engine; one agent alone may have more."""

STATE_VERSION = 1
"""Version of the states. Raise it when states change their meaning although no SQL file and no event has changed."""

TALK_BYTES_MAX = 128 * 1024 * 1024
"""Memory for the talk of searched agents, in each engine: about 200,000 messages of 140 characters. Those of the agent
that was searched last are kept, whatever they take.
"""

CONTEXTS_BYTES_MAX = 96 * 1024 * 1024
"""Memory for the contexts of agents at work, in each engine: some 1,000 of 50 messages. A host at rest keeps none."""

MEMORIES_BYTES_MAX = 32 * 1024 * 1024
"""Memory for the memories of agents that have few, in each engine."""

HISTORY_BYTES_MAX = 16 * 1024 * 1024
"""Maximum bytes of records since the states of a shard's agents that its engine keeps: above it, agents are shrunk to
their states, and a question about their past reads the log again.
"""

SHRUNK_AT_ONCE = 64
"""Maximum agents that are shrunk to their states at once, inclusive: of each time 50 ms, and 0.6 ms for each agent."""

LOGGED_RECORDS_AT_ONCE = 32_768
"""Maximum records, inclusive, of several agents whose logs are read together for a search: some 30 MB."""

FEW_RECORDS = 2048
"""Maximum number of records, inclusive, that are inserted by a plan made once: more are read faster from Arrow."""

PENDING_RECORDS_MAX = 512
"""Maximum number of records that wait for the next query before they are inserted."""

PENDING_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of records that wait, from which on they are inserted: one record may have 16 MiB."""

FEW_AGENTS = 32
"""Maximum agents in one query, inclusive, for which their rows are selected first, and fetched one by one."""

MANY_AGENTS = 128
"""Number of agents in one engine from which on selecting the rows of a few first is faster."""

COMPACT_ROWS_MIN = 8192
"""Minimum number of added and dropped rows after which an engine is compacted. A larger engine waits for as many
changes as it had rows.
"""

FLEET_MEMORY_MB = 2048
"""Maximum memory in MB of one query over the whole fleet, before it writes to its temporary folder."""

FLEET_SCRATCH_MB = 8192
"""Maximum MB that a query over the whole fleet writes to its temporary folder."""

HOT_OPTIMIZERS = frozenset(
    {"build_side_probe_side", "cte_inlining", "deliminator", "filter_pushdown", "unnest_rewriter", "unused_columns"}
)
"""Optimizers that make the agent's own queries faster. The others take 0.8 ms for each query, and gain nothing over a
window of records.
"""

OF_A_STATE = frozenset(
    {
        "configurations", "context_records", "context_window", "core_memory", "memory_pressure",
        "open_turns",
        "sources", "standing", "timers", "turn_records", "unfinished_messages", "waking",
    }
)  # fmt: skip
"""Projections that can be computed as of now from a state. All others read all records of the agent."""
