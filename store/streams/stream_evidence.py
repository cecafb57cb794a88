"""Find out whether the partitions know a name that the register does not: then the register has lost a file.

Such a name is never begun again: a second stream of the name, or a fork without its past, would look whole. A dedicated
partition is looked up by its folder. Of a shard, the streams in closed files are in the manifest, and its open file is
read once by a process; after that only its new frames are read.

Used by `FileStore` for the register and the routes, and by the checks and the repair of the register (`ends_in`). Only
reads. The partition of an interrupted restore is no evidence: its name is registered last.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from everlog.events import AgentMoved, CorruptLog
from everlog.store.base.arrow_schema import records_of
from everlog.store.base.block_streams import is_agent
from everlog.store.base.disk import Disk, storage
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.base.move_records import is_departure
from everlog.store.base.names import hash_of, is_shared, partition_of
from everlog.store.log.log_follower import CommitRewritten, LogFollower
from everlog.store.log.partition_recovery import RESTORING
from everlog.store.partition.manifest import load
from everlog.store.partition.partition import EPOCH, MANIFEST, Partition, parse_file_name
from everlog.store.streams.register_file import REPAIR
from everlog.store.streams.shard_numbers import ShardNumbers, first_shards

GIVEN_UP = "given-up"
"""File in a dedicated partition without a record, whose name the repair of the register has given up: it may be
registered again.
"""


class StreamEvidence:
    """Streams that the partitions of a store know."""

    def __init__(self, disk: Disk, root: Path, store_id: str, shards: ShardNumbers) -> None:
        """Look in the partitions of the store in `root`, which has had these numbers of `shards`."""
        self._disk = disk
        self._log = root / "log"
        self._store_id = store_id
        self._shards = shards
        self._mutex = threading.Lock()
        self._inside: dict[str, _ShardStreams] = {}

    def check_unknown(self, names: Iterable[str]) -> None:
        """Raise CorruptLog if a partition knows one of these names, of which the register has no file. May raise
        StoreError.
        """
        shared: dict[str, list[str]] = defaultdict(list)
        numbers = self._shards.all()
        for name in names:
            self.check_unknown_fork(name)
            for shard in first_shards(name, numbers) if is_agent(name) else ():
                shared[shard].append(name)
        for shard, wanted in shared.items():
            with self._mutex:
                known = self._inside.setdefault(shard, _ShardStreams(self._partition(shard))).names()
            for name in wanted:
                if name in known:
                    raise lost_file_error(name, self._log / shard)

    def check_unknown_fork(self, name: str) -> None:
        """Raise CorruptLog if a process has opened the dedicated partition of this name, of which the register has no
        file. May raise StoreError.

        A fork begins there, so its name needs no look into the shards, which may have to be read for it.
        """
        if self._is_begun(partition_of(name)):
            raise lost_file_error(name, self._log / partition_of(name))

    def check_all_registered(self, names: Iterable[str]) -> None:
        """Raise CorruptLog if a dedicated partition was opened that is of none of these names, which are all that the
        register knows. May raise StoreError.

        Each fork begins in such a partition, so a caller that needs all forks of an agent can trust the register.
        """
        known = set(map(partition_of, names))
        with storage("list the logs in", self._log):
            there = self._disk.names(self._log) if self._disk.exists(self._log) else []
        for unknown in sorted(set(there) - known):
            if not is_shared(unknown) and self._is_begun(unknown):
                name = next(iter(ends_in(self._partition(unknown))), unknown)
                raise lost_file_error(name, self._log / unknown)

    def _is_begun(self, dedicated: str) -> bool:
        """Return True if a process has opened a dedicated partition."""
        partition = self._partition(dedicated)
        with storage("look for", partition.path):
            if not self._disk.exists(partition.path):
                return False
            there = self._disk.names(partition.path)
        if RESTORING in there:
            return False
        if GIVEN_UP in there:
            return bool(ends_in(partition))
        return any(file.startswith((EPOCH, MANIFEST)) or parse_file_name(file) for file in there)

    def _partition(self, name: str) -> Partition:
        return Partition(self._disk, self._log / name, name, self._store_id)


class _ShardStreams:
    """Names of the streams of one shard, brought up to date by each call."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._begin()

    def _begin(self) -> None:
        self._names: set[str] = set()
        self._follower: LogFollower | None = None
        self._commit = 0

    def names(self) -> set[str]:
        """Return the names of all streams with whole commits in the shard."""
        while True:
            if self._follower is None:
                manifest = load(self._partition)
                self._names, self._commit = set(manifest.closed_heads()), manifest.covered_to()
                self._follower = LogFollower(self._partition)
            try:
                for table in self._follower.since(self._commit):
                    self._names.update(pc.unique(table.column("agent_id")).to_pylist())
                    self._commit = table.column("commit")[-1].as_py()
            except CommitRewritten:  # unacknowledged commits were lost in a crash
                self._begin()
            else:
                return self._names


class StreamEnd(NamedTuple):
    """The end of a stream in one partition."""

    seq: int
    away: bool
    """True if the stream continues in another partition."""


def ends_in(partition: Partition) -> dict[str, StreamEnd]:
    """Return the end of every stream in a partition, in one pass. Raises CorruptLog, NewerFormat, StoreError."""
    while True:
        manifest = load(partition)
        ends = {name: StreamEnd(head.seq, head.away) for name, head in manifest.closed_heads().items()}
        try:
            for table in LogFollower(partition).since(manifest.covered_to()):
                ends.update(_ends_of(table))
        except CommitRewritten:  # unacknowledged commits were lost in a crash
            continue
        return ends


def _ends_of(table: pa.Table) -> dict[str, StreamEnd]:
    """Return the end of every stream in a table of records, which are in commit order."""
    # In Python: for a comparison with a Python value, and for a sum by groups, Arrow imports pandas (0.2 s).
    ends = dict(zip(table.column("agent_id").to_pylist(), table.column("seq").to_pylist(), strict=True))
    places = [place for place, kind in enumerate(table.column("type").to_pylist()) if kind == AgentMoved.kind]
    moves = records_of(table.take(places)) if places else ()
    gone = {move.agent_id for move in moves if is_departure(move) and ends[move.agent_id] == move.seq}
    return {name: StreamEnd(seq, name in gone) for name, seq in ends.items()}


def lost_file_error(name: str, where: Path) -> CorruptLog:
    """Return the error for a name whose file in the register is lost, although the partition `where` knows it."""
    digest = hash_of(name)
    return CorruptLog(
        f"{where.parents[1] / 'agents' / digest[:2] / digest}, the file of {name!r} in the register, is missing, but "
        f"{where.parent.name}/{where.name} is the agent's log. Nothing was changed; restore the file from a backup, or "
        f"run `{REPAIR}`, which makes it again from the log."
    )
