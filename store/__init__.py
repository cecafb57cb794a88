"""WHERE IT IS KEPT: the log of events, and the only room that touches the disk.

`contract` says what every log promises, `FileStore` keeps them in a folder, `MemoryStore` in memory. A
partition is a folder with one writer; it holds frames of commits, Parquet files that these are sealed into, a manifest
that names its files, and epochs that say who owns it. Clock and ids are arguments.
"""

from everlog.store.backup.export_agent import export
from everlog.store.base.archive_query import ArchiveQuery, MeaningQuery, SaidMessages
from everlog.store.base.arrow_schema import SCHEMA, batch_of, events_of, records_of
from everlog.store.base.block_streams import (
    BLOCK_PREFIX,
    block_of,
    check_not_reserved,
    is_agent,
    is_block,
    stream_of_block,
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
from everlog.store.base.export_types import ExportedStream, ExportHeader, RestoredStream, RestoreReport
from everlog.store.base.generations import bare_name, generation_of, names_generation
from everlog.store.base.memory_disk import MemoryDisk
from everlog.store.base.names import (
    check_new_name,
    folder_of,
    is_bucket_url,
    is_shared,
    name_of,
    partition_of,
    shard_name,
    shard_of,
    store_address,
    store_folder,
    typed,
    url_of,
)
from everlog.store.base.permissions import exposure, open_appending, open_private, restrict_process
from everlog.store.base.source_streams import SOURCE_PREFIX, is_source, source_of, stream_of
from everlog.store.base.store_constants import (
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
from everlog.store.check.check_partition import CheckReport, check
from everlog.store.check.check_register import RegisterReport, check_presence, check_register
from everlog.store.check.check_streams import check_forks, check_moves
from everlog.store.check.partition_stats import PartitionStats, stats
from everlog.store.check.snapshot import FleetPosition, PartitionPosition, SkippedPartition, Snapshot, snapshot
from everlog.store.log.file_log import FileLog
from everlog.store.log.partition_reader import PartitionReader, TornTail
from everlog.store.log.partition_recovery import has_strays
from everlog.store.partition.epoch import HostMark
from everlog.store.partition.partition import Partition
from everlog.store.sealed.derived_columns import FIGURES
from everlog.store.sealed.parquet_file import keeping_decoded_groups
from everlog.store.sealed.rare_kinds import RARE_KINDS
from everlog.store.sealed.seal_pass import seal_if_due
from everlog.store.stores.file_store import CONFIGURATION, FileStore, check_forgets
from everlog.store.stores.memory_store import MemoryLog, MemoryReader, MemoryStore
from everlog.store.stores.mounts import StoreIdentity, check_one_store, check_storage, storage_warning, store_identity
from everlog.store.stores.side_files import (
    FileStamp,
    change_whole,
    create_whole,
    mapped,
    names_beside,
    read_whole,
    remove_whole,
    stamp_of,
    write_whole,
)
from everlog.store.stores.typed_history import forget_typed, keep_typed, typed_before, typed_path
from everlog.store.streams.moved_reader import repeated_elsewhere
from everlog.store.streams.shard_numbers import first_shards

__all__ = [
    "APPEND_BYTES_MAX",
    "BLOCK_PREFIX",
    "CONFIGURATION",
    "FIGURES",
    "FORMAT_VERSION",
    "FRAME_BYTES_MAX",
    "GROUP_APPENDS_MAX",
    "GROUP_BYTES_MAX",
    "ID_MEMORY_S",
    "NAME_BYTES_MAX",
    "RARE_KINDS",
    "SCHEMA",
    "SEAL_BYTES_MIN",
    "SEGMENT_BYTES_MAX",
    "SHARDS_MAX",
    "SOURCE_PREFIX",
    "Append",
    "ArchiveQuery",
    "CheckReport",
    "Commit",
    "Disk",
    "DiskFile",
    "ExportHeader",
    "ExportedStream",
    "FileLog",
    "FileStamp",
    "FileStore",
    "FleetPosition",
    "Head",
    "HostMark",
    "Log",
    "LogReader",
    "MeaningQuery",
    "MemoryDisk",
    "MemoryLog",
    "MemoryReader",
    "MemoryStore",
    "Partition",
    "PartitionPosition",
    "PartitionReader",
    "PartitionStats",
    "Progress",
    "RealDisk",
    "RegisterReport",
    "RestoreReport",
    "RestoredStream",
    "SaidMessages",
    "SealReport",
    "SkippedPartition",
    "Snapshot",
    "State",
    "StateDeriver",
    "States",
    "Store",
    "StoreIdentity",
    "TornTail",
    "bare_name",
    "batch_of",
    "block_of",
    "change_whole",
    "check",
    "check_forgets",
    "check_forks",
    "check_moves",
    "check_new_name",
    "check_not_reserved",
    "check_one_store",
    "check_presence",
    "check_register",
    "check_storage",
    "create_whole",
    "events_of",
    "export",
    "exposure",
    "first_shards",
    "folder_of",
    "forget_typed",
    "generation_of",
    "has_strays",
    "is_agent",
    "is_block",
    "is_bucket_url",
    "is_shared",
    "is_source",
    "keep_typed",
    "keeping_decoded_groups",
    "mapped",
    "name_of",
    "names_beside",
    "names_generation",
    "open_appending",
    "open_private",
    "partition_of",
    "read_whole",
    "records_of",
    "remove_whole",
    "repeated_elsewhere",
    "restrict_process",
    "seal_if_due",
    "shard_name",
    "shard_of",
    "snapshot",
    "source_of",
    "stamp_of",
    "stats",
    "storage_warning",
    "store_address",
    "store_folder",
    "store_identity",
    "stream_of",
    "stream_of_block",
    "typed",
    "typed_before",
    "typed_path",
    "url_of",
    "write_whole",
]
