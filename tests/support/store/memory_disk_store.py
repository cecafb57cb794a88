"""A store on a disk in memory, and helpers for tests of crashes and faults."""

from collections.abc import Iterable
from pathlib import Path

from everlog.events import Draft, Record
from everlog.store import FileLog, FileStore, Partition, partition_of
from everlog.store.base.names import hash_of
from everlog.store.partition.segment import FrameScan
from tests.contract.log_contract import Drafts
from tests.store.conftest import now
from tests.support.store.faulty_disk import FaultyDisk, Inode

ROOT = Path("/sim")
AGENT = "sam"
WHERE = partition_of(AGENT)


def begun(segment_bytes_max: int = 10**6) -> tuple[FaultyDisk, FileStore]:
    """Return a new disk and a store on it, with sam registered."""
    disk = FaultyDisk()
    store = FileStore.create(ROOT, now, "sim", disk=disk, segment_bytes_max=segment_bytes_max)
    store.register(AGENT)
    return disk, store


def store_on(disk: FaultyDisk, segment_bytes_max: int = 10**6) -> FileStore:
    """Return the store as the next process opens it."""
    return FileStore(ROOT, now, disk=disk, segment_bytes_max=segment_bytes_max)


def partition_on(disk: FaultyDisk) -> Partition:
    """Return the partition of sam."""
    return Partition(disk, ROOT / "log" / WHERE, WHERE, "sim")


def fill(store: FileStore, appends: Iterable[tuple[str, int]], drafts: Drafts) -> list[list[Record]]:
    """Append to the partition of sam, one frame for each (agent, number of events), and close it."""
    log = store.open(AGENT, "fill")
    commits = [list(append(log, agent_id, drafts.some(count))) for agent_id, count in appends]
    log.close()
    return commits


def unbegin(disk: FaultyDisk) -> None:
    """Put back the mark that sam has no record: the disk is as before the first commit was acknowledged."""
    name = hash_of(AGENT)
    path = ROOT / "agents" / name[:2] / f"{name}.new"
    disk.files[path] = disk.durable_names[path] = Inode()


def append(log: FileLog, agent_id: str, drafts: list[Draft]) -> list[Record]:
    """Append at the head."""
    return list(log.append(agent_id, log.head(agent_id).seq, drafts).records)


def open_files(disk: FaultyDisk) -> list[tuple[Path, Inode]]:
    """Return the files of frames, in the order of their commits."""
    return sorted((path, inode) for path, inode in disk.files.items() if path.suffix == ".open")


def cuts(disk: FaultyDisk) -> list[bytes]:
    """Return the tails that were cut and kept."""
    return [bytes(inode.content) for path, inode in disk.files.items() if path.suffix == ".cut"]


def ends_of(disk: FaultyDisk, path: Path) -> list[int]:
    """Return the offsets at which the frames of a file begin, and the end of the last frame."""
    first_commit = int(path.name.partition("-")[0])
    data = bytes(disk.files[path].content)
    return [0, *(frame.end for frame in FrameScan(data, partition_on(disk).salt(path.name), first_commit, str(path)))]
