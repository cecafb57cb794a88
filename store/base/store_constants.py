"""Limits of the store, each with its unit last in the name; relations between limits are checked at import.

Used by all of `store`. A change of the format of folders, manifests or frames needs a new `FORMAT_VERSION`.
"""

from collections.abc import Mapping

FORMAT_VERSION = 1
"""Version of the directory, manifest and frame formats. A store with a higher one is refused."""

NAME_BYTES_MAX = 255
"""Longest agent name, UTF-8 bytes of its NFC form, inclusive."""

SHARDS_MAX = 999
"""Largest number of shared partitions in a store, inclusive."""

APPEND_BYTES_MAX = 64 * 1024 * 1024
"""Largest commit: text and payload of its drafts together, inclusive."""

FRAME_BYTES_MAX = 256 * 1024 * 1024
"""Largest frame body; a larger length field in a header is treated as garbage."""

GROUP_APPENDS_MAX = 4096
"""Number of appends that may wait for one group commit; further appends are refused until the group is committed."""

GROUP_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of text and payload in one group; further appends wait for the next group."""

BUCKET_GATHER_S = 0.03
"""Seconds for which appends to a log in a bucket wait for others between two commits: a request costs money. With 20 ms
a put that is 20 puts a second at most. An append that finds no commit under way is written at once.
"""

SEGMENT_BYTES_MAX = 64 * 1024 * 1024
"""Size at which an open segment is closed and a new one begun."""

SEAL_BYTES_MIN = 1024 * 1024
"""Bytes of frames that are worth sealing when a log is opened or closed; `FileLog.seal` seals any amount."""

MERGED_BYTES_MAX = 128 * 1024 * 1024
"""Bytes of text and payload in one sealed file up to which compaction merges files."""

MERGE_RATIO = 2
"""Ratio for compaction: a sealed file is merged with the files after it unless it has more than this many times their
records.
"""

ROW_GROUP_ROWS = 16_384
"""Rows that are read and checksummed together."""

ROW_GROUP_BYTES = 16 * 1024 * 1024
"""Uncompressed bytes that are read together, approximately: where rows are large, a group has fewer of them."""

CHECKPOINT_RECORDS = 4096
"""Records of one agent in a sealed file between two of its states. To view any moment, at most twice as many are
read.
"""

MARK_RECORDS = 1024
"""Records of one agent in a sealed file between two chain checkpoints, the chain values that the manifest stores."""

STATE_GROUP_BYTES = 256 * 1024
"""Uncompressed bytes of a row group of states. Small, because an activation reads the state of one agent only."""

FOOTERS_MAX = 16
"""Number of Parquet files whose footer the owner of a partition keeps in memory."""

PAGE_BYTES = 8 * 1024 * 1024
"""Uncompressed bytes of a Parquet page: large pages compress better, and a row group is read whole anyway."""

ZSTD_LEVEL = 12
"""Compression level of sealed files, 1 to 22."""

STATE_ZSTD_LEVEL = 3
"""Compression level of states, which every sealing writes again: 6 % larger than at 12, for a fifth of the work."""

EXPORT_VERSION = 1
"""Version of the export file format. An export with a higher version is refused."""

EXPORT_ZSTD_LEVEL = 6
"""Compression level of an export: it is written once, while a user waits."""

RESTORE_COMMITS = 2048
"""Largest number of commits that are restored with one sync."""

RESTORE_CHARS = 8 * 1024 * 1024
"""Characters of text and payload that are restored with one sync, approximately; one group commit can hold them in any
script.
"""

ID_MEMORY_S = 24 * 60 * 60
"""Seconds for which an event id is remembered after the segment that holds it was closed."""

assert RESTORE_COMMITS + 1 < GROUP_APPENDS_MAX
assert 4 * RESTORE_CHARS <= GROUP_BYTES_MAX // 2
EXPORT_GROUP_BYTES_MAX = 4 * ROW_GROUP_BYTES + FRAME_BYTES_MAX // 2 + 8 * 1024 * 1024
"""Uncompressed bytes of a row group of an export, at most: what waits for one more commit, and the largest commit."""

assert APPEND_BYTES_MAX <= GROUP_BYTES_MAX < FRAME_BYTES_MAX
SIDE_FILES = (
    "a2a.toml", "endpoints-found.json", "everlog.toml", "keys.json", "mcp-accepted.json", "mcp.toml", "models.toml",
)  # fmt: skip
"""Names of the side files of a store."""
SIDE_FOLDERS: Mapping[str, str | tuple[str, ...]] = {
    "conversations": ".json", "jobs": ".json", "letta": ".json", "presets/humans": ".txt", "presets/personas": ".txt",
    "webhooks": (".json", ".state"),
}  # fmt: skip
"""Folders of side files, with the endings of their names."""
CLAIMS = "claims"
"""Folder of the claims of a store in a bucket. An empty file is a claim without a holder."""
