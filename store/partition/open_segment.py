"""Append frames to the open file of a writer, and describe the file for the manifest when it is closed.

Used by `FileLog` and `partition_recovery`. A frame that was written counts only after `sync`, and the name of a new
file is durable before a manifest names it.
"""

import hashlib
from collections.abc import Sequence

from everlog.events import AgentForked, AgentMoved, Record, RecordsErased
from everlog.store.base.arrow_schema import body_of
from everlog.store.base.disk import DiskFile
from everlog.store.base.move_records import starts_from_elsewhere
from everlog.store.partition.append_rules import StreamHeads
from everlog.store.partition.closed_mark import ClosedMark
from everlog.store.partition.frame import HEADER_BYTES, pack
from everlog.store.partition.frame_index import FrameIndex
from everlog.store.partition.manifest import FRAMES, OPEN, FileEntry, chains_of
from everlog.store.partition.partition import Partition, open_name
from everlog.store.partition.segment import Frame


class OpenSegment:
    """A file of frames that grows. `write`, then `sync`: written frames count only after `sync`."""

    def __init__(self, partition: Partition, entry: FileEntry, file: DiskFile) -> None:
        """Wrap an empty file; `import_messages` adds the frames that the file already has."""
        self.entry = entry
        self.path = partition.path / entry.name
        self.index = FrameIndex(entry.name)
        self.length = 0
        """Bytes in whole frames."""
        self.records = 0
        self.erasures = 0
        """Number of `records_erased` in the file, each of which is carried out when the file is sealed."""
        self.arrivals: dict[str, int] = {}
        """Streams that arrived from another partition, or were forked, in the file: seq of the last record that says
        so.
        """
        self._salt = partition.salt(entry.name)
        self._file = file
        self._previous = 0
        self._sha256 = hashlib.sha256()

    @classmethod
    def begin(cls, partition: Partition, first_commit: int, epoch: int) -> "OpenSegment":
        """Create a file whose name is durable and which no manifest names yet. May raise OSError."""
        entry = FileEntry(open_name(first_commit, epoch), OPEN, first_commit)
        path = partition.path / entry.name
        try:
            file = partition.disk.create(path)
        except FileExistsError:  # left empty by an earlier attempt of the same epoch
            file = partition.disk.open(path)
        # The name is durable before a manifest names the file and before any commit in it is acknowledged.
        partition.disk.sync_dir(partition.path)
        return cls(partition, entry, file)

    def import_messages(self, frame: Frame, data: bytes, records: Sequence[Record]) -> None:
        """Add a frame that the file already has; `data` is the file from its start."""
        self.index.add(records, frame.offset, frame.end)
        self._count(records)
        self._sha256.update(memoryview(data)[frame.offset : frame.end])
        self._previous = frame.header.crc
        self.length = frame.end

    def write(self, records: Sequence[Record], commits: int, epoch: int) -> None:
        """Append `records`, which are `commits` whole commits, as one frame. Not durable yet. May raise OSError."""
        body = body_of(records)
        header, crc = pack(
            self._salt,
            self.length,
            body,
            epoch=epoch,
            first_commit=records[0].commit,
            commits=commits,
            records=len(records),
            previous=self._previous,
        )
        self._file.write([header, body], self.length)
        end = self.length + HEADER_BYTES + len(body)
        self.index.add(records, self.length, end)
        self._count(records)
        self._sha256.update(header)
        self._sha256.update(body)
        self._previous = crc
        self.length = end

    def _count(self, records: Sequence[Record]) -> None:
        self.records += len(records)
        for record in records:
            if record.type == RecordsErased.kind:
                self.erasures += 1
            elif record.type in (AgentMoved.kind, AgentForked.kind) and starts_from_elsewhere(record):
                self.arrivals[record.agent_id] = record.seq

    def sync(self) -> None:
        """Make the written frames durable. May raise OSError."""
        self._file.sync()

    def settle(self, data: bytes) -> None:
        """Make the last added frame durable; `data` is the file from its start. May raise OSError.

        The frame is written again first: after a failed sync the system may regard the page as clean, and a sync alone
        would not write the page.
        """
        if self.length:
            start = self.index.last_offset
            self._file.write([memoryview(data)[start : self.length]], start)
        self._file.sync()

    def closed(self, ledger: StreamHeads) -> FileEntry:
        """Return the entry of a manifest for the file, closed in its current state."""
        heads = {agent_id: ledger.heads[agent_id] for agent_id in self.index.agents()}
        return FileEntry(
            self.entry.name,
            FRAMES,
            self.entry.first_commit,
            ledger.commits,
            self.length,
            self._sha256.hexdigest(),
            ledger.ids.newest,
            chains_of(heads),
            away=sorted(agent_id for agent_id, head in heads.items() if head.away),
            arrivals=dict(sorted(self.arrivals.items())),
            records=self.records,
            erasures=self.erasures,
        )

    def mark(self, commits: int, epoch: int) -> ClosedMark | None:
        """Return the mark of the file in its current state, whose last commit is `commits`; None if it has no frame."""
        if not self.length:
            return None
        return ClosedMark(self.entry.name, self.length, commits, self._previous, epoch)

    @property
    def is_ended(self) -> bool:
        """True if a new owner has ended the file for all writers, see `Disk.end`."""
        return self._file.is_ended

    def cut(self) -> None:
        """Truncate the bytes after the last whole frame, durably. May raise OSError."""
        self._file.truncate(self.length)
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
