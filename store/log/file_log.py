"""Write a log in files.

The order of a commit: admit, write the frame, fdatasync, check for a higher epoch, update the StreamHeads, return.
Invariant: `_poison` is set before the first byte is written and cleared only after the check for a higher epoch, so
that a writer which was interrupted anywhere in between never writes again.

Opened by `FileStore`; used by hosts, activations and commands that write. A thread that needs both locks takes
`_sealing` before `_io`.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from everlog.events import CorruptLog, Draft, Fenced, Poisoned, Record, StoreError
from everlog.store.base.contract import Append, Commit, Head, Progress, SealReport, StateDeriver
from everlog.store.base.disk import FileEnded, remove_if_there, storage, storage_error
from everlog.store.base.names import name_of
from everlog.store.base.store_constants import BUCKET_GATHER_S, SEGMENT_BYTES_MAX
from everlog.store.log.group_commit import AppendResult, GroupCommit
from everlog.store.log.partition_reader import PartitionFiles, PartitionReader
from everlog.store.log.partition_recovery import RecoveredPartition, recover, remove_cut, strays, sweep_late
from everlog.store.partition.append_rules import AppendGroup, ValidatedAppend
from everlog.store.partition.closed_mark import leave_mark
from everlog.store.partition.epoch import NO_MARK, HostMark, Ownership, take, this_process
from everlog.store.partition.frame_index import commit_in
from everlog.store.partition.manifest import FRAMES, SEALED, FileEntry, Manifest, succeed
from everlog.store.partition.open_segment import OpenSegment
from everlog.store.partition.partition import Partition
from everlog.store.sealed.seal_pass import ManifestChange, SealPass, StreamLoader
from everlog.store.sealed.sealed_reader import commit_of, ids_of


class FileLog:
    """Writer of one partition in files. Thread-safe; see `store.Log` for the promises of each method."""

    def __init__(
        self,
        partition: Partition,
        ownership: Ownership,
        recovered: RecoveredPartition,
        now: Callable[[], int],
        segment_bytes_max: int,
        history: StreamLoader | None,
        begun: Callable[[Collection[str]], None] | None = None,
    ) -> None:
        """Not for direct use: call `FileLog.open`."""
        self.cut = recovered.cut
        """Nonsense tail that was cut off when the log was opened and kept next to it as `.cut`, or the end that the
        log has lost since it was closed; None if there was neither.
        """
        self.unfinished = ""
        """Reason why an erasure that an earlier owner recorded could not be carried out; empty if none is pending."""
        self._where = partition
        self._ownership = ownership
        self._now = now
        self._segment_bytes_max = segment_bytes_max
        self._history = history
        self._begun = begun
        self._manifest = recovered.manifest
        self._file = recovered.file
        self._ledger = recovered.ledger
        self._indexes = {index.name: index for index in (*recovered.indexes, self._file.index)}
        self._view = self._acknowledged_view()
        self._reader = reader = PartitionReader(partition, lambda: self._view)
        self.read, self.table, self.chain, self.erasing = reader.read, reader.table, reader.chain, reader.erasing
        self.seq_at, self.state, self.states = reader.seq_at, reader.state, reader.states
        self._io = threading.Lock()
        self._sealing = threading.Lock()
        self._group = GroupCommit(self._commit, BUCKET_GATHER_S if partition.disk.ends_files else 0)
        self._closed = False
        self._fenced = False
        self._poison = ""

    @classmethod
    def open(cls, partition: Partition, command: str, now: Callable[[], int], *, label: str = "",
             take_over: bool = False, segment_bytes_max: int = SEGMENT_BYTES_MAX,
             history: StreamLoader | None = None, restoring: bool = False,
             begun: Callable[[Collection[str]], None] | None = None,
             mark: HostMark = NO_MARK) -> "FileLog":  # fmt: skip
        """Take the next epoch, recover the tail, return the writer.

        `now` returns microseconds UTC; `label` names the partition in errors; a file of `segment_bytes_max` bytes is
        closed; `history` returns all records of an agent that arrived from another partition; `restoring`: see
        `recover`; `begun` gets the streams whose first records here are durable, after their commit; `mark` is shown to
        other processes. Raises PartitionBusy, UsageError, CorruptLog, NewerFormat, Fenced, StoreError.
        """
        ownership = take(partition, this_process(command, now(), mark), label or partition.name, take_over=take_over)
        opened = False
        try:
            recovered = recover(partition, ownership, now(), restoring=restoring)
            opened = True
        finally:
            if not opened:
                ownership.release()
        log = cls(partition, ownership, recovered, now, segment_bytes_max, history, begun)
        opened = False
        try:
            log._finish_erasures()
            opened = True
        finally:
            if not opened:
                log.close()
        return log

    def _finish_erasures(self) -> None:
        """Carry out erasures that an earlier owner appended as `records_erased` and did not carry out.

        If a file that must be rewritten is damaged, the erasure stays pending and the log opens; `check` reports both.
        """
        if self._file.erasures or any(entry.erasures for entry in self._manifest.files):
            try:
                self.seal()
            except CorruptLog as error:
                self.unfinished = f"An erasure was not carried out: {error}"

    @property
    def partition(self) -> str:
        """Name of the partition."""
        return self._where.name

    @property
    def epoch(self) -> int:
        """Number of the ownership that this writer holds, from 1."""
        return self._ownership.epoch

    def append(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append one commit and return when it is durable. Raises BadInput and every kind of StoreError."""
        (result,) = self._group.submit([ValidatedAppend(Append(agent_id, expected_seq, drafts))])
        if isinstance(result, StoreError):
            raise result
        return result

    def append_group(self, appends: Sequence[Append]) -> list[Commit | StoreError]:
        """Append many commits as one group. Raises BadInput, before anything is written, if any append has a wrong
        shape.
        """
        return self._group.submit([ValidatedAppend(append) for append in appends])

    def agents(self) -> list[str]:
        """Return the ids of all agents with records in the partition, sorted."""
        return sorted(self._ledger.heads)

    def head(self, agent_id: str) -> Head:
        """Return the end of the stream; Head(0, GENESIS) for an agent without records."""
        return self._ledger.head(name_of(agent_id))

    def heads(self, agents: Iterable[str]) -> dict[str, Head]:
        """Return `head` of many agents, by the names given."""
        return {agent_id: self.head(agent_id) for agent_id in agents}

    def close(self) -> None:
        """Release the partition. Idempotent; waits for the group that is being written."""
        with self._io:
            if not self._closed:
                self._closed = True
                self._file.close()
                # A mark states acknowledged bytes only; a poisoned writer does not know which are.
                if not (self._poison or self._fenced):
                    leave_mark(self._where, self._file.mark(self._ledger.commits, self.epoch), self.epoch)
                self._ownership.release(done=not self._poison)

    def _commit(self, appends: list[ValidatedAppend]) -> list[AppendResult]:
        with self._io:
            self._raise_if_unusable()
            group = AppendGroup(self._ledger, self._recall)
            results = [self._admit(group, append) for append in appends]
            if group.records:
                self._write(group)
            elif any(isinstance(result, Commit) for result in results):
                # Nothing to write, but repeated appends are acknowledged again: a fenced writer must not acknowledge
                # these either.
                self._raise_if_fenced()
            return results

    def _admit(self, group: AppendGroup, append: ValidatedAppend) -> AppendResult:
        """Return the commit or the refusal of an append. Admitting may read a file, which may be damaged."""
        try:
            return group.admit(append)
        except StoreError as error:  # a newer owner may have sealed and removed the file
            self._raise_if_fenced(error)
            return error

    def _raise_if_unusable(self) -> None:
        if self._fenced:
            raise Fenced(self._fenced_message())
        if self._closed:
            raise StoreError(f"the log {self._where.path} is closed; open it again.")
        if self._poison:
            raise Poisoned(f"an earlier write failed ({self._poison}); close the log and open it again.")

    def _write(self, group: AppendGroup) -> None:
        """Make the group durable, check the fence, and update the StreamHeads; or raise."""
        if self._file.length >= self._segment_bytes_max:
            self._begin_file()
        # Set before the first byte is written: an interrupt leaves unknown bytes, and a second write could follow a
        # torn one.
        self._poison = "it was interrupted"
        path = self._file.path
        doing = "write"
        try:
            self._file.write(group.records, group.commits, self.epoch)
            doing = "sync"
            # Asked after the sync, never before: a new owner publishes its epoch and then reads the tail. So either it
            # reads this frame, or this check sees its epoch. Only frames that pass are acknowledged. Where it ends the
            # file, the sync itself is this check, and a look beside the sync lets this writer stop early.
            latest_after = self._where.disk.beside(self._ownership.seems_latest)
            self._file.sync()
            doing = "look for a newer owner after writing"
            latest = latest_after()
        except FileEnded as error:
            self._fenced = True
            raise Fenced(self._fenced_message()) from error
        except OSError as error:
            failure = storage_error(error, doing, path)
            # A failed write or sync is never retried: the system may have dropped the dirty pages and would report
            # success.
            self._poison = str(failure)
            kept = "Nothing of it is stored" if doing == "write" else "Opening the log shows whether it is stored"
            raise StoreError(f"{failure} {kept}: the same events can be sent again safely.") from error
        if not latest:
            self._fenced = True
            raise Fenced(self._fenced_message())
        heads = self._ledger.heads
        new = {r.agent_id for r in group.records if (head := heads.get(r.agent_id)) is None or head.away}
        group.settle()
        self._view = self._acknowledged_view()
        self._poison = ""
        if new and self._begun is not None:
            self._begun(new)

    def _roll(self) -> None:
        """Close the open file and begin the next, without poisoning. May raise OSError, StoreError."""
        # Order: the new file's name is durable (`begin`), then one manifest names both files, then frames go into the
        # new file.
        file = OpenSegment.begin(self._where, self._ledger.commits + 1, self.epoch)
        closed = self._file.closed(self._ledger)
        published = False
        try:
            self._publish([*self._manifest.files[:-1], closed, file.entry])
            published = True
        finally:
            if not published:
                file.close()
        self._file.close()
        self._indexes = {**self._indexes, file.entry.name: file.index}
        self._ledger.ids.begin_generation(closed.last_commit, self._now())
        self._file = file
        self._view = self._acknowledged_view()

    def _acknowledged_view(self) -> PartitionFiles:
        """Return what this writer's own reads may see: acknowledged bytes only."""
        return PartitionFiles(self._manifest, self._file.length, self._indexes)

    def _publish(self, files: list[FileEntry]) -> None:
        """Publish a manifest with `files` as the live files. May raise StoreError, Fenced."""
        manifest = succeed(self._where, self._manifest, self.epoch, files)
        if manifest is None:
            self._fenced = True
            raise Fenced(self._fenced_message())
        self._manifest = manifest

    @property
    def unsealed_bytes(self) -> int:
        """Number of bytes in frames, which `seal` would work on."""
        with self._io:
            return self._file.length + sum(entry.bytes for entry in self._manifest.files if entry.kind == FRAMES)

    def seal(self, derive: StateDeriver | None = None, progress: Progress | None = None) -> SealReport:
        """Turn all frames into Parquet, carry out erasures, compact. See `store.Log`. Raises StoreError, CorruptLog.

        A failure changes nothing: all records stay where they are. If publishing failed, the log must be opened again.
        """
        with self._sealing:
            with self._io:
                self._raise_if_unusable()
                if self._file.length:
                    self._begin_file()
            done = SealReport()
            tried: set[str] = set()
            while (change := self._seal_some(derive, progress, tried)) is not None:
                done = SealReport(
                    files=done.files + len(change.before) + len(change.rewritten),
                    records=done.records + change.after.records,
                    bytes_before=done.bytes_before + sum(entry.bytes for entry in change.before),
                    bytes_after=done.bytes_after + change.after.bytes,
                    erased=done.erased + change.erased,
                )
            sweep_late(self._where, self._manifest, self.epoch)
            return done

    def _begin_file(self) -> None:
        """Close the open file and begin the next. After a failure the state on disk is unknown, so the writer is
        poisoned.
        """
        self._poison = "it was interrupted"
        try:
            with storage("close", self._file.path):
                self._roll()
        except StoreError as error:
            self._poison = str(error)
            raise
        self._poison = ""

    def _seal_some(
        self, derive: StateDeriver | None, progress: Progress | None, tried: set[str]
    ) -> ManifestChange | None:
        """Do one step of sealing and return its change; None if nothing is left to do."""
        before = self._manifest
        sealing = SealPass(self._where, before, self.epoch, derive, progress, tried, self._history)
        adopted = False
        try:
            with storage("seal", self._where.path):
                change = sealing.run()
                if change is not None:
                    tried.add(change.after.name)
                    self._adopt(change, before)
            adopted = True
        except Fenced:
            raise
        except StoreError as error:
            self._raise_if_fenced(error)
            raise
        finally:
            if not adopted:
                sealing.undo()
        return change

    def _adopt(self, change: ManifestChange, before: Manifest) -> None:
        """Publish a change, and remove the files that it replaces. May raise OSError, StoreError."""
        # Saved tails go before the manifest is published: after that no file of frames asks for the erasure any more,
        # and a crash would leave their content on disk.
        if change.erasing:
            self._raise_if_fenced()
            remove_cut(self._where)
        with self._io:
            self._raise_if_unusable()
            # A failed publish may or may not have created the manifest: stop until the log is opened again.
            self._poison = "sealing was interrupted"
            try:
                self._publish(change.files(self._manifest.files))
            except StoreError as error:
                self._poison = str(error)
                raise
            self._poison = ""
            gone = {entry.name for entry in change.before}
            self._indexes = {name: index for name, index in self._indexes.items() if name not in gone}
            self._view = self._view._replace(manifest=self._manifest, indexes=self._indexes)
            for entry in (*change.rewritten.values(), change.after):
                self._remember(entry)
            replaced = before.names() - self._manifest.names()
        if change.erasing:  # an owner that was fenced while it sealed may have left a file
            replaced.update(strays(self._where, self._manifest, self.epoch - 1))
        # Removed only after the new manifest is in force; readers with the old manifest look again.
        for name in replaced:
            remove_if_there(self._where.disk, self._where.path / name)
        self._where.disk.sync_dir(self._where.path)

    def _raise_if_fenced(self, cause: StoreError | None = None) -> None:
        """Raise Fenced if a newer owner has the partition."""
        with storage("look for a newer owner in", self._where.path):
            latest = self._ownership.is_latest()
        if not latest:
            self._fenced = True
            raise Fenced(self._fenced_message()) from cause

    def _remember(self, entry: FileEntry) -> None:
        """Look up the event ids of this sealed file in it from now on."""
        load = partial(ids_of, self._where, entry)
        self._ledger.ids.seal(entry.first_commit, entry.last_commit, entry.ids_to, load, self._now())

    def _recall(self, number: int) -> Sequence[Record]:
        """Return the records of a durable commit."""
        with storage("read", self._where.path):
            for index in reversed(self._indexes.values()):
                records = commit_in(self._where, index, number)
                if records:
                    return records
            for entry in self._manifest.files:
                if entry.kind == SEALED and entry.first_commit <= number <= entry.last_commit:
                    return commit_of(self._where, entry, number)
        raise CorruptLog(
            f"{self._where.path}: commit {number} existed when the log was opened and cannot be read now. Nothing was "
            "changed. Check the disk, then open the log again."
        )

    def _fenced_message(self) -> str:
        return (
            f"epoch {self.epoch} of {self._where.name} is over: a newer owner has the partition. This append was not "
            "acknowledged, and this writer must stop."
        )
