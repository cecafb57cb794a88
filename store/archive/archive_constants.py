"""Every limit and weight of the archive, with its unit last in the name where it has one."""

MEANING = 0.5
"""How much meaning counts in the order of results, 0 to 1; words count for the rest."""
NEAREST = 100
"""Rows that are found by meaning alone, at most: those with a word of the query are found all."""
MEANING_MIN = 0.2
"""Cosine from which on a row without a word of the query is found by meaning."""
MEANING_DIGITS = 5
"""Digits of a cosine that count: the last bits depend on how a sum was ordered."""
RECALL_MAX = 5_000
"""Messages of which `meanings` tells, at most: the nearest."""

CHUNK_CHARS = 1_000
"""A longer text is cut into parts of at most this, inclusive."""
CHUNKER = 1
"""Version of how texts are cut and of what is a word: kept with a table, which another one must not serve."""

BATCH_RECORDS = 20_000
"""Records that are read before rows are written, about: a commit is never divided."""
EMBED_TEXTS = 2_000
"""Texts that the embedder is given at once; what it gave is kept before the next."""
COMPACT_ROWS = 50_000
"""Rows written since the table was last compacted, from which on it is compacted again."""
COMPACT_WRITES = 64
"""The same for writes, each of which leaves a file..."""
COMPACT_ROWS_A_WRITE = 2_000
"""... and a write more for so many rows: a compaction may write all of them anew."""
OLD_VERSIONS_S = 600
"""Seconds that other processes may go on reading a version of the table after it was replaced."""
REBUILD_ROWS = 20_000
"""Rows that a rebuild writes at once."""
SHELF_BYTES_MAX = 512 * 1024 * 1024
"""Memory for what was searched lately: rows and vectors of agents and sources."""

assert CHUNK_CHARS > 100
assert 0 <= MEANING <= 1
