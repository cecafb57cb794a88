"""Count the content of a partition and its size on disk. Reads the manifest and frames, but no sealed file.

Used by `everlog log stats`.
"""

import errno
from collections.abc import Iterable

import msgspec

from everlog.events import StoreError
from everlog.store.base.arrow_schema import text_bytes
from everlog.store.base.disk import storage
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.partition.manifest import FRAMES, OPEN, READ_ATTEMPTS_MAX, SEALED, FileEntry, Manifest, load
from everlog.store.partition.partition import MANIFEST, Partition
from everlog.store.partition.segment import FrameScan, missing_file_error


class FileTotals(msgspec.Struct):
    """Number and size of the files of one kind."""

    files: int = 0
    bytes: int = 0

    def add(self, count: int) -> None:
        """Add one file of `count` bytes."""
        self.files += 1
        self.bytes += count


class PartitionStats(msgspec.Struct):
    """Result of `stats`."""

    agents: int = 0
    commits: int = 0
    records: int = 0
    text_bytes: int = 0
    """UTF-8 bytes of text and payload of the records: the base of `amplification`."""
    open: FileTotals = msgspec.field(default_factory=FileTotals)
    """Open file of frames, growing."""
    frames: FileTotals = msgspec.field(default_factory=FileTotals)
    """Files of frames that are closed and not sealed yet."""
    sealed: FileTotals = msgspec.field(default_factory=FileTotals)
    states: FileTotals = msgspec.field(default_factory=FileTotals)
    """States and checkpoints: derived, and derived again if they are lost."""
    other: FileTotals = msgspec.field(default_factory=FileTotals)
    """Manifests, epochs, saved tails (`.cut`), leftovers."""

    @classmethod
    def sum(cls, found: Iterable["PartitionStats"]) -> "PartitionStats":
        """Return the totals of several partitions."""
        together = cls()
        for stats in found:
            for name in ("agents", "commits", "records", "text_bytes"):
                setattr(together, name, getattr(together, name) + getattr(stats, name))
            for name in ("open", "frames", "sealed", "states", "other"):
                mine, theirs = getattr(together, name), getattr(stats, name)
                mine.files += theirs.files
                mine.bytes += theirs.bytes
        return together

    @property
    def all(self) -> FileTotals:
        """Total of all files in the folder."""
        kinds = (self.open, self.frames, self.sealed, self.states, self.other)
        return FileTotals(sum(kind.files for kind in kinds), sum(kind.bytes for kind in kinds))

    @property
    def amplification(self) -> float | None:
        """Bytes of all files in the folder for each byte of text and payload; None if there is no text or payload."""
        return self.all.bytes / self.text_bytes if self.text_bytes else None


def stats(partition: Partition) -> PartitionStats:
    """Count a partition, which its owner may write to meanwhile. Raises CorruptLog, NewerFormat, StoreError."""
    with storage("count", partition.path):
        for _ in range(READ_ATTEMPTS_MAX):
            manifest = load(partition)
            try:
                return _count_records(partition, manifest)
            except FileNotFoundError as error:
                if partition.numbers(MANIFEST)[-1:] == [manifest.number]:
                    lost = next(entry for entry in manifest.files if str(error.filename).endswith(entry.name))
                    raise missing_file_error(str(error.filename), lost.first_commit) from error
    raise StoreError(f"{partition.path}: the manifest changed {READ_ATTEMPTS_MAX} times while it was read. Try again.")


def _count_records(partition: Partition, manifest: Manifest) -> PartitionStats:
    found = PartitionStats(commits=manifest.covered_to())
    agents = set(manifest.closed_heads())
    for entry in manifest.files:
        if entry.kind == SEALED:
            found.records += entry.records
            found.text_bytes += entry.text_bytes
        else:
            agents |= _frames(partition, entry, found)
    found.agents = len(agents)
    _weigh(partition, manifest, found)
    return found


def _frames(partition: Partition, entry: FileEntry, found: PartitionStats) -> set[str]:
    """Count the whole frames of a file; return the agents in them."""
    path = partition.path / entry.name
    data = partition.disk.read(path, 0, entry.bytes if entry.kind == FRAMES else None)
    scan = FrameScan(data, partition.salt(entry.name), entry.first_commit, str(path))
    agents: set[str] = set()
    for frame in scan:
        batch = frame.batch
        found.records += batch.num_rows
        found.text_bytes += text_bytes(batch)
        agents.update(pc.unique(batch.column("agent_id")).to_pylist())
    if entry.kind == OPEN:
        found.commits = scan.next_commit - 1
    return agents


def _weigh(partition: Partition, manifest: Manifest, found: PartitionStats) -> None:
    """Add every file of the folder to its kind, with all of its bytes; of files of known length only the rest is
    read.
    """
    kinds = {OPEN: found.open, FRAMES: found.frames, SEALED: found.sealed}
    live: dict[str, tuple[FileTotals, int]] = {}
    for entry in manifest.files:
        live[entry.name] = kinds[entry.kind], entry.bytes
        for derived in (entry.state, entry.checkpoints):
            if derived is not None:
                live[derived.name] = found.states, derived.bytes
    names = partition.disk.names(partition.path)
    for entry in manifest.files:
        if entry.name not in names:
            raise FileNotFoundError(errno.ENOENT, "missing", str(partition.path / entry.name))
    for name in names:
        kind, known = live.get(name, (found.other, 0))
        try:
            beyond = len(partition.disk.read(partition.path / name, known))
        except FileNotFoundError:  # swept meanwhile, or sealed: its records are counted already
            continue
        kind.add(known + beyond)
