"""The store in a folder: `everlog.json`, the register of agents, and a partition's folder for each.

    <root>/everlog.json             format, store id, number of shards; never changes
    <root>/agents/<h[:2]>/<h>       h = sha256 of the name: name, partition, epoch of the assignment; made with link()
    <root>/log/<partition>/         see `manifest`, `epoch` and `frame`

Opening a store for reading writes nothing.
"""

from collections.abc import Callable
from pathlib import Path

import google_crc32c
import msgspec

from events import CorruptLog, NewerFormat, StoreError

from .constants import FORMAT_VERSION, SEGMENT_BYTES_MAX
from .disk import Disk, RealDisk, publish, storage, understood
from .filelog import FileLog
from .names import hash_of, name_of, partition_of, unknown_agent
from .partition import Partition, token
from .reader import Reader

CONFIGURATION = "everlog.json"


class Configuration(msgspec.Struct, frozen=True):
    """What a store is. Written once, when it is made."""

    store_id: str
    shards: int = 0
    """Number of shared partitions; 0 for none."""
    format: int = FORMAT_VERSION
    crc32c: str = ""
    """Of the other fields; empty in a store of everlog 0.1."""


class Assignment(msgspec.Struct, frozen=True):
    """Which partition an agent is in."""

    agent_id: str
    partition: str
    epoch: int = 1
    """Generation of the assignment: a move publishes the next one."""


