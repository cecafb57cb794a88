"""Limits and weights of the archive, each with its unit, if it has one, last in the name.

Used by the files of this folder. A change of splitting, tokenizing or stemming needs a new `CHUNKER`, because the words
that they made are stored.
"""

MEANING = 0.5
"""Weight of meaning in the order of results, 0 to 1; the weight of words is the rest."""
NEAREST = 100
"""Number of rows found by meaning alone, at most; rows with a word of the query are always found."""
MEANING_MIN = 0.2
"""Smallest cosine at which a row without a word of the query is found by meaning."""
MEANING_DIGITS = 5
"""Decimal digits of a cosine that are used: the last bits depend on the order of a sum."""
RECALL_MAX = 5_000
"""Number of messages that `meanings` returns, at most: the nearest."""

CHUNK_CHARS = 1_000
"""Length above which a text is split, and of each part, inclusive."""
CHUNKER = 1
"""Version of splitting and of tokenizing, stored with a table: a table of another version is not served."""

BATCH_RECORDS = 20_000
"""Records that are read before rows are written, approximately: a commit is never divided."""
EMBED_TEXTS = 2_000
"""Number of texts that the embedder gets at once; their vectors are cached before the next."""
COMPACT_ROWS = 50_000
"""Number of rows written since the last compaction that makes another compaction due."""
COMPACT_WRITES = 64
"""Number of writes that makes a compaction due, because each write leaves a file ..."""
COMPACT_ROWS_A_WRITE = 2_000
"""... plus one write for each so many rows: a compaction may write all rows again."""
OLD_VERSIONS_S = 600
"""Seconds for which other processes may still read a version of the table after it was replaced."""
REBUILD_ROWS = 20_000
"""Number of rows that a rebuild writes at once."""
ROW_CACHE_BYTES_MAX = 512 * 1024 * 1024
"""Memory for row caches: rows and vectors of recently searched agents and sources."""

assert CHUNK_CHARS > 100
assert 0 <= MEANING <= 1
