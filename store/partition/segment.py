"""Read a file of frames: find the end of the whole frames, and classify the bytes after it.

At most one frame is not yet synced at any time. So if a whole frame with a higher commit lies beyond a bad place, the
bad place had been synced and was damaged later: a permanent error. If none does, the bad place is the nonsense tail of
a write that was never acknowledged. The search looks at each byte once: it is linear.

Used by `partition_recovery`, `seal_pass` and the checks.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from everlog.events import CorruptLog, NewerFormat
from everlog.store.base.arrow_schema import batch_in
from everlog.store.base.disk import read_errors
from everlog.store.base.store_constants import FORMAT_VERSION
from everlog.store.partition.frame import HEADER_BYTES, MAGIC, FrameHeader, body_is_right, unpack
from everlog.store.partition.manifest import FileEntry, Manifest
from everlog.store.partition.partition import Partition

AGENTS_SHOWN_MAX = 3
"""Number of agents whose next seq an error message names."""


class Frame(NamedTuple):
    """A whole frame of a file, verified by its checksums."""

    offset: int
    end: int
    """Offset of the byte after the frame."""
    header: FrameHeader
    body: pa.Buffer
    path: str

    @property
    def batch(self) -> pa.RecordBatch:
        """Records of the frame, without a copy. Raises CorruptLog if the body matches its checksums but holds no
        records.
        """
        try:
            return batch_in(self.body)
        except pa.ArrowException as error:
            raise CorruptLog(
                f"{self.path}: the frame at byte {self.offset}, of commit {self.header.first_commit}, has right "
                f"checksums but holds no records: {error}. Nothing was changed. Restore the file from a backup."
            ) from error

    @property
    def last_commit(self) -> int:
        """Number of the last commit in the frame."""
        return self.header.first_commit + self.header.commits - 1


class FrameScan:
    """One pass over the bytes of a file. Iterate over it; afterwards `end`, `tail_bytes` and `later` hold the
    findings.
    """

    def __init__(self, data: bytes, salt: int, first_commit: int, path: str) -> None:
        """Scan `data`, the file from its start, whose first frame must begin with `first_commit`."""
        self._data = data
        self._buffer = pa.py_buffer(data)
        self._salt = salt
        self._path = path
        self.end = 0
        """Offset of the byte after the last whole frame that follows the frame before it."""
        self.next_commit = first_commit
        """Number of the commit that would come next."""
        self.epoch = 0
        """Epoch of the last frame, 0 before the first."""
        self.previous = 0
        """Header CRC of the last frame, 0 before the first."""
        self.later: Frame | None = None
        """A whole frame beyond a bad place, if there is one: then the bytes at `end` are damaged, not torn."""

    def __iter__(self) -> Iterator[Frame]:
        while self.end < len(self._data):
            frame = self._frame_at(self.end)
            if frame is None or not self._follows(frame.header):
                self.later = self._whole_frame_beyond()
                return
            self.end = frame.end
            self.next_commit = frame.last_commit + 1
            self.epoch = frame.header.epoch
            self.previous = frame.header.crc
            yield frame

    @property
    def tail_bytes(self) -> int:
        """Number of bytes after the last whole frame; valid once the iteration has ended."""
        return len(self._data) - self.end

    def _follows(self, header: FrameHeader) -> bool:
        # A frame of another file or an older epoch can have right checksums: commit, epoch and the previous CRC must
        # continue too.
        return (
            header.first_commit == self.next_commit and header.epoch >= self.epoch and header.previous == self.previous
        )

    def _frame_at(self, offset: int) -> Frame | None:
        header = unpack(self._salt, offset, self._data)
        if header is None:
            return None
        if header.version > FORMAT_VERSION:
            raise NewerFormat(
                f"{self._path} has a frame of format {header.version} at byte {offset}, but this everlog knows formats "
                f"up to {FORMAT_VERSION}. Nothing was changed. Use a newer everlog."
            )
        start = offset + HEADER_BYTES
        body = self._buffer.slice(start, min(header.body_bytes, len(self._data) - start))
        return Frame(offset, start + body.size, header, body, self._path) if body_is_right(header, body) else None

    def _whole_frame_beyond(self) -> Frame | None:
        offset = self._data.find(MAGIC, self.end + 1)
        while offset >= 0:
            frame = self._frame_at(offset)
            if frame is not None and frame.header.first_commit > self.next_commit and frame.header.epoch >= self.epoch:
                return frame
            offset = self._data.find(MAGIC, offset + 1)
        return None


def corrupt_error(
    scan: FrameScan, data: bytes, salt: int, first_commit: int, path: str, heads: dict[str, int]
) -> CorruptLog:
    """Return the error for damage at the end of `scan`; `heads` are the last seqs of the streams before the file."""
    seqs = dict(heads)
    for frame in FrameScan(data[: scan.end], salt, first_commit, path):
        batch = frame.batch
        seqs.update(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True))
    shown = ", ".join(f"{agent_id!r} seq {seq + 1}" for agent_id, seq in sorted(seqs.items())[:AGENTS_SHOWN_MAX])
    shown = shown or "seq 1"
    more = f" and {len(seqs) - AGENTS_SHOWN_MAX} more agents" if len(seqs) > AGENTS_SHOWN_MAX else ""
    later = f"; intact frames follow at byte {scan.later.offset}" if scan.later else ""
    return CorruptLog(
        f"{path} is damaged at byte {scan.end}, where commit {scan.next_commit} should begin (next: {shown}{more})"
        f"{later}. Nothing was changed, and the records before it can still be read. Restore the file from a backup."
    )


def closed_frames(partition: Partition, entry: FileEntry, manifest: Manifest) -> Iterator[Frame]:
    """Yield the frames of a closed file. Raises FileNotFoundError; CorruptLog after all frames before the damage."""
    path = partition.path / entry.name
    with read_errors(path):
        data = partition.disk.read(path, 0, entry.bytes)
    salt = partition.salt(entry.name)
    scan = FrameScan(data, salt, entry.first_commit, str(path))
    yield from scan
    if scan.end != entry.bytes or scan.next_commit != entry.last_commit + 1:
        raise corrupt_error(scan, data, salt, entry.first_commit, str(path), heads_before(manifest, entry))


def heads_before(manifest: Manifest, entry: FileEntry) -> dict[str, int]:
    """Return the last seq of each stream before a file."""
    earlier = [other for other in manifest.files if other.first_commit < entry.first_commit]
    return {agent_id: seq for other in earlier for agent_id, (seq, _) in other.chains.items()}


def missing_file_error(path: str, first_commit: int) -> CorruptLog:
    """Return the error for a file that the manifest names and that does not exist."""
    return CorruptLog(
        f"{path} is gone, but the manifest names it: commits from {first_commit} on are missing. Nothing was changed. "
        "Restore the file from a backup."
    )
