"""Where the frames of a file are, and where in them the records of each agent: what its owner keeps in memory.

So reading one agent of a partition that thousands share costs what its own frames cost. It takes 16 bytes for a frame
and 24 for a commit, until the file is sealed; a reader that has none of this reads the file from its start.
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
"""Frames that are read, and given as one table, together."""
GAP_BYTES_MAX = 64 * 1024
"""Bytes between two wanted frames that are read rather than asked for a second time."""


class RecordRun(NamedTuple):
    """Records of one agent, side by side in a frame."""

    offset: int
    end: int
    """Offset of the byte after the frame."""
    row: int
    rows: int


class FrameIndex:
    """The frames of one file, in order. One thread adds; others may look meanwhile."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.end = 0
        """Offset of the byte after the last frame."""
        self._commits = array("q")
        self._offsets = array("q")
        self._last: dict[str, int] = {}
        """The last run of each agent: a place in the four arrays that follow."""
        self._frames = array("I")
        self._rows = array("I")
        self._counts = array("I")
        self._before = array("I")
        """The agent's run before this one, counted from 1; 0 for none."""
        self._seqs = array("q")
        """Last seq of each run."""

    def add(self, records: Sequence[Record], offset: int, end: int) -> None:
        """Note a frame of `records` from byte `offset` to `end` (exclusive); frames come in order."""
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
        self._last[agent_id] = len(self._frames) - 1  # last: whoever looks meanwhile finds all of it

    def agents(self) -> list[str]:
        """The agents with records in the file, in no order."""
        return list(self._last)

    def runs(self, agent_id: str, from_seq: int, to_seq: int | None, end: int) -> list[RecordRun]:
        """Where the records of an agent are, in order, in frames up to byte `end`; both seqs are inclusive."""
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
        """Offset of the frame that would hold `commit`; None if all frames begin after it."""
        position = bisect_right(self._commits, commit) - 1
        return self._offsets[position] if position >= 0 else None


def tables_at(partition: Partition, name: str, runs: Sequence[RecordRun]) -> Iterator[pa.Table | None]:
    """The records of `runs` in a file; None, and no more, where a frame is not what it was. May raise OSError."""
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
    """`runs` in pieces, each of which is read at once."""
    start = 0
    for position in range(1, len(runs)):
        if runs[position].offset - runs[position - 1].end > GAP_BYTES_MAX:
            yield runs[start:position]
            start = position
    yield runs[start:]


def _batches_at(partition: Partition, name: str, runs: Sequence[RecordRun]) -> list[pa.RecordBatch] | None:
    """The records of `runs`; None if a frame is not there or does not have its checksums."""
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
    """The records of one commit, read back from the file of `index`; empty if they are not there. May raise OSError."""
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
