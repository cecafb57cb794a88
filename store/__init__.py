"""WHERE IT IS KEPT: the log of events, and the only room that touches the disk.

`contract` says what every log promises (P1 to P10), `FileStore` keeps them in a folder, `MemoryStore` in memory. A
partition is a folder with one writer; it holds frames of commits, a manifest that names its files, and epochs that say
who owns it. Clock and ids are arguments.
"""

from .arrow import SCHEMA, batch_of, records_of
from .check import Report, check
from .constants import (
    APPEND_BYTES_MAX,
    FORMAT_VERSION,
    FRAME_BYTES_MAX,
    GROUP_APPENDS_MAX,
    GROUP_BYTES_MAX,
    ID_MEMORY_S,
    NAME_BYTES_MAX,
    SEGMENT_BYTES_MAX,
)
from .contract import Append, Commit, Head, Log, LogReader, Store
from .disk import Disk, DiskFile, RealDisk
from .filelog import FileLog
from .filestore import FileStore
from .memory import MemoryLog, MemoryReader, MemoryStore
from .names import name_of, partition_of
from .partition import Partition
from .reader import Damage, Reader

__all__ = [
    "APPEND_BYTES_MAX",
    "FORMAT_VERSION",
    "FRAME_BYTES_MAX",
    "GROUP_APPENDS_MAX",
    "GROUP_BYTES_MAX",
    "ID_MEMORY_S",
    "NAME_BYTES_MAX",
    "SCHEMA",
    "SEGMENT_BYTES_MAX",
    "Append",
    "Commit",
    "Damage",
    "Disk",
    "DiskFile",
    "FileLog",
    "FileStore",
    "Head",
    "Log",
    "LogReader",
    "MemoryLog",
    "MemoryReader",
    "MemoryStore",
    "Partition",
    "Reader",
    "RealDisk",
    "Report",
    "Store",
    "batch_of",
    "check",
    "name_of",
    "partition_of",
    "records_of",
]
