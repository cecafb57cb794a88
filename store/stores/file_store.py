"""Keep a store in a folder: `everlog.json`, the register of agents, and a folder for each partition.

    <root>/everlog.json             format, store id, first number of shards; never changes
    <root>/shards/                  later numbers of shards, see `shard_numbers`
    <root>/agents/                  which agent is in which partition, see `register`
    <root>/names/                   other names of agents, see `aliases`
    <root>/log/<partition>/         see `manifest`, `epoch` and `frame`

Opening a store for reading writes nothing.

Used by hosts, commands and reports: it is the store of every real system.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import google_crc32c
import msgspec

from everlog.events import BadInput, CorruptLog, Draft, Moved, NewerFormat, Record, StoreError, UsageError
from everlog.store.backup.restore_service import RestoreService
from everlog.store.base.block_streams import is_agent
from everlog.store.base.disk import Disk, RealDisk, parse_json, publish, storage
from everlog.store.base.generations import generation_of, names_generation
from everlog.store.base.names import name_of, partition_of, shard_of, url_of
from everlog.store.base.store_constants import FORMAT_VERSION, SEGMENT_BYTES_MAX, SHARDS_MAX
from everlog.store.log.file_log import FileLog
from everlog.store.partition.epoch import NO_MARK, HostMark
from everlog.store.partition.partition import token
from everlog.store.stores.opener import FileOpener
from everlog.store.streams.aliases import Aliases
from everlog.store.streams.fork_service import ForkService
from everlog.store.streams.move_service import MoveService, check_expected
from everlog.store.streams.register import Register
from everlog.store.streams.register_file import Assignment
from everlog.store.streams.shard_numbers import FileShardNumbers
from everlog.store.streams.stream_evidence import StreamEvidence

CONFIGURATION = "everlog.json"
COPYING = "copying.json"
"""File of a place that a store is being copied to, until the copy is whole."""
CONFIGURATION_BYTES_MAX = 64 * 1024
"""Bytes of `everlog.json` that are read: it has some hundred, and whatever is longer is damaged."""
OWN_NAMES_MAX = 16_384
"""Maximum names of which `FileStore.stream_of` remembers where another meaning would be written."""


class StoreConfiguration(msgspec.Struct, frozen=True):
    """Identity of a store. Written once, when the store is created."""

    store_id: str
    shards: int = 0
    """Number of shared partitions at first; 0 for none."""
    format: int = FORMAT_VERSION
    crc32c: str = ""
    """Checksum of the other fields, computed with this field empty."""


class FileStore:
    """All agents of one folder. See `store.Store` for the promises of each method."""

    def __init__(self, root: Path, now: Callable[[], int], *, disk: Disk | None = None,
                 segment_bytes_max: int = SEGMENT_BYTES_MAX, mark: HostMark = NO_MARK) -> None:  # fmt: skip
        """Open the store in `root`, which exists; `now` returns microseconds UTC; `mark` is shown by the logs that are
        opened. Raises StoreError, NewerFormat.
        """
        self.root = root
        self.disk = disk = disk or disk_of(root)
        self._configuration = _load(disk, root)
        self.shard_numbers = FileShardNumbers(disk, root, self._configuration.shards)
        """Numbers of shared partitions that the store has had."""
        self.set_shards = self.shard_numbers.change
        evidence = StreamEvidence(disk, root, self.store_id, self.shard_numbers)
        self.aliases = aliases = Aliases(disk, root, lambda name: register.find(name) is not None)
        """Other names of agents."""

        def check_new(names: Iterable[str]) -> None:
            evidence.check_unknown(names)
            aliases.check_free(names)

        self._register = register = Register(disk, root, check_new)
        self.register_files = register
        """Files of the register, for checks and repairs."""
        self._opener = opener = FileOpener(disk, root, self.store_id, register, evidence, now, segment_bytes_max, mark)
        self._forking = ForkService(register, opener.routes, opener, now)
        routes, moving = opener.routes, MoveService(register, opener.routes, self.shard_numbers, now)
        self.partition, self.partitions = opener.partition, opener.partitions
        self.agents, self.sources, self.blocks = routes.agents, routes.sources, routes.blocks
        self.assigned, self.assignments = routes.assigned, routes.assignments
        self.latest, self.next_generation = routes.latest, routes.next_generation
        self.route, self.assignment = routes.route, routes.assignment
        self.partition_of, self.partitions_of = routes.partition_of, routes.partitions_of
        self.reader, self.states, self.reader_groups = routes.reader, routes.states, routes.reader_groups
        self.parent_of, self.check_not_lost = routes.parent_of, routes.check_not_lost
        self._routes, self._evidence = routes, evidence
        self._own_names: dict[str, Sequence[Path]] = {}
        """Files without which a name means the stream of that name, by name."""
        self.begin_move, self.finish_move = moving.begin_move, moving.finish_move
        self.restore = RestoreService(register, routes, opener, self.open, now, aliases.check_free).restore

    @classmethod
    def create(cls, root: Path, now: Callable[[], int], store_id: str, *, shards: int | None = None,
               shards_new: int = 0, disk: Disk | None = None, segment_bytes_max: int = SEGMENT_BYTES_MAX,
               ) -> "FileStore":  # fmt: skip
        """Open the store in `root`; create it first if there is none. `store_id` is for a new store, and must be
        unique.

        `shards`, 0 to `SHARDS_MAX` inclusive, is the number of shared partitions of a new store (None: `shards_new`).
        Raises BadInput if `shards` differs from what an existing store has; None accepts any number.
        """
        if shards is not None and not 0 <= shards <= SHARDS_MAX:
            raise BadInput(f"a store has 0 to {SHARDS_MAX} shared partitions, not {shards}")
        disk = disk or disk_of(root)
        path = root / CONFIGURATION
        with storage("make a store in", root):
            if not disk.exists(path):
                disk.make_dirs(root)
                _check_no_orphans(disk, root)
                configuration = StoreConfiguration(store_id, shards_new if shards is None else shards)
                content = msgspec.json.format(msgspec.json.encode(_signed(configuration)))
                publish(disk, path, content, token())
            disk.sync_dir(root)  # the process that created it may have died before the name was durable
        store = cls(root, now, disk=disk, segment_bytes_max=segment_bytes_max)
        if shards is not None and shards != store.shards:
            raise BadInput(
                f"the store in {root} has {store.shards} shared partitions, not {shards}. Leave the number out; "
                "`everlog cluster shards 8` changes it, and moves the agents."
            )
        return store

    @property
    def store_id(self) -> str:
        """Id that the store was created with."""
        return self._configuration.store_id

    @property
    def shards(self) -> int:
        """Number of shared partitions now. Another process may change it at any time. Raises CorruptLog, StoreError."""
        return self.shard_numbers.all()[-1]

    def stream_of(self, name: str) -> str:
        """Return the stream of the agent that a person calls `name`: by a name that `rename` gave, or else the newest
        agent of that name. A name that no agent has is returned in its NFC form.

        Raises BadInput for an impossible name, CorruptLog for a damaged file.
        """
        # Each message to an agent by name comes here. Only the looks at the disk are repeated, because another process
        # may rename or fork an agent at any time; the paths cost three times as much as the looks.
        elsewhere = self._own_names.get(name)
        if elsewhere is not None:
            with storage("look for another meaning of a name in", self.root):
                if not any(map(self.disk.exists, elsewhere)):
                    return name
        stream = self.latest(self.aliases.resolve(name))
        if stream == name and elsewhere is None and is_agent(name) and not names_generation(name):
            if len(self._own_names) >= OWN_NAMES_MAX:
                self._own_names.clear()
            fork = generation_of(name).next.stream
            paths = self.aliases.path_of(name), self._register.path_of(fork), self.partition(partition_of(fork)).path
            self._own_names[name] = paths
        return stream

    def register(self, agent_id: str, *, shared: bool = False) -> bool:
        """Assign a partition to `agent_id`, durably. Return False if it has one already, of either kind. See
        `store.Store`.
        """
        assignment = self._assignment(name_of(agent_id), shared=shared)
        self._opener.check_not_restoring(assignment.agent_id)
        return self._register.add(assignment)

    def register_many(self, names: Iterable[str], *, shared: bool = False) -> list[str]:
        """Register many agents with few syncs. Return the names that were new, in the order given."""
        assignments = [self._assignment(name, shared=shared) for name in dict.fromkeys(map(name_of, names))]
        for assignment in assignments:
            self._opener.check_not_restoring(assignment.agent_id)
        added = self._register.add_many(assignments)
        return [assignment.agent_id for assignment in assignments if assignment.agent_id in added]

    def _assignment(self, name: str, *, shared: bool) -> Assignment:
        return Assignment(name, shard_of(name, self.shards) if shared else partition_of(name))

    def fork(
        self, parent: str, at: int, name: str, *, event_id: str, closing: Sequence[Draft] = (), by: str = ""
    ) -> Sequence[Record]:
        """Create `name` from the records of `parent` up to seq `at`. Return the fork's first records. See
        `store.Store`.
        """
        self._opener.check_not_restoring(name_of(name))
        return self._forking.fork(parent, at, name, event_id=event_id, closing=closing, by=by)

    def forks_of(self, agent_id: str) -> dict[str, int]:
        """Return the forks of an agent; see `store.Store`. Raises CorruptLog if the register has lost the file of an
        agent, which may be one of them.
        """
        self._evidence.check_all_registered(self._routes.assigned())
        return self._routes.forks_of(agent_id)

    def open(self, agent_id: str, command: str, *, take_over: bool = False, expected: str | None = None) -> FileLog:
        """Own the partition of `agent_id`; see `store.Store`. Raises UnknownAgent, PartitionBusy, Moved, CorruptLog,
        NewerFormat, StoreError.
        """
        name = name_of(agent_id)
        partition = self.partition_of(name)
        check_expected(name, partition, expected)
        self._opener.check_there(name, partition)
        log = self.open_partition(partition, command, label=name, take_over=take_over)
        here = False
        try:
            self.finish_move(log, name)
            here = True
        except Moved:  # the agent left, but the register did not know: `finish_move` has registered it now
            log.close()
            return self.open(agent_id, command, take_over=take_over, expected=expected)
        finally:
            if not here:
                log.close()
        return log

    def open_partition(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> FileLog:
        """Own a partition by its name; `label` is its name in errors. Raises the errors of `open`."""
        return self._opener.open(partition, command, label=label, take_over=take_over)


def _check_no_orphans(disk: Disk, root: Path) -> None:
    """Raise CorruptLog if a folder has logs but no configuration: it is a store that lost the file, and is never
    created again.
    """
    _check_not_copying(disk, root)
    left = [name for name in ("agents", "log") if disk.exists(root / name) and disk.names(root / name)]
    if left and not disk.exists(root / CONFIGURATION):  # checked again: another process may be creating the store
        raise CorruptLog(
            f"{root / CONFIGURATION} is missing, but {' and '.join(left)} in the same folder contain agents' data. "
            "Nothing was changed; restore the file from a backup: it names the store, and every log depends on it."
        )


def _check_not_copying(disk: Disk, root: Path) -> None:
    """Raise UsageError if a store is being copied here and is not whole yet."""
    if disk.exists(root / COPYING) and not disk.exists(root / CONFIGURATION):
        raise UsageError(
            f"A copy of a store into {root} was interrupted, or is running. Finish it with the same `everlog store "
            "copy`, or remove what is there."
        )


class _StoreFormat(msgspec.Struct):
    format: int


def check_forgets(store: FileStore) -> None:
    """Raise StoreError if the place of a store keeps what is removed from it, as a bucket with versioning does."""
    if not url_of(store.root):
        return
    from everlog.store.object import object_disk, open_bucket

    assert isinstance(store.disk, object_disk.ObjectDisk)
    with storage("erase in", url_of(store.root)):
        open_bucket.check_forgets(store.disk.bucket)


def disk_of(root: Path) -> Disk:
    """Return the disk of the store in `root`: a bucket if the folder stands for one. Raises UsageError, StoreError."""
    if not url_of(root):
        return RealDisk()
    from everlog.store.object.open_bucket import bucket_disk  # its modules cost every start of a command

    with storage("reach", url_of(root)):
        return bucket_disk(root)


def _load(disk: Disk, root: Path) -> StoreConfiguration:
    path = root / CONFIGURATION
    with storage("open the store in", root):
        if not disk.exists(path):
            _check_not_copying(disk, root)
            raise StoreError(f"there is no store in {root}: {CONFIGURATION} is missing. Create an agent to make one.")
        content = disk.read(path, 0, CONFIGURATION_BYTES_MAX)
    version = parse_json(content, _StoreFormat, path).format
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f"{path} has format {version}, but this everlog knows formats up to {FORMAT_VERSION}. Use a newer everlog."
        )
    configuration = parse_json(content, StoreConfiguration, path)
    if configuration != _signed(configuration):
        raise CorruptLog(f"{path} is damaged: wrong checksum. Nothing was changed; restore it from a backup.")
    return configuration


def _signed(configuration: StoreConfiguration) -> StoreConfiguration:
    """Return the configuration with the checksum of its other fields."""
    bare = msgspec.structs.replace(configuration, crc32c="")
    return msgspec.structs.replace(bare, crc32c=f"{google_crc32c.value(msgspec.json.encode(bare)):08x}")
