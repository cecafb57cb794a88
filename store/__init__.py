"""WHERE IT IS KEPT: the log of events, and the only room that touches the disk.

`contract` says what every log promises, `FileStore` keeps them in a folder, `MemoryStore` in memory. A
partition is a folder with one writer; it holds frames of commits, Parquet files that these are sealed into, a manifest
that names its files, and epochs that say who owns it. Clock and ids are arguments.
"""

from everlog.store.backup.backup import export
from everlog.store.base.arrow import SCHEMA, batch_of, events_of, records_of
from everlog.store.base.beside import FileStamp, mapped, read_whole, stamp_of, write_whole
from everlog.store.base.blocks import BLOCK_PREFIX, block_of, is_agent, is_block, refuse_reserved, stream_of_block
from everlog.store.base.constants import (
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
from everlog.store.base.contract import (
    Append,
    Commit,
    Head,
    Log,
    LogReader,
    Progress,
    SealReport,
    State,
    StateDeriver,
    States,
    Store,
)
from everlog.store.base.disk import Disk, DiskFile, RealDisk
from everlog.store.base.exports import ExportedStream, ExportHeader, RestoredStream, RestoreReport
from everlog.store.base.names import is_shared, name_of, partition_of, shard_of
from everlog.store.base.sources import SOURCE_PREFIX, is_source, source_of, stream_of
from everlog.store.check.check import CheckReport, check
from everlog.store.check.checkforks import check_forks
from everlog.store.check.checkmoves import check_moves
from everlog.store.check.snapshot import PartitionPosition, SkippedPartition, Snapshot, snapshot
from everlog.store.check.stats import PartitionStats, stats
from everlog.store.log.filelog import FileLog
from everlog.store.log.reader import PartitionReader, TornTail
from everlog.store.partition.partition import Partition
from everlog.store.sealed.figured import FIGURES
from everlog.store.stores.filestore import FileStore
from everlog.store.stores.memory import MemoryLog, MemoryReader, MemoryStore
from everlog.store.stores.mounts import StoreIdentity, caveat, refuse_apart, refuse_unsafe, seen_by

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
    "CheckReport",
    "Commit",
    "Disk",
    "DiskFile",
    "ExportHeader",
    "ExportedStream",
    "FileLog",
    "FileStamp",
    "FileStore",
    "Head",
    "Log",
    "LogReader",
    "MemoryLog",
    "MemoryReader",
    "MemoryStore",
    "Partition",
    "PartitionPosition",
    "PartitionReader",
    "PartitionStats",
    "Progress",
    "RealDisk",
    "RestoreReport",
    "RestoredStream",
    "SealReport",
    "SkippedPartition",
    "Snapshot",
    "State",
    "StateDeriver",
    "States",
    "Store",
    "StoreIdentity",
    "TornTail",
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
