"""Find and open the partitions of a store in a folder, also while a restore fills them.

The file `<root>/log/<partition>/restoring` exists until the restore of the partition is complete.

Used by `FileStore`.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa

from everlog.events import BadInput, UsageError
from everlog.store.backup.restore_service import COMMAND
from everlog.store.base.arrow_schema import SCHEMA, batch_of
from everlog.store.base.disk import Disk, parse_json, publish, remove_if_there, storage
from everlog.store.base.export_types import ExportedStream
from everlog.store.base.names import partition_of
from everlog.store.log.file_log import FileLog
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.log.partition_recovery import RESTORING
from everlog.store.partition.epoch import HostMark
from everlog.store.partition.partition import EPOCH, MANIFEST, Partition, token
from everlog.store.streams.register import Register, missing_log_error
from everlog.store.streams.routes import Routes
from everlog.store.streams.stream_evidence import StreamEvidence


class FileOpener:
    """Finds and opens the partitions of a store in a folder."""

    def __init__(self, disk: Disk, root: Path, store_id: str, register: Register, evidence: StreamEvidence,
                 now: Callable[[], int], segment_bytes_max: int, mark: HostMark) -> None:  # fmt: skip
        """Store the collaborators. `now` returns microseconds UTC; a file of a log that has `segment_bytes_max` bytes
        is closed; `mark` is shown by the logs that are opened.
        """
        self.disk = disk
        self.routes = Routes(
            register, self._reader_of,
            evidence.check_unknown, evidence.check_unknown_fork,
        )  # fmt: skip
        """Routes of all streams, read from this folder."""
        self._root = root
        self._store_id = store_id
        self._register = register
        self._now = now
        self._segment_bytes_max = segment_bytes_max
        self._mark = mark

    def partition(self, name: str) -> Partition:
        """Return the location of the partition `name`, which need not exist."""
        return Partition(self.disk, self._root / "log" / name, name, self._store_id)

    def partitions(self, *, restoring: bool = False) -> list[str]:
        """Return the names of all partitions, sorted; with `restoring` also those with an unfinished restore."""
        folder = self._root / "log"
        with storage("list the partitions in", folder):
            names = sorted(self.disk.names(folder)) if self.disk.exists(folder) else []
        return [name for name in names if restoring or not self._is_marked(name)]

    def _reader_of(self, name: str, of: str) -> PartitionReader:
        """Return a reader of an agent's partition. Raises CorruptLog if its folder is missing: at once on a disk; in a
        bucket, where each look takes a request, when a read finds no manifest.
        """
        if not self.disk.ends_files:
            self.check_there(name, of)
            return PartitionReader(self.partition(of))
        return PartitionReader(self.partition(of), check_there=lambda: self.check_there(name, of))

    def check_there(self, name: str, of: str) -> None:
        """Raise CorruptLog if the folder of an agent's partition is missing: it was created before the agent was
        registered.
        """
        path = self.partition(of).path
        with storage("look for", path):
            there = self.disk.exists(path)
        if not there:
            raise missing_log_error(path, [name])

    def open(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> FileLog:
        """Own a partition by its name; `label` is its name in errors. Raises the errors of `FileLog.open`.

        Raises CorruptLog if its files are missing although agents have begun in it: they are never made again.
        """
        self._check_not_lost(partition)
        self._release_if_complete(partition)
        return self._opened(partition, command, label=label, take_over=take_over)

    def _check_not_lost(self, name: str) -> None:
        partition = self.partition(name)
        with storage("look for", partition.path):
            self._register.check_partition(name)
            if partition.numbers(EPOCH) or partition.numbers(MANIFEST):
                return
        for agent_id in self._register.inside(name):  # no process has opened the partition, or all its files are lost
            if self.routes.partition_of(agent_id) == name:
                self.routes.check_not_lost(agent_id)

    def _opened(self, partition: str, command: str, *, label: str, take_over: bool = False, restoring: bool = False
                ) -> FileLog:  # fmt: skip
        return FileLog.open(
            self.partition(partition),
            command,
            self._now,
            label=label,
            take_over=take_over,
            segment_bytes_max=self._segment_bytes_max,
            history=self._history,
            restoring=restoring,
            begun=self._register.begun,
            mark=self._mark,
        )

    def _history(self, agent_id: str) -> pa.Table:
        """Return all records of an agent, as they were written."""
        records = list(self.routes.reader(agent_id).read(agent_id))
        return pa.Table.from_batches([batch_of(records)] if records else [], SCHEMA)

    def check_not_restoring(self, name: str) -> None:
        """Raise UsageError if the name is not registered yet and a restore is about to register it."""
        if self.is_restoring(name) and self._register.find(name) is None:
            raise UsageError(
                f"A restore of {name!r} was interrupted, or is running now. Finish it with the same `{COMMAND}`; or, "
                f"if the export is lost, remove {self._mark_of(partition_of(name)).parent}: no agent has used that "
                "folder yet."
            )

    def open_restoring(self, stream: ExportedStream) -> FileLog:
        """Own the partition of an unregistered name, and write into its mark which stream is restored there."""
        name = partition_of(stream.agent_id)
        path = self._mark_of(name)
        content = msgspec.json.encode(_Mark(stream.agent_id, stream.to_seq, stream.chain))
        # The mark comes first: a folder with files of a log, without the mark and without its name in the register,
        # is a log whose name the register has lost.
        with storage("restore into", path):
            self.disk.make_dirs(path.parent)
            if not publish(self.disk, path, content, token()) and self.disk.read(path) != content:
                raise BadInput(
                    f"A restore of another export of {stream.agent_id!r} was interrupted. Finish it with that export; "
                    f"or, if that is lost, remove {path.parent}: no agent has used that folder yet."
                )
        return self._opened(name, COMMAND, label=stream.agent_id, restoring=True)

    def _release_if_complete(self, partition: str) -> None:
        """Remove the mark of a completed restore that was interrupted before it removed the mark."""
        if not self._is_marked(partition):
            return
        path = self._mark_of(partition)
        with storage("read", path):
            content = self.disk.read(path)
        mark = parse_json(content, _Mark, path)
        name = mark.agent_id
        assignment = self._register.find(name)  # registered last, so a registered name means that all records are there
        if assignment is None or assignment.partition != partition:
            return
        reader = self.routes.reader(name)
        if reader.head(name).seq >= mark.seq and reader.chain(name, mark.seq).hex() == mark.chain:
            self.release_restored(name)

    def _mark_of(self, partition: str) -> Path:
        return self._root / "log" / partition / RESTORING

    def _is_marked(self, partition: str) -> bool:
        path = self._mark_of(partition)
        with storage("look for", path):
            return self.disk.exists(path)

    def is_restoring(self, agent_id: str) -> bool:
        return self._is_marked(partition_of(agent_id))

    def release_restored(self, agent_id: str) -> None:
        """Allow every process to open the partition. Call it when all records are there."""
        if self.is_restoring(agent_id):
            path = self._mark_of(partition_of(agent_id))
            with storage("restore into", path):
                remove_if_there(self.disk, path)
                self.disk.sync_dir(path.parent)


class _Mark(msgspec.Struct, array_like=True):
    """Content of the file `restoring`: the agent, the last seq to restore, and the chain value at that seq."""

    agent_id: str
    seq: int
    chain: str
