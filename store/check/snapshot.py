"""All logs of a store at one position, for whoever asks about the whole fleet. Locks nothing, writes nothing.

Of each partition one manifest is taken, and the whole frames that its open file had then. Sealed files are held open:
what their owner seals or compacts meanwhile loses its name, and not its bytes. Sealed records are not read here; DuckDB
does that, which finds the files under the paths that are given.
"""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import msgspec
import pyarrow as pa

from everlog.events import CorruptLog, StoreError
from everlog.store.base.arrow_schema import SCHEMA, records_of
from everlog.store.base.disk import storage, storage_error
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.base.move_records import FROM, move_in
from everlog.store.check.fd_limit import is_room, make_room, too_few
from everlog.store.partition.manifest import OPEN, READ_ATTEMPTS_MAX, SEALED, FileEntry, Manifest, ParquetEntry, load
from everlog.store.partition.partition import MANIFEST, Partition
from everlog.store.partition.segment import FrameScan, closed_frames, corrupt_error, heads_before, missing_file_error
from everlog.store.sealed.parquet_file import is_whole
from everlog.store.stores.file_store import FileStore

_HELD = Path("/proc/self/fd")
"""Where the files are that this process has open, under their numbers, whatever has become of their names."""
TAKES_MAX = 20
"""How often a position is taken anew because an agent moved while it was taken."""


class PartitionPosition(msgspec.Struct, frozen=True):
    """How far one partition is read."""

    partition: str
    manifest: int
    """Number of the manifest; 0 where there is none yet."""
    commit: int
    """The last commit that counts."""
    records: int


class SkippedPartition(msgspec.Struct, frozen=True):
    """A partition that is damaged, and of which nothing is read."""

    partition: str
    reason: str


class _OpenSealedFile(NamedTuple):
    """A sealed file that is open here."""

    partition: Partition
    entry: ParquetEntry
    fd: int
    written: tuple[int, int]
    """Its length, and when it was last written, as of then."""


class _PartitionSnapshot(NamedTuple):
    part: PartitionPosition
    held: list[_OpenSealedFile]
    frames: list[pa.RecordBatch]
    manifest: Manifest


class Snapshot:
    """A position of the store; its files are open until it is closed."""

    def __init__(self, taken: Sequence[_PartitionSnapshot], left_out: Sequence[SkippedPartition]) -> None:
        self.parts = [one.part for one in taken]
        self.left_out = list(left_out)
        self._held = [held for one in taken for held in one.held]
        self.fresh = pa.Table.from_batches([batch for one in taken for batch in one.frames], SCHEMA)
        """The records that are not sealed, in any order, with the columns of `SCHEMA`."""

    @property
    def paths(self) -> list[str]:
        """Where the sealed files can be read, while this is open: with the columns of `FIGURES` beside the records."""
        return [str(_HELD / str(held.fd)) for held in self._held]

    @property
    def records(self) -> int:
        """How many there are in all."""
        return sum(part.records for part in self.parts)

    def damage(self) -> CorruptLog | None:
        """The error for a sealed file that does not have its checksums; None if all have. Reads every byte of them."""
        return next((_damaged_error(held) for held in self._held if not _is_whole(held)), None)

    def check_unchanged(self) -> None:
        """Raises CorruptLog if a sealed file was written to since it was opened: nobody may, and answers are void."""
        for held in self._held:
            if _file_stamp(held.fd) != held.written:
                raise CorruptLog(
                    f"{held.partition.path / held.entry.name} was written to while it was read, and sealed files never "
                    "change: the answer is worth nothing. Run `everlog log check --all`, and restore the file from a "
                    "backup if it is damaged."
                )

    def close(self) -> None:
        """Let go of the files. Idempotent."""
        _close_files(self._held)
        self._held = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def snapshot(store: FileStore, *, skip_damaged: bool = False) -> Snapshot:
    """The position of now. Every sealed file is checked, and nothing is read of a partition with damage, if
    `skip_damaged`. The limit of open files of this process is raised if it has to be. Raises CorruptLog, NewerFormat,
    StoreError.
    """
    try:
        return _snapshot(store, skip_damaged=skip_damaged)
    except StoreError as error:
        if not (isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EMFILE):
            raise
        raise StoreError(f"{store.root}: {too_few(_sealed(store))}") from error


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
            if not is_room(files):
                raise StoreError(f"{store.root}: {too_few(files)}")
            whole = bool(left_out) or not _is_torn(store, taken)
        finally:
            if not whole:
                _close_files([held for one in taken for held in one.held])
        if whole:
            return Snapshot(taken, left_out)
    raise StoreError(f"agents of {store.root} moved {TAKES_MAX} times while its position was taken. Try again.")


def _take(partition: Partition, *, check: bool) -> _PartitionSnapshot:
    """One partition. A file that goes meanwhile is in another by then, which the next manifest names."""
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
    """How many sealed files there are."""
    return sum(entry.kind == SEALED for name in store.partitions() for entry in load(store.partition(name)).files)


def _is_old(partition: Partition, manifest: Manifest) -> bool:
    with storage("list", partition.path):
        return (partition.numbers(MANIFEST) or [0])[-1] != manifest.number


def _hold(partition: Partition, entry: FileEntry) -> _OpenSealedFile:
    assert entry.parquet is not None
    path = partition.path / entry.name
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, "read", path) from error
    make_room(fd)
    held = _OpenSealedFile(partition, entry.parquet, fd, _file_stamp(fd))
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
    """The records of a file that is not sealed, and the last commit so far."""
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
    """Whether every part of an open file has its checksum, whatever has become of its name."""
    here = held.partition._replace(path=_HELD)
    return is_whole(here, msgspec.structs.replace(held.entry, name=str(held.fd)))


def _check_undamaged(held: Sequence[_OpenSealedFile]) -> None:
    for one in held:
        if not _is_whole(one):
            raise _damaged_error(one)


def _damaged_error(held: _OpenSealedFile) -> CorruptLog:
    return CorruptLog(
        f"{held.partition.path / held.entry.name} is damaged: it does not have its length or its checksums. Nothing "
        "was changed. `everlog log check --all` says where; restore the file from a backup."
    )


def _is_torn(store: FileStore, taken: Sequence[_PartitionSnapshot]) -> bool:
    """Whether an agent's records are missing between two partitions: it moved after the one was taken and before the
    other was. A fork began where it is.
    """
    arrivals = [arrival for one in taken for arrival in _arrivals(one)]
    if not arrivals:
        return False
    heads = [(one.part.partition, _heads(one)) for one in taken]
    return any(
        all(mine.get(name, 0) < seq - 1 for partition, mine in heads if partition != home)
        and (store.parent_of(name) or ("", 0))[1] != seq - 1
        for home, name, seq in arrivals
    )


def _arrivals(one: _PartitionSnapshot) -> Iterator[tuple[str, str, int]]:
    """Partition, agent and seq of each last arrival, and of the first record of each fork that is sealed."""
    for entry in one.manifest.files:
        for name, seq in entry.arrivals.items():
            yield one.part.partition, name, seq
    for batch in one.frames:
        for record in records_of(batch.filter(pc.equal(batch.column("type"), "agent_moved"))):
            move = move_in(record)
            if move is not None and move.direction == FROM:
                yield one.part.partition, record.agent_id, record.seq


def _heads(one: _PartitionSnapshot) -> Mapping[str, int]:
    heads = {name: seq for entry in one.manifest.files for name, (seq, _) in entry.chains.items()}
    for batch in one.frames:
        heads.update(zip(batch.column("agent_id").to_pylist(), batch.column("seq").to_pylist(), strict=True))
    return heads
