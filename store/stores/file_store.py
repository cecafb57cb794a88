"""The store in a folder: `everlog.json`, the register of agents, and a partition's folder for each.

    <root>/everlog.json             format, store id, number of shards; never changes
    <root>/agents/                  who is in which partition, see `register`
    <root>/log/<partition>/         see `manifest`, `epoch` and `frame`

Opening a store for reading writes nothing.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import google_crc32c
import msgspec
import pyarrow as pa

from everlog.events import BadInput, CorruptLog, Moved, NewerFormat, StoreError, UsageError
from everlog.store.backup.restore_service import COMMAND, RestoreService
from everlog.store.base.arrow_schema import SCHEMA, batch_of
from everlog.store.base.disk import Disk, RealDisk, publish, remove_if_there, storage, understood
from everlog.store.base.export_types import ExportedStream
from everlog.store.base.names import name_of, partition_of, shard_of
from everlog.store.base.store_constants import FORMAT_VERSION, SEGMENT_BYTES_MAX, SHARDS_MAX
from everlog.store.log.file_log import FileLog
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.log.partition_recovery import RESTORING
from everlog.store.partition.partition import Partition, token
from everlog.store.streams.register import Assignment, Register

CONFIGURATION = "everlog.json"


class StoreConfiguration(msgspec.Struct, frozen=True):
    """What a store is. Written once, when it is made."""

    store_id: str
    shards: int = 0
    """Number of shared partitions; 0 for none."""
    format: int = FORMAT_VERSION
    crc32c: str = ""
    """Of the other fields, with this one empty."""


class FileStore(RestoreService):
    """All agents of one folder. See `store.Store` for what each method promises."""

    def __init__(self, root: Path, now: Callable[[], int], *, disk: Disk | None = None,
                 segment_bytes_max: int = SEGMENT_BYTES_MAX) -> None:  # fmt: skip
        """Open the store in `root`, which exists; `now` gives microseconds UTC. Raises StoreError, NewerFormat."""
        self.root = root
        super().__init__(now)
        self._disk = disk or RealDisk()
        self._segment_bytes_max = segment_bytes_max
        self._configuration = _load(self._disk, root)
        self._assignments = Register(self._disk, root)

    @classmethod
    def create(cls, root: Path, now: Callable[[], int], store_id: str, *, shards: int | None = None,
               shards_new: int = 0, disk: Disk | None = None, segment_bytes_max: int = SEGMENT_BYTES_MAX,
               ) -> "FileStore":  # fmt: skip
        """Open the store in `root`, making it first if there is none; `store_id` is for a new one, and unique.

        `shards`, 0 to `SHARDS_MAX` inclusive, is how many partitions a new one has for agents that share them (None:
        `shards_new`). For good: BadInput if it is asked for and is not what the store has; None takes what it has.
        """
        if shards is not None and not 0 <= shards <= SHARDS_MAX:
            raise BadInput(f"a store has 0 to {SHARDS_MAX} shared partitions, not {shards}")
        disk = disk or RealDisk()
        path = root / CONFIGURATION
        with storage("make a store in", root):
            if not disk.exists(path):
                disk.make_dirs(root)
                _refuse_orphans(disk, root)
                configuration = StoreConfiguration(store_id, shards_new if shards is None else shards)
                content = msgspec.json.format(msgspec.json.encode(_signed(configuration)))
                file = publish(disk, path, content, token())
                if file is not None:
                    file.close()
            disk.sync_dir(root)  # whoever made it may have died before it was durable
        store = cls(root, now, disk=disk, segment_bytes_max=segment_bytes_max)
        if shards is not None and shards != store.shards:
            raise BadInput(
                f"the store in {root} has {store.shards} shared partitions, not {shards}: their number is fixed when a "
                f"store is made. Ask for {store.shards}, or for none in particular, or make another store."
            )
        return store

    @property
    def store_id(self) -> str:
        """The id that the store was made with."""
        return self._configuration.store_id

    @property
    def shards(self) -> int:
        """Number of shared partitions, fixed when the store was made."""
        return self._configuration.shards

    @property
    def _register(self) -> Register:
        return self._assignments

    def register(self, agent_id: str, *, shared: bool = False) -> bool:
        """Give `agent_id` a partition, durably; False if it has one already, whichever. See `store.Store`."""
        assignment = self._assignment(name_of(agent_id), shared=shared)
        self._refuse_restoring(assignment.agent_id)
        return self._register.add(assignment)

    def register_many(self, names: Iterable[str], *, shared: bool = False) -> list[str]:
        """`register` many together, with few syncs; gives those that were new, in the order given."""
        assignments = [self._assignment(name, shared=shared) for name in dict.fromkeys(map(name_of, names))]
        for assignment in assignments:
            self._refuse_restoring(assignment.agent_id)
        added = self._register.add_many(assignments)
        return [assignment.agent_id for assignment in assignments if assignment.agent_id in added]

    def _assignment(self, name: str, *, shared: bool) -> Assignment:
        return Assignment(name, shard_of(name, self.shards) if shared else partition_of(name))

    def _claim(self, wanted: Assignment) -> None:
        self._refuse_restoring(wanted.agent_id)
        super()._claim(wanted)

    def _refuse_restoring(self, name: str) -> None:
        """Raises UsageError for a name that nobody has yet, and that a restore will give to its agent."""
        if self._is_restoring(name) and self._register.find(name) is None:
            raise UsageError(
                f"A restore of {name!r} was interrupted, or goes on just now. Finish it with the same `{COMMAND}`; or, "
                f"where the export is lost, remove {self._mark_of(partition_of(name)).parent}, which nobody has seen "
                "yet."
            )

    def _place(self, name: str, partition: str) -> PartitionReader:
        return PartitionReader(self._found(name, partition))

    def _history(self, agent_id: str) -> pa.Table:
        """All records of an agent, as they were written."""
        records = list(self.reader(agent_id).read(agent_id))
        return pa.Table.from_batches([batch_of(records)] if records else [], SCHEMA)

    def open(self, agent_id: str, command: str, *, take_over: bool = False) -> FileLog:
        """Own the partition of `agent_id`. Raises UnknownAgent, PartitionBusy, CorruptLog, NewerFormat, StoreError."""
        name = name_of(agent_id)
        partition = self._assigned(name).partition
        log = self.open_partition(self._found(name, partition).name, command, label=name, take_over=take_over)
        here = False
        try:
            self.finish_move(log, name)
            here = True
        except Moved:  # to where the register did not say yet that it went
            log.close()
            return self.open(agent_id, command, take_over=take_over)
        finally:
            if not here:
                log.close()
        return log

    def open_partition(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> FileLog:
        """Own a partition by its name; `label` is what a person calls it. Raises what `open` does."""
        return self._opened(partition, command, label=label, take_over=take_over)

    def _opened(self, partition: str, command: str, *, label: str, take_over: bool = False, restoring: bool = False
                ) -> FileLog:  # fmt: skip
        if not restoring:
            self._free_if_whole(partition)
        return FileLog.open(
            self.partition(partition),
            command,
            self._now,
            label=label,
            take_over=take_over,
            segment_bytes_max=self._segment_bytes_max,
            history=self._history,
            restoring=restoring,
        )

    def _open_restoring(self, stream: ExportedStream) -> FileLog:
        """Own the partition of a name that nobody has, and say in it what is restored there."""
        name = partition_of(stream.agent_id)
        log = self._opened(name, COMMAND, label=stream.agent_id, restoring=True)
        path = self._mark_of(name)
        content = msgspec.json.encode(_RestoreMarker(stream.agent_id, stream.to_seq, stream.chain))
        kept = False
        try:
            with storage("restore into", path):
                file = publish(self._disk, path, content, token())
                if file is not None:
                    file.close()
                elif self._disk.read(path) != content:
                    raise BadInput(
                        f"A restore of another export of {stream.agent_id!r} was interrupted. Finish it with that "
                        f"export; or, where that is lost, remove {path.parent}, which nobody has seen yet."
                    )
            kept = True
        finally:
            if not kept:
                log.close()
        return log

    def _free_if_whole(self, partition: str) -> None:
        """Let a partition be opened whose restore came to its end, and died before it said so."""
        if not self._is_marked(partition):
            return
        path = self._mark_of(partition)
        with storage("read", path):
            content = self._disk.read(path)
        mark = understood(content, _RestoreMarker, path)
        name = mark.agent_id
        assignment = self._register.find(name)  # it is registered last of all
        if assignment is None or assignment.partition != partition:
            return
        reader = self.reader(name)
        if reader.head(name).seq >= mark.seq and reader.chain(name, mark.seq).hex() == mark.chain:
            self._set_free(name)

    def _mark_of(self, partition: str) -> Path:
        return self.root / "log" / partition / RESTORING

    def _is_marked(self, partition: str) -> bool:
        path = self._mark_of(partition)
        with storage("look for", path):
            return self._disk.exists(path)

    def _is_restoring(self, agent_id: str) -> bool:
        return self._is_marked(partition_of(agent_id))

    def _set_free(self, agent_id: str) -> None:
        """All records are there: anybody may open the partition."""
        if self._is_restoring(agent_id):
            path = self._mark_of(partition_of(agent_id))
            with storage("restore into", path):
                remove_if_there(self._disk, path)
                self._disk.sync_dir(path.parent)

    def _found(self, name: str, of: str) -> Partition:
        """A partition of an agent, whose folder was made before the agent was registered in it."""
        partition = self.partition(of)
        with storage("look for", partition.path):
            there = self._disk.exists(partition.path)
        if not there:
            raise CorruptLog(f"{partition.path}, the log of {name!r}, is missing. Restore it from a backup.")
        return partition

    def partition(self, name: str) -> Partition:
        """Where the partition `name` is, or would be."""
        return Partition(self._disk, self.root / "log" / name, name, self.store_id)

    def partitions(self, *, restoring: bool = False) -> list[str]:
        """Names of all partitions, sorted; with `restoring` also those where a restore has not come to its end."""
        folder = self.root / "log"
        with storage("list the partitions in", folder):
            names = sorted(self._disk.names(folder)) if self._disk.exists(folder) else []
        return [name for name in names if restoring or not self._is_marked(name)]


def _refuse_orphans(disk: Disk, root: Path) -> None:
    """A folder with logs and no configuration is a store that lost it, not a new one: it is never begun again."""
    left = [name for name in ("agents", "log") if disk.exists(root / name) and disk.names(root / name)]
    if left and not disk.exists(root / CONFIGURATION):  # another process may be making the store
        raise CorruptLog(
            f"{root / CONFIGURATION} is missing, but {' and '.join(left)} in the same folder hold what agents said. "
            "Nothing was changed; restore the file from a backup: it names the store, and every log depends on it."
        )


class _RestoreMarker(msgspec.Struct, array_like=True):
    """What the file `restoring` says: who is restored there, to which seq, and the chain value at it."""

    agent_id: str
    seq: int
    chain: str


class _StoreFormat(msgspec.Struct):
    format: int


def _load(disk: Disk, root: Path) -> StoreConfiguration:
    path = root / CONFIGURATION
    with storage("open the store in", root):
        if not disk.exists(path):
            raise StoreError(f"there is no store in {root}: {CONFIGURATION} is missing. Create an agent to make one.")
        content = disk.read(path)
    version = understood(content, _StoreFormat, path).format
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f"{path} has format {version}, but this everlog knows formats up to {FORMAT_VERSION}. Use a newer one."
        )
    configuration = understood(content, StoreConfiguration, path)
    if configuration != _signed(configuration):
        raise CorruptLog(f"{path} is damaged: wrong checksum. Nothing was changed; restore it from a backup.")
    return configuration


def _signed(configuration: StoreConfiguration) -> StoreConfiguration:
    """The configuration with the checksum of its other fields."""
    bare = msgspec.structs.replace(configuration, crc32c="")
    return msgspec.structs.replace(bare, crc32c=f"{google_crc32c.value(msgspec.json.encode(bare)):08x}")
