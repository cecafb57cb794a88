"""Reading a file of frames: where the whole frames end, and what the bytes after them are.

Only one frame is ever un-synced. So if a whole frame with a higher commit lies beyond a bad place, the bad place was
synced and has rotted since: damage, for ever an error. If none does, it is the nonsense tail of a write that never was
acknowledged. The search looks at each byte once: it is linear.
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
"""Agents whose next seq an error message names."""


class Frame(NamedTuple):
    """A whole frame of a file, checked."""

    offset: int
    end: int
    """Offset of the byte after it."""
    header: FrameHeader
    body: pa.Buffer
    path: str

    @property
    def batch(self) -> pa.RecordBatch:
        """Its records, without a copy. Raises CorruptLog if the body, right as its checksums are, holds none."""
        try:
            return batch_in(self.body)
        except pa.ArrowException as error:
            raise CorruptLog(
                f"{self.path} has a frame at byte {self.offset}, of commit {self.header.first_commit}, that has its "
                f"checksums and holds no records: {error}. Nothing was changed. Restore the file from a backup."
            ) from error

    @property
    def last_commit(self) -> int:
        """Number of the last commit in it."""
        return self.header.first_commit + self.header.commits - 1


class FrameScan:
    """One pass over the bytes of a file. Iterate it; afterwards `end`, `tail_bytes` and `later` say what was found."""

    def __init__(self, data: bytes, salt: int, first_commit: int, path: str) -> None:
        """Scan `data`, the file from its start, whose first frame must begin with `first_commit`."""
        self._data = data
        self._buffer = pa.py_buffer(data)
        self._salt = salt
        self._path = path
        self.end = 0
        """Offset of the byte after the last whole frame that follows the one before it."""
        self.next_commit = first_commit
        """Number of the commit that would come next."""
        self.epoch = 0
        """Epoch of the last frame, 0 before the first."""
        self.previous = 0
        """Header CRC of the last frame, 0 before the first."""
        self.later: Frame | None = None
        """A whole frame beyond a bad place: the bytes at `end` are damaged, not torn."""

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
        """Bytes after the last whole frame; valid once the iteration has ended."""
        return len(self._data) - self.end

    def _follows(self, header: FrameHeader) -> bool:
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
    """The error for damage at the end of `scan`; `heads` are the last seqs of the streams before the file."""
    seqs = dict(heads)
    for frame in FrameScan(data[: scan.end], salt, first_commit, path):
        batch = frame.batch
        seqs.update(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True))
    shown = ", ".join(f"{agent_id!r} seq {seq + 1}" for agent_id, seq in sorted(seqs.items())[:AGENTS_SHOWN_MAX])
    shown = shown or "seq 1"
    more = f" and {len(seqs) - AGENTS_SHOWN_MAX} more agents" if len(seqs) > AGENTS_SHOWN_MAX else ""
    later = f"; whole frames go on at byte {scan.later.offset}" if scan.later else ""
    return CorruptLog(
        f"{path} is damaged at byte {scan.end}, where commit {scan.next_commit} should begin (next: {shown}{more})"
        f"{later}. Nothing was changed and what lies before can still be read. Restore the file from a backup."
    )


def closed_frames(partition: Partition, entry: FileEntry, manifest: Manifest) -> Iterator[Frame]:
    """The frames of a closed file. Raises FileNotFoundError; CorruptLog, once all before the damage was given."""
    path = partition.path / entry.name
    with read_errors(path):
        data = partition.disk.read(path, 0, entry.bytes)
    salt = partition.salt(entry.name)
    scan = FrameScan(data, salt, entry.first_commit, str(path))
    yield from scan
    if scan.end != entry.bytes or scan.next_commit != entry.last_commit + 1:
        raise corrupt_error(scan, data, salt, entry.first_commit, str(path), heads_before(manifest, entry))


def heads_before(manifest: Manifest, entry: FileEntry) -> dict[str, int]:
    """Last seq of each stream before a file."""
    earlier = [other for other in manifest.files if other.first_commit < entry.first_commit]
    return {agent_id: seq for other in earlier for agent_id, (seq, _) in other.chains.items()}


def missing_file_error(path: str, first_commit: int) -> CorruptLog:
    """The error for a file that the manifest names and that is not there."""
    return CorruptLog(
        f"{path} is gone, but the manifest names it: commits from {first_commit} on are missing. Nothing was changed. "
        "Restore the file from a backup."
    )
