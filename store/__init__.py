"""WHERE IT IS KEPT: the log of events, and the only room that touches the disk.

`contract` says what every log promises, `FileStore` keeps them in a folder, `MemoryStore` in memory. A
partition is a folder with one writer; it holds frames of commits, Parquet files that these are sealed into, a manifest
that names its files, and epochs that say who owns it. Clock and ids are arguments.
"""

from .arrow import SCHEMA, batch_of, events_of, records_of
from .backup import export
from .beside import Stamp, mapped, read_whole, stamp_of, write_whole
from .blocks import BLOCK_PREFIX, block_of, is_agent, is_block, refuse_reserved, stream_of_block
from .check import Report, check
from .checkforks import check_forks
from .checkmoves import check_moves
from .constants import (
    APPEND_BYTES_MAX,
    FORMAT_VERSION,
    FRAME_BYTES_MAX,
    GROUP_APPENDS_MAX,
    GROUP_BYTES_MAX,
    ID_MEMORY_S,
    NAME_BYTES_MAX,
    SEAL_BYTES_MIN,
    SEGMENT_BYTES_MAX,
    SHARDS_MAX,
)
from .contract import Append, Commit, Derive, Head, Log, LogReader, Progress, Sealed, State, States, Store
from .disk import Disk, DiskFile, RealDisk
from .exports import Contents, Exported, Restoration, Restored
from .figured import FIGURES
from .filelog import FileLog
from .filestore import FileStore
from .memory import MemoryLog, MemoryReader, MemoryStore
from .mounts import Sight, caveat, refuse_apart, refuse_unsafe, seen_by
from .names import is_shared, name_of, partition_of, shard_of
from .partition import Partition
from .reader import Damage, Reader
from .snapshot import LeftOut, Part, Snapshot, snapshot
from .sources import SOURCE_PREFIX, is_source, source_of, stream_of
from .stats import Stats, stats

__all__ = [
    "APPEND_BYTES_MAX",
    "BLOCK_PREFIX",
    "FIGURES",
    "FORMAT_VERSION",
    "FRAME_BYTES_MAX",
    "GROUP_APPENDS_MAX",
    "GROUP_BYTES_MAX",
    "ID_MEMORY_S",
    "NAME_BYTES_MAX",
    "SCHEMA",
    "SEAL_BYTES_MIN",
    "SEGMENT_BYTES_MAX",
    "SHARDS_MAX",
    "SOURCE_PREFIX",
    "Append",
    "Commit",
    "Contents",
    "Damage",
    "Derive",
    "Disk",
    "DiskFile",
    "Exported",
    "FileLog",
    "FileStore",
    "Head",
    "LeftOut",
    "Log",
    "LogReader",
    "MemoryLog",
    "MemoryReader",
    "MemoryStore",
    "Part",
    "Partition",
    "Progress",
    "Reader",
    "RealDisk",
    "Report",
    "Restoration",
    "Restored",
    "Sealed",
    "Sight",
    "Snapshot",
    "Stamp",
    "State",
    "States",
    "Stats",
    "Store",
    "batch_of",
    "block_of",
    "caveat",
    "check",
    "check_forks",
    "check_moves",
    "events_of",
    "export",
    "is_agent",
    "is_block",
    "is_shared",
    "is_source",
    "mapped",
    "name_of",
    "partition_of",
    "read_whole",
    "records_of",
    "refuse_apart",
    "refuse_reserved",
    "refuse_unsafe",
    "seen_by",
    "shard_of",
    "snapshot",
    "source_of",
    "stamp_of",
    "stats",
    "stream_of",
    "stream_of_block",
    "write_whole",
]
