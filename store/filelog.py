"""The log in files, with its writer.

The order of a commit: admit, write the frame, fdatasync, look for a higher epoch, let the ledger take it in, return.
Invariant: `_poison` is set before the first byte is written and cleared after the acknowledgement only, so that a
writer which was interrupted anywhere in between never writes again.
"""

import threading
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from events import CorruptLog, Draft, Fenced, Poisoned, Record, StoreError

from .admission import ID_MEMORY_US, Group, Weighed
from .constants import SEGMENT_BYTES_MAX
from .contract import Append, Commit, Head
from .disk import storage_error
from .epoch import Ownership, take, this_process
from .group import GroupCommit, Result
from .manifest import succeed
from .names import name_of
from .openfile import OpenFile, commit_in
from .partition import Partition
from .reader import Reader
from .recovery import Recovered, recover


class FileLog:
    """One partition in files, with its writer. Thread-safe; see `store.Log` for what each method promises."""

    def __init__(self, partition: Partition, ownership: Ownership, recovered: Recovered, now: Callable[[], int],
                 segment_bytes_max: int) -> None:  # fmt: skip
        """Use `FileLog.open`."""
        self.cut = recovered.cut
        """The nonsense tail that was cut when the log was opened, kept beside as `.cut`; None if there was none."""
        self._where = partition
        self._ownership = ownership
        self._now = now
        self._segment_bytes_max = segment_bytes_max
        self._manifest = recovered.manifest
        self._file = recovered.file
        self._ledger = recovered.ledger
        self._indexes = recovered.indexes
        self._durable = (self._file.entry.name, self._file.length)
        self._reader = Reader(partition, lambda: self._durable)
        self._io = threading.Lock()
        self._group = GroupCommit(self._commit)
        self._closed = False
        self._fenced = False
        self._poison = ""

    @classmethod
    def open(cls, partition: Partition, command: str, now: Callable[[], int], *, label: str = "",
             take_over: bool = False, segment_bytes_max: int = SEGMENT_BYTES_MAX) -> "FileLog":  # fmt: skip
        """Take the next epoch, recover the tail, return the writer.

        `now` gives microseconds UTC; `label` is what a person calls the partition; a file of `segment_bytes_max` bytes
        is closed. Raises PartitionBusy, CorruptLog, NewerFormat, Fenced, StoreError.
        """
        ownership = take(partition, this_process(command, now()), label or partition.name, take_over=take_over)
        opened = False
        try:
            recovered = recover(partition, ownership, now())
            opened = True
        finally:
            if not opened:
                ownership.release()
        return cls(partition, ownership, recovered, now, segment_bytes_max)

    @property
    def partition(self) -> str:
        """Name of the partition."""
        return self._where.name

    @property
    def epoch(self) -> int:
        """The ownership generation that this writer holds, from 1."""
        return self._ownership.epoch

    def append(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append one commit and return when it is durable. Raises BadInput and every kind of StoreError."""
        (result,) = self._group.submit([Weighed(Append(agent_id, expected_seq, drafts))])
        if isinstance(result, StoreError):
            raise result
        return result

    def append_group(self, appends: Sequence[Append]) -> list[Commit | StoreError]:
        """Append many commits as one group. Raises BadInput, before anything is written, if any has a wrong shape."""
        return self._group.submit([Weighed(append) for append in appends])

    def agents(self) -> list[str]:
        """Ids of all agents with records here, sorted."""
        return sorted(self._ledger.heads)

    def head(self, agent_id: str) -> Head:
        """The end of the stream; Head(0, GENESIS) for an agent without records."""
        return self._ledger.head(name_of(agent_id))

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        """Records of one stream in order, `from_seq` to `to_seq` (both inclusive; None: to the head)."""
        return self._reader.read(agent_id, from_seq, to_seq)

    def table(self, agent_id: str | None = None) -> pa.Table:
        """Records of one stream (or of all) as an Arrow table of `store.SCHEMA`, in commit order."""
        return self._reader.table(agent_id)

    def close(self) -> None:
        """Give the partition up. Idempotent; waits for the group that is being written."""
        with self._io:
            if not self._closed:
                self._closed = True
                self._file.close()
                self._ownership.release()

    def _commit(self, appends: list[Weighed]) -> list[Result]:
        with self._io:
            self._refuse_if_unfit()
            group = Group(self._ledger, self._recall)
            results = [group.admit(append) for append in appends]
            if group.records:
                self._write(group)
            return results

    def _refuse_if_unfit(self) -> None:
        if self._fenced:
            raise Fenced(self._fenced_message())
        if self._closed:
            raise StoreError(f"the log {self._where.path} was closed; open it again.")
        if self._poison:
            raise Poisoned(f"an earlier append failed ({self._poison}); close the log and open it again.")

    def _write(self, group: Group) -> None:
        """Make the group durable and acknowledged, or raise."""
        self._poison = "it was interrupted"
        path = self._file.path
        doing = "close"
        try:
            if self._file.length >= self._segment_bytes_max:
                self._roll()
                path = self._file.path
            doing = "write"
            self._file.write(group.records, group.commits, self.epoch)
            doing = "sync"
            self._file.sync()
            doing = "look for a newer owner after writing"
            latest = self._ownership.is_latest()
        except OSError as error:
            failure = storage_error(error, doing, path)
            self._poison = str(failure)
            kept = "Nothing of it is kept" if doing in ("close", "write") else "Whether it is kept is seen then"
            raise StoreError(f"{failure} {kept}: the same events can be sent again safely.") from error
        if not latest:
            self._fenced = True
            raise Fenced(self._fenced_message())
        group.settle()
        self._durable = (self._file.entry.name, self._file.length)
        self._poison = ""

    def _roll(self) -> None:
        """Close the open file in a new manifest and begin the next one. May raise OSError, Fenced."""
        file = OpenFile.begin(self._where, self._ledger.commits + 1, self.epoch)
        closed = self._file.closed(self._ledger)
        manifest = succeed(self._where, self._manifest, self.epoch, [*self._manifest.files[:-1], closed, file.entry])
        if manifest is None:
            file.close()
            self._fenced = True
            raise Fenced(self._fenced_message())
        self._file.close()
        now = self._now()
        self._indexes = [i for i in (*self._indexes, self._file.index) if i.ids_to >= now - ID_MEMORY_US]
        self._ledger.ids.begin_generation(now)
        self._manifest, self._file = manifest, file

    def _recall(self, number: int) -> Sequence[Record]:
        """The records of a commit whose ids are remembered."""
        for index in (self._file.index, *self._indexes):
            try:
                records = commit_in(self._where, index, number)
            except OSError as error:
                raise storage_error(error, "read", self._where.path / index.name) from error
            if records:
                return records
        raise CorruptLog(
            f"{self._where.path}: commit {number} was there when the log was opened and cannot be read now. Nothing "
            "was changed. Look at the disk, then open the log again."
        )

    def _fenced_message(self) -> str:
        return (
            f"epoch {self.epoch} of {self._where.name} is over: a newer owner has the partition. This append was not "
            "acknowledged and this writer must stop."
        )