class FileStore:
    """All agents of one folder. See `store.Store` for what each method promises."""

    def __init__(self, root: Path, now: Callable[[], int], *, disk: Disk | None = None,
                 segment_bytes_max: int = SEGMENT_BYTES_MAX) -> None:  # fmt: skip
        """Open the store in `root`, which exists; `now` gives microseconds UTC. Raises StoreError, NewerFormat."""
        self.root = root
        self._now = now
        self._disk = disk or RealDisk()
        self._segment_bytes_max = segment_bytes_max
        self._configuration = _load(self._disk, root)

    @classmethod
    def create(cls, root: Path, now: Callable[[], int], store_id: str, *, shards: int = 0, disk: Disk | None = None,
               segment_bytes_max: int = SEGMENT_BYTES_MAX) -> "FileStore":  # fmt: skip
        """Open the store in `root`, making it first if there is none; `store_id` is for a new one, and unique."""
        disk = disk or RealDisk()
        path = root / CONFIGURATION
        with storage("make a store in", root):
            if not disk.exists(path):
                disk.make_dirs(root)
                _refuse_orphans(disk, root)
                content = msgspec.json.format(msgspec.json.encode(_signed(Configuration(store_id, shards))))
                file = publish(disk, path, content, token())
                if file is not None:
                    file.close()
            disk.sync_dir(root)  # whoever made it may have died before it was durable
        return cls(root, now, disk=disk, segment_bytes_max=segment_bytes_max)

    @property
    def store_id(self) -> str:
        """The id that the store was made with."""
        return self._configuration.store_id

    @property
    def shards(self) -> int:
        """Number of shared partitions, fixed when the store was made."""
        return self._configuration.shards

    def agents(self) -> list[str]:
        """Ids of all agents that were ever registered, sorted."""
        folder = self.root / "agents"
        with storage("list the agents in", folder):
            if not self._disk.exists(folder):
                return []
            paths = [
                folder / first / name
                for first in self._disk.names(folder)
                for name in self._disk.names(folder / first)
                if "." not in name
            ]
            return sorted(_assignment(self._disk.read(path), path).agent_id for path in paths)

    def register(self, agent_id: str) -> bool:
        """Give `agent_id` a partition, durably; False if it has one already. BadInput for an impossible name."""
        name = name_of(agent_id)
        path = self._path_of(name)
        assignment = Assignment(name, partition_of(name))
        with storage("register an agent in", path.parent):
            if self._disk.exists(path):
                self._disk.sync_dir(path.parent)  # whoever registered it may have died before it was durable
                return False
            self._disk.make_dirs(path.parent)
            self._disk.make_dirs(self.partition(assignment.partition).path)
            file = publish(self._disk, path, msgspec.json.encode(assignment), token())
            if file is None:
                return False
            file.close()
            return True

    def reader(self, agent_id: str) -> Reader:
        """The partition of `agent_id` for reading; raises UnknownAgent if it was never registered. Never locks."""
        return Reader(self._found(name_of(agent_id)))

    def open(self, agent_id: str, command: str, *, take_over: bool = False) -> FileLog:
        """Own the partition of `agent_id`. Raises UnknownAgent, PartitionBusy, CorruptLog, NewerFormat, StoreError."""
        name = name_of(agent_id)
        return self.open_partition(self._found(name).name, command, label=name, take_over=take_over)

    def open_partition(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> FileLog:
        """Own a partition by its name; `label` is what a person calls it. Raises what `open` does."""
        return FileLog.open(
            self.partition(partition),
            command,
            self._now,
            label=label,
            take_over=take_over,
            segment_bytes_max=self._segment_bytes_max,
        )

    def _found(self, name: str) -> Partition:
        """The partition of an agent, whose folder was made before the agent was registered."""
        partition = self.partition(self._assigned(name).partition)
        with storage("look for", partition.path):
            there = self._disk.exists(partition.path)
        if not there:
            raise CorruptLog(f"{partition.path}, the log of {name!r}, is missing. Restore it from a backup.")
        return partition

    def partition(self, name: str) -> Partition:
        """Where the partition `name` is, or would be."""
        return Partition(self._disk, self.root / "log" / name, name, self.store_id)

    def partitions(self) -> list[str]:
        """Names of all partitions, sorted."""
        folder = self.root / "log"
        with storage("list the partitions in", folder):
            return sorted(self._disk.names(folder)) if self._disk.exists(folder) else []

    def _path_of(self, name: str) -> Path:
        digest = hash_of(name)
        return self.root / "agents" / digest[:2] / digest

    def _assigned(self, name: str) -> Assignment:
        path = self._path_of(name)
        with storage("read", path):
            found = self._disk.exists(path)
            if found:
                return _assignment(self._disk.read(path), path)
        raise unknown_agent(name, self.agents())


def _refuse_orphans(disk: Disk, root: Path) -> None:
    """A folder with logs and no configuration is a store that lost it, not a new one: it is never begun again."""
    left = [name for name in ("agents", "log") if disk.exists(root / name) and disk.names(root / name)]
    if left and not disk.exists(root / CONFIGURATION):  # another process may be making the store
        raise CorruptLog(
            f"{root / CONFIGURATION} is missing, but {' and '.join(left)} in the same folder hold what agents said. "
            "Nothing was changed; restore the file from a backup: it names the store, and every log depends on it."
        )


def _assignment(content: bytes, path: Path) -> Assignment:
    assignment = understood(content, Assignment, path)
    if hash_of(assignment.agent_id) != path.name:
        raise CorruptLog(f"{path} is damaged: it is of another agent. Nothing was changed; restore it from a backup.")
    return assignment


class _FormatOnly(msgspec.Struct):
    format: int


def _load(disk: Disk, root: Path) -> Configuration:
    path = root / CONFIGURATION
    with storage("open the store in", root):
        if not disk.exists(path):
            raise StoreError(f"there is no store in {root}: {CONFIGURATION} is missing. Create an agent to make one.")
        content = disk.read(path)
    version = understood(content, _FormatOnly, path).format
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f"{path} has format {version}, but this everlog knows formats up to {FORMAT_VERSION}. Use a newer one."
        )
    configuration = understood(content, Configuration, path)
    if configuration.crc32c and configuration != _signed(configuration):
        raise CorruptLog(f"{path} is damaged: wrong checksum. Nothing was changed; restore it from a backup.")
    return configuration


def _signed(configuration: Configuration) -> Configuration:
    """The configuration with the checksum of its other fields."""
    bare = msgspec.structs.replace(configuration, crc32c="")
    return msgspec.structs.replace(bare, crc32c=f"{google_crc32c.value(msgspec.json.encode(bare)):08x}")
