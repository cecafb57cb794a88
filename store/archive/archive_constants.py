"""Limits and weights of the archive, each with its unit, if it has one, last in the name.

Used by the files of this folder. A change of splitting, tokenizing or stemming needs a new `CHUNKER`, because the words
that they made are stored.
"""

MEANING = 0.5
"""Weight of meaning in the order of results, 0 to 1; the weight of words is the rest."""
COVERED_MIN = 0.35
"""Part of a query's words, each by its rarity, that a row must have for its words to count fully."""
NEAREST = 100
"""Number of rows found by meaning alone, at most; rows with a word of the query are always found. There is no smallest
cosine: what answers a question may be as far from it as 0.1, and the order says what is nearest.
"""
MEANING_DIGITS = 5
"""Decimal digits of a cosine that are used: the last bits depend on the order of a sum."""

PASSAGE_RULES = 1
"""Version of the rules by which a message becomes passages, stored with their vectors. Vectors of another version are
made again.
"""
EMBED_PASSAGES = 250
"""Number of passages that the embedder gets at once, approximately; their vectors are kept before the next. Between two
batches a process that closes stops.
"""
MESSAGE_CACHE_BYTES_MAX = 16 * 1024 * 1024
"""Memory for vectors of messages, in each process that searches: 16,000 passages of 256 numbers. The agent that was
searched last has its vectors in memory, whatever they take. Those of any other are read from the file by its next
search, which takes 0.3 ms for 150 messages, and 4 ms for 3,000.
"""

CHUNKER = 3
"""Version of splitting, of tokenizing and of the set of rows, stored with a table. A table of an older version is built
again by the next `follow`, one of a newer version is refused. Since 2 a table has no rows for messages; since 3 a word
has the stem of its text's language, and scripts without spaces become pairs of characters.
"""

BATCH_RECORDS = 20_000
"""Records that are read before rows are written, approximately: a commit is never divided."""
EMBED_TEXTS = 2_000
"""Number of texts that the embedder gets at once; their vectors are cached before the next."""
COMPACT_ROWS = 50_000
"""Number of rows written since the last compaction that makes another compaction due."""
COMPACT_WRITES = 64
"""Number of writes that makes a compaction due, because each write leaves a file ..."""
COMPACT_ROWS_A_WRITE = 2_000
"""... plus one write for each so many rows, because a compaction may write all rows again ..."""
COMPACT_WRITES_MAX = 256
"""... up to this number: a table has at most so many versions since its last compaction, however many rows it has."""
VERSIONS_KEPT = 16
"""Number of newest versions that a compaction leaves; another process that reads an older one reads again."""
REST_VERSIONS_MAX = 8
"""Number of versions above which an archive at rest compacts its table, and then keeps only the newest."""
REBUILD_ROWS = 20_000
"""Number of rows that a rebuild writes at once."""
LARGE_ROWS = 25_000
"""Rows of one agent or source above which LanceDB's indices search them. Up to it they are in memory while they are
searched, which is faster and exact; at it they take up to 175 MB.
"""
WORD_ROWS = 1_000
"""Rows with the highest BM25 of the full-text index that are ranked, at least, of a large agent or source."""
PHRASE_ROWS = 1_000
"""Rows of a large agent or source that are looked through for a phrase, at most."""
FARTHEST = -0.05
"""Cosine that counts as no similarity at all; a fixed one, so that no unrelated row changes the order of others."""
ROW_CACHE_BYTES_MAX = 256 * 1024 * 1024
"""Memory for row caches: rows and vectors of recently searched agents and sources.

About as much as the archive's process takes besides (LanceDB, the embedder, TABLE_CACHE_BYTES_MAX). It holds ten agents
with 10,000 memories each, or some thousand with 100; the rows of any other agent are read again in 0.1 to 0.3 seconds.
"""
TABLE_CACHE_BYTES_MAX = 16 * 1024 * 1024
"""Memory of each of LanceDB's two caches, of indices and of metadata, for each connection.

LanceDB's own limits are 6 and 1 GiB, and entries of removed versions stay until a limit is reached. Row caches answer
searches, so these caches hold only what following and the first search of an agent look up.
"""

assert 0 <= MEANING <= 1
