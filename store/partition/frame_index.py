"""Index the frames of a file and the records of each agent in them; kept in memory by the owner of the partition.

With it, reading one agent of a partition that thousands share costs only the agent's own frames. It takes 16 bytes for
a frame and 24 for a commit, until the file is sealed. A reader without the index reads the file from its start.

Used by `open_segment`, `file_log` and `partition_reader`. Other threads read without a lock while one adds, so the
entry in `_last` is set after everything that it refers to.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from everlog.events import Record
from everlog.store.base.arrow_schema import SCHEMA, batch_in, records_of
from everlog.store.partition.frame import HEADER_BYTES, body_is_right, unpack
from everlog.store.partition.partition import Partition

FRAMES_AT_ONCE = 1024
"""Number of frames that are read together and returned as one table."""
GAP_BYTES_MAX = 64 * 1024
"""Gap between two wanted frames, in bytes, up to which one read covers both."""


class RecordRun(NamedTuple):
    """Consecutive records of one agent in a frame."""

    offset: int
    end: int
    """Offset of the byte after the frame."""
    row: int
    rows: int


class FrameIndex:
    """Frames of one file, in order. One thread adds frames; other threads may read meanwhile."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.end = 0
        """Offset of the byte after the last frame."""
        self._commits = array("q")
        self._offsets = array("q")
        self._last: dict[str, int] = {}
        """Last run of each agent: a position in the five arrays that follow."""
        self._frames = array("I")
        self._rows = array("I")
        self._counts = array("I")
        self._before = array("I")
        """Position of the agent's run before this run, counted from 1; 0 for none."""
        self._seqs = array("q")
        """Last seq of each run."""

    def add(self, records: Sequence[Record], offset: int, end: int) -> None:
        """Add a frame of `records` from byte `offset` to `end` (exclusive); frames are added in order."""
        self._commits.append(records[0].commit)
        self._offsets.append(offset)
        self.end = end
        start = 0
        for row in range(1, len(records)):
            if records[row].agent_id != records[start].agent_id:
                self._add_run(records[start].agent_id, start, row - start, records[row - 1].seq)
                start = row
        self._add_run(records[start].agent_id, start, len(records) - start, records[-1].seq)

    def _add_run(self, agent_id: str, row: int, count: int, seq: int) -> None:
        self._before.append(self._last.get(agent_id, -1) + 1)
        self._frames.append(len(self._offsets) - 1)
        self._rows.append(row)
        self._counts.append(count)
        self._seqs.append(seq)
        self._last[agent_id] = len(self._frames) - 1  # set last: a reader in another thread finds complete runs only

    def agents(self) -> list[str]:
        """Return the agents with records in the file, in no order."""
        return list(self._last)

    def runs(self, agent_id: str, from_seq: int, to_seq: int | None, end: int) -> list[RecordRun]:
        """Return the runs of an agent's records, in order, in frames up to byte `end`; both seqs are inclusive."""
        found = []
        place = self._last.get(agent_id, -1)
        while place >= 0 and self._seqs[place] >= from_seq:
            frame = self._frames[place]
            stop = self._offsets[frame + 1] if frame + 1 < len(self._offsets) else self.end
            if stop <= end and (to_seq is None or self._seqs[place] - self._counts[place] < to_seq):
                found.append(RecordRun(self._offsets[frame], stop, self._rows[place], self._counts[place]))
            place = self._before[place] - 1
        found.reverse()
        return found

    @property
    def last_offset(self) -> int:
        """Offset of the last frame; there must be one."""
        return self._offsets[-1]

    def offset_of(self, commit: int) -> int | None:
        """Return the offset of the frame that would hold `commit`; None if all frames begin after it."""
        position = bisect_right(self._commits, commit) - 1
        return self._offsets[position] if position >= 0 else None


def tables_at(partition: Partition, name: str, runs: Sequence[RecordRun]) -> Iterator[pa.Table | None]:
    """Yield the records of `runs` in a file. If a frame is missing or has changed, yield None and stop. May raise
    OSError.
    """
    for start in range(0, len(runs), FRAMES_AT_ONCE):
        batches = []
        for near in _neighbours(runs[start : start + FRAMES_AT_ONCE]):
            found = _batches_at(partition, name, near)
            if found is None:
                yield None
                return
            batches += found
        yield pa.Table.from_batches(batches, SCHEMA).combine_chunks()


def _neighbours(runs: Sequence[RecordRun]) -> Iterator[Sequence[RecordRun]]:
    """Yield `runs` in groups, each of which is read at once."""
    start = 0
    for position in range(1, len(runs)):
        if runs[position].offset - runs[position - 1].end > GAP_BYTES_MAX:
            yield runs[start:position]
            start = position
    yield runs[start:]


def _batches_at(partition: Partition, name: str, runs: Sequence[RecordRun]) -> list[pa.RecordBatch] | None:
    """Return the records of `runs`; None if a frame is missing or does not match its checksums."""
    begin = runs[0].offset
    data = partition.disk.read(partition.path / name, begin, runs[-1].end - begin)
    salt = partition.salt(name)
    buffer = pa.py_buffer(data)
    batches: list[pa.RecordBatch] = []
    checked = -1
    for run in runs:
        if run.offset != checked:
            header = unpack(salt, run.offset, data, at=run.offset - begin)
            body = buffer.slice(run.offset - begin + HEADER_BYTES, run.end - run.offset - HEADER_BYTES)
            if header is None or not body_is_right(header, body):
                return None
            frame, checked = batch_in(body), run.offset
        batches.append(frame.slice(run.row, run.rows))
    return batches


def commit_in(partition: Partition, index: FrameIndex, commit: int) -> list[Record]:
    """Return the records of one commit, read back from the file of `index`; empty if they are not there. May raise
    OSError.
    """
    offset = index.offset_of(commit)
    if offset is None:
        return []
    path = partition.path / index.name
    head = partition.disk.read(path, offset, HEADER_BYTES)
    header = unpack(partition.salt(index.name), offset, head, at=0)
    if header is None:
        return []
    body = pa.py_buffer(partition.disk.read(path, offset + HEADER_BYTES, header.body_bytes))
    if not body_is_right(header, body):
        return []
    return [record for record in records_of(batch_in(body)) if record.commit == commit]
