"""Take one position of all logs of a store, for questions about the whole fleet. Locks nothing, writes nothing.

Of each partition one manifest is read, and the whole frames that its open file has at that time. Sealed files are held
open: if their owner seals or compacts meanwhile, they lose their names but not their bytes. Sealed records are not read
here; DuckDB reads the files under the paths that the snapshot returns.

Used by `actors/memory/fleet_sql.py` and `everlog sql`.
"""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self

import msgspec
import pyarrow as pa

from everlog.events import AgentMoved, CorruptLog, StoreError
from everlog.events.times import moment
from everlog.store.base.arrow_schema import SCHEMA, records_of
from everlog.store.base.disk import RealDisk, storage, storage_error
from everlog.store.base.move_records import FROM, move_in
from everlog.store.check.fd_limit import fd_limit_error, has_fd_room, raise_fd_limit
from everlog.store.partition.manifest import OPEN, READ_ATTEMPTS_MAX, SEALED, FileEntry, Manifest, ParquetEntry, load
from everlog.store.partition.partition import MANIFEST, Partition
from everlog.store.partition.segment import FrameScan, closed_frames, corrupt_error, heads_before, missing_file_error
from everlog.store.sealed.derived_columns import FIGURES_VERSION
from everlog.store.sealed.parquet_file import is_whole
from everlog.store.stores.file_store import FileStore

_HELD = Path("/proc/self/fd")
"""Folder of this process's open files, by file descriptor; it finds a file even after the file has lost its name."""
TAKES_MAX = 20
"""Number of attempts to take a position, because an agent may move meanwhile."""


class PartitionPosition(msgspec.Struct, frozen=True):
    """Position up to which one partition is read."""

    partition: str
    manifest: int
    """Number of the manifest; 0 if there is none yet."""
    commit: int
    """Last commit that is included."""
    records: int


class SkippedPartition(msgspec.Struct, frozen=True):
    """A damaged partition, of which nothing is read."""

    partition: str
    reason: str


class FleetPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Position of the logs that an answer about all agents covers."""

    as_of: datetime
    """Time of the question."""
    records: int
    """Records of the logs; for a tenant of a server, those of its agents."""
    partitions: Sequence[PartitionPosition] = ()
    """Each log; none for a tenant, whose agents share logs with others."""
    left_out: Sequence[SkippedPartition] = ()
    """Damaged logs of which nothing was read."""
    missing: Sequence[str] = ()
    """Errors of logs, and of files of the register of agents, that are missing: the answer lacks their records."""


class _OpenSealedFile(NamedTuple):
    """A sealed file that this process holds open."""

    partition: Partition
    entry: ParquetEntry
    fd: int
    written: tuple[int, int]
    """Length and modification time of the file when it was opened."""
    may_hold_rare: bool
    """True if the file may hold records of `RARE_KINDS`."""
    figures: int
    """Version of the derived columns."""


class _PartitionSnapshot(NamedTuple):
    part: PartitionPosition
    held: list[_OpenSealedFile]
    frames: list[pa.RecordBatch]
    manifest: Manifest


class Snapshot:
    """A position of the store; its files stay open until it is closed."""

    def __init__(self, taken: Sequence[_PartitionSnapshot], left_out: Sequence[SkippedPartition]) -> None:
        self.parts = [one.part for one in taken]
        self.left_out = list(left_out)
        self._held = [held for one in taken for held in one.held]
        self._taken = taken
        self.fresh = pa.Table.from_batches([batch for one in taken for batch in one.frames], SCHEMA)
        """Records that are not sealed, in any order, with the columns of `SCHEMA`."""

    @property
    def paths(self) -> list[str]:
        """Paths of the sealed files, valid until `close`; besides the record columns they have the columns of
        `FIGURES`.
        """
        return [str(_HELD / str(held.fd)) for held in self._held]

    @property
    def rare_paths(self) -> list[str]:
        """Paths of the sealed files that may hold records of `RARE_KINDS`: usually none."""
        return [str(_HELD / str(held.fd)) for held in self._held if held.may_hold_rare]

    @property
    def older_paths(self) -> list[str]:
        """Paths of the sealed files that lack the newest columns of `FIGURES`: usually none."""
        return [str(_HELD / str(held.fd)) for held in self._held if held.figures < FIGURES_VERSION]

    @property
    def records(self) -> int:
        """Number of records in all partitions."""
        return sum(part.records for part in self.parts)

    def covered(self, at: int, missing: Sequence[str] = ()) -> FleetPosition:
        """Return the position for the answer. `at`: time of the question, microseconds UTC. `missing`: see
        `check_presence`.
        """
        return FleetPosition(
            as_of=moment(at), records=self.records, partitions=self.parts, left_out=self.left_out, missing=missing
        )

    def heads(self) -> dict[str, int]:
        """Return the last seq of each stream in all partitions, by the manifests and the frames."""
        heads: dict[str, int] = {}
        for one in self._taken:
            for name, seq in _heads(one).items():
                heads[name] = max(seq, heads.get(name, 0))
        return heads

    def damage(self) -> CorruptLog | None:
        """Return the error for the first sealed file with a wrong checksum; None if there is none. Reads every byte of
        them.
        """
        return next((_damaged_error(held) for held in self._held if not _is_whole(held)), None)

    def check_unchanged(self) -> None:
        """Raise CorruptLog if a sealed file was written to since it was opened: sealed files never change, so answers
        are invalid.
        """
        for held in self._held:
            if _file_stamp(held.fd) != held.written:
                raise CorruptLog(
                    f"{held.partition.path / held.entry.name} was written to while it was read, but sealed files never "
                    "change: the answer is invalid. Run `everlog log check --all`, and restore the file from a backup "
                    "if it is damaged."
                )

    def close(self) -> None:
        """Close the files. Idempotent."""
        _close_files(self._held)
        self._held = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def snapshot(store: FileStore, *, skip_damaged: bool = False) -> Snapshot:
    """Return the current position of a store. Raises CorruptLog, NewerFormat, StoreError.

    With `skip_damaged` every sealed file is verified, and a partition with damage is skipped. The limit of open files
    of this process is raised if necessary.
    """
    try:
        return _snapshot(store, skip_damaged=skip_damaged)
    except StoreError as error:
        if not (isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EMFILE):
            raise
        raise StoreError(f"{store.root}: {fd_limit_error(_sealed(store))}") from error


def _snapshot(store: FileStore, *, skip_damaged: bool) -> Snapshot:
    for _ in range(TAKES_MAX):
        taken: list[_PartitionSnapshot] = []
        left_out: list[SkippedPartition] = []
        whole = False
        try:
            for name in store.partitions():
                try:
                    taken.append(_take(store.partition(name), check=skip_damaged))
                except CorruptLog as error:
                    if not skip_damaged:
                        raise
                    left_out.append(SkippedPartition(name, str(error)))
            files = sum(len(one.held) for one in taken)
            if not has_fd_room(files):
                raise StoreError(f"{store.root}: {fd_limit_error(files)}")
            whole = bool(left_out) or not _is_torn(store, taken)
        finally:
            if not whole:
                _close_files([held for one in taken for held in one.held])
        if whole:
            return Snapshot(taken, left_out)
    raise StoreError(f"agents of {store.root} moved {TAKES_MAX} times while its position was taken. Try again.")


def _take(partition: Partition, *, check: bool) -> _PartitionSnapshot:
    """Take the position of one partition. If a file disappears meanwhile, the next manifest names the file that
    replaced it.
    """
    for _ in range(READ_ATTEMPTS_MAX):
        manifest = load(partition)
        held: list[_OpenSealedFile] = []
        whole = False
        try:
            frames, last = [], manifest.covered_to()
            for entry in manifest.files:
                if entry.kind == SEALED:
                    held.append(_hold(partition, entry))
                    continue
                batches, last = _frames_of(partition, entry, manifest, last)
                frames += batches
            if check:
                _check_undamaged(held)
            whole = not _is_old(partition, manifest)
        except FileNotFoundError as error:
            if not _is_old(partition, manifest):
                raise missing_file_error(str(error.filename), manifest.files[0].first_commit) from error
        finally:
            if not whole:
                _close_files(held)
        if whole:
            records = sum(entry.records for entry in manifest.files if entry.kind == SEALED)
            records += sum(batch.num_rows for batch in frames)
            return _PartitionSnapshot(
                PartitionPosition(partition.name, manifest.number, last, records), held, frames, manifest
            )
    raise StoreError(f"{partition.path}: the manifest changed {READ_ATTEMPTS_MAX} times while it was read. Try again.")


def _sealed(store: FileStore) -> int:
    """Return the number of sealed files in a store."""
    return sum(entry.kind == SEALED for name in store.partitions() for entry in load(store.partition(name)).files)


def _is_old(partition: Partition, manifest: Manifest) -> bool:
    with storage("list", partition.path):
        return (partition.numbers(MANIFEST) or [0])[-1] != manifest.number


def _hold(partition: Partition, entry: FileEntry) -> _OpenSealedFile:
    assert entry.parquet is not None
    path = partition.path / entry.name
    try:
        fd = partition.disk.hold(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, "read", path) from error
    raise_fd_limit(fd)
    held = _OpenSealedFile(partition, entry.parquet, fd, _file_stamp(fd), entry.rare != [], entry.figures)
    if held.written[0] < entry.parquet.bytes:
        os.close(fd)
        raise _damaged_error(held)
    return held


def _file_stamp(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_size, found.st_mtime_ns


def _frames_of(
    partition: Partition, entry: FileEntry, manifest: Manifest, last: int
) -> tuple[list[pa.RecordBatch], int]:
    """Return the records of a file that is not sealed, and the last commit so far."""
    if entry.kind != OPEN:
        return [frame.batch for frame in closed_frames(partition, entry, manifest)], last
    path = partition.path / entry.name
    try:
        data = partition.disk.read(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, "read", path) from error
    salt = partition.salt(entry.name)
    scan = FrameScan(data, salt, entry.first_commit, str(path))
    batches = [frame.batch for frame in scan]
    if scan.later is not None and not _is_old(partition, manifest):
        raise corrupt_error(scan, data, salt, entry.first_commit, str(path), heads_before(manifest, entry))
    return batches, max(last, scan.next_commit - 1)


def _close_files(held: Sequence[_OpenSealedFile]) -> None:
    for one in held:
        os.close(one.fd)


def _is_whole(held: _OpenSealedFile) -> bool:
    """Return True if every part of an open file matches its checksum, even if the file has lost its name."""
    here = held.partition._replace(disk=RealDisk(), path=_HELD)
    return is_whole(here, msgspec.structs.replace(held.entry, name=str(held.fd)))


def _check_undamaged(held: Sequence[_OpenSealedFile]) -> None:
    for one in held:
        if not _is_whole(one):
            raise _damaged_error(one)


def _damaged_error(held: _OpenSealedFile) -> CorruptLog:
    return CorruptLog(
        f"{held.partition.path / held.entry.name} is damaged: its length or a checksum is wrong. Nothing was changed. "
        "`everlog log check --all` shows where; restore the file from a backup."
    )


def _is_torn(store: FileStore, taken: Sequence[_PartitionSnapshot]) -> bool:
    """Return True if an agent's records are missing because it moved after one partition was taken and before the other
    was.

    A fork begins with its own first record, so records before that are not missing. An agent that was restored from an
    export has the records of its moves, and was in one partition only.
    """
    arrivals = [arrival for one in taken for arrival in _arrivals(one)]
    if not arrivals:
        return False
    heads = [(one.part.partition, _heads(one)) for one in taken]
    return any(
        all(mine.get(name, 0) < seq - 1 for partition, mine in heads if partition != home)
        and (store.parent_of(name) or ("", 0))[1] != seq - 1
        and store.route(name) != [home]
        for home, name, seq in arrivals
    )


def _arrivals(one: _PartitionSnapshot) -> Iterator[tuple[str, str, int]]:
    """Yield partition, agent and seq of each agent's last arrival, and of the first record of each sealed fork."""
    for entry in one.manifest.files:
        for name, seq in entry.arrivals.items():
            yield one.part.partition, name, seq
    for batch in one.frames:
        # Compared as Python values: Arrow imports pandas, if it is installed, before it compares with one (0.2 s).
        moves = [place for place, kind in enumerate(batch.column("type").to_pylist()) if kind == AgentMoved.kind]
        for record in records_of(batch.take(moves)) if moves else ():
            move = move_in(record)
            if move is not None and move.direction == FROM:
                yield one.part.partition, record.agent_id, record.seq


def _heads(one: _PartitionSnapshot) -> Mapping[str, int]:
    heads = {name: seq for entry in one.manifest.files for name, (seq, _) in entry.chains.items()}
    for batch in one.frames:
        heads.update(zip(batch.column("agent_id").to_pylist(), batch.column("seq").to_pylist(), strict=True))
    return heads
