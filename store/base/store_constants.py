"""Every limit of the store, with its unit last in the name; relations between limits are checked at import."""

FORMAT_VERSION = 1
"""Version of the directory, manifest and frame formats. A store with a higher one is refused."""

NAME_BYTES_MAX = 255
"""Longest agent name, UTF-8 bytes of its NFC form, inclusive."""

SHARDS_MAX = 999
"""Most partitions of a store that agents share, inclusive; what it has is fixed when it is made."""

APPEND_BYTES_MAX = 64 * 1024 * 1024
"""Largest commit: text and payload of its drafts together, inclusive."""

FRAME_BYTES_MAX = 256 * 1024 * 1024
"""Largest frame body; a longer length field in a header is nonsense."""

GROUP_APPENDS_MAX = 4096
"""Appends that may wait for one group commit; further ones are refused until it is done."""

GROUP_BYTES_MAX = 64 * 1024 * 1024
"""Text and payload in one group; what is beyond waits for the next one."""

SEGMENT_BYTES_MAX = 64 * 1024 * 1024
"""An open segment that has grown to this size is closed and a new one begun."""

SEAL_BYTES_MIN = 1024 * 1024
"""Frames of this size are worth sealing when a log is opened or closed; `FileLog.seal` seals any."""

MERGED_BYTES_MAX = 128 * 1024 * 1024
"""Text and payload in one sealed file, as far as compaction goes."""

MERGE_RATIO = 2
"""A sealed file is compacted with what comes after it unless it has more than this many times as many records."""

ROW_GROUP_ROWS = 16_384
"""Rows that are read, and checked, together."""

ROW_GROUP_BYTES = 16 * 1024 * 1024
"""Uncompressed bytes that are read together, about: where rows are large, there are fewer in a group."""

CHECKPOINT_RECORDS = 4096
"""Records of one agent in a sealed file between two states of it; at most twice as many are read for any moment."""

MARK_RECORDS = 1024
"""Records of one agent in a sealed file between two of its chain values that the manifest has."""

STATE_GROUP_BYTES = 256 * 1024
"""The same for states, of which one agent's are read at a time, when it is activated."""

FOOTERS_MAX = 16
"""Parquet files of which the owner of a partition keeps the footer in memory."""

PAGE_BYTES = 8 * 1024 * 1024
"""Uncompressed bytes of a Parquet page: large ones compress better, and a row group is read whole anyway."""

ZSTD_LEVEL = 12
"""How hard sealed files are compressed, 1 to 22."""

STATE_ZSTD_LEVEL = 3
"""The same for states, which are written anew by every sealing: 6 % larger than at 12, for a fifth of the work."""

EXPORT_VERSION = 1
"""Version of the file of an export. One with a higher version is refused."""

EXPORT_ZSTD_LEVEL = 6
"""How hard an export is compressed: it is written once, and somebody waits for it."""

RESTORE_COMMITS = 2048
"""Commits that are restored with one sync, at most."""

RESTORE_CHARS = 8 * 1024 * 1024
"""Characters of text and payload that are restored with one sync, about: one group commit, whatever they are."""

ID_MEMORY_S = 24 * 60 * 60
"""How long an event id is remembered after the segment that holds it was closed, in seconds."""

assert RESTORE_COMMITS + 1 < GROUP_APPENDS_MAX
assert 4 * RESTORE_CHARS <= GROUP_BYTES_MAX // 2
EXPORT_GROUP_BYTES_MAX = 4 * ROW_GROUP_BYTES + FRAME_BYTES_MAX // 2 + 8 * 1024 * 1024
"""Uncompressed bytes of a row group of an export: what waits for one more commit, and the largest commit."""

assert APPEND_BYTES_MAX <= GROUP_BYTES_MAX < FRAME_BYTES_MAX
