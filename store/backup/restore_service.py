"""Restore the agents of an export into a store, record for record and with the same chain.

Used by `FileStore` and `MemoryStore`, for `everlog restore`.

Everything is verified before anything is written. Then the commits of a stream are appended, unchanged, to the
dedicated partition of its name. The name is registered only after the last commit is durable: so the agent exists with
all of its records or not at all. Until then a file `restoring` in the partition keeps every other process from opening
it, and the same restore continues after the records that are there. An agent that has only the first of the records
gets the rest.

An ancestor that the store does not have is restored for its fork alone: after its records it ends with `agent_deleted`,
before it is registered. So it never runs a turn that was open at the fork point, and none of its timers goes off. The
fork does not see that end, which comes after the fork point.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Protocol

from everlog.events import GENESIS, AgentDeleted, BadInput, CorruptLog, Record, StoreError, derived_id, draft, extend
from everlog.store.backup.export_agent import commits_of, counting, verify
from everlog.store.backup.export_file import ExportReader
from everlog.store.backup.record_rules import draft_of
from everlog.store.base.block_streams import block_of, is_block
from everlog.store.base.contract import Append, Commit, Head, Log, Progress, StateDeriver
from everlog.store.base.export_types import ExportedStream, RestoredStream, RestoreReport
from everlog.store.base.move_records import chain_before, is_departure
from everlog.store.base.names import name_of, partition_of
from everlog.store.base.source_streams import is_source, source_of
from everlog.store.base.store_constants import RESTORE_CHARS, RESTORE_COMMITS
from everlog.store.streams.fork_service import Opener
from everlog.store.streams.register_file import Assignment
from everlog.store.streams.routes import Assignments, Routes

COMMAND = "everlog restore"


class RestoringOpener(Opener, Protocol):
    """Opens the partitions of a store, also those that a restore fills."""

    def open_restoring(self, stream: ExportedStream) -> Log:
        """Own the partition of an unregistered name, and keep every other process from opening it until
        `release_restored`.

        Raises BadInput if another export was being restored there.
        """
        ...

    def is_restoring(self, agent_id: str) -> bool:
        """Return True if a restore into the partition of the name was interrupted."""
        ...

    def release_restored(self, agent_id: str) -> None:
        """Allow every process to open the partition. Call it when all records are there."""
        ...


class RestoreService:
    """Restores exports into a store."""

    def __init__(self, register: Assignments, routes: Routes, opener: RestoringOpener,
                 open_agent: Callable[[str, str], Log], now: Callable[[], int],
                 check_free: Callable[[Iterable[str]], None] = lambda _: None) -> None:  # fmt: skip
        """Store the collaborators. `open_agent(name, command)` is the store's `open`; `now` returns microseconds
        UTC. `check_free` raises BadInput if one of the names, which no agent has, is another name of an agent.
        """
        self._register = register
        self._routes = routes
        self._opener = opener
        self._open_agent = open_agent
        self._now = now
        self._check_free = check_free

    def restore(
        self, path: Path, derive: StateDeriver | None = None, progress: Progress | None = None
    ) -> RestoreReport:
        """Restore the agents of an export, each with its original records. See `store.Store`."""
        with closing(ExportReader(path)) as export:
            streams = export.contents.streams
            count = counting(2 * export.contents.records, progress)
            found = {stream.agent_id: self._ends(stream) for stream in streams}
            places = {name: min(head.seq, to_seq) for name, (head, to_seq) in found.items()}
            chains = verify(export, places, count)
            for stream in streams:
                name = stream.agent_id
                self._check_same_agent(stream, places[name], chains.get((name, places[name])))
            done = []
            parents = {stream.parent for stream in streams} - {export.contents.agent_id}
            for stream, commits in _by_stream(export):
                ends = stream.agent_id in parents
                done.append(self._take_in(stream, commits, derive, count, ends=ends))
            return RestoreReport(export.contents, done)

    def _ends(self, stream: ExportedStream) -> tuple[Head, int]:
        """Return the head of the agent in this store, Head(0, GENESIS) if it has no records; and the last seq of the
        stream.
        """
        assignment = self._register.find(name_of(stream.agent_id))
        head = Head(0, GENESIS) if assignment is None else self._routes.along(assignment).head(stream.agent_id)
        return head, stream.to_seq

    def _check_same_agent(self, stream: ExportedStream, seq: int, chain: bytes | None) -> None:
        """Raise BadInput if the name belongs to another agent: one whose records up to `seq` differ."""
        assignment = self._routes.find(stream.agent_id)
        if assignment is None:
            self._check_free([stream.agent_id])
            return
        if seq:
            same = chain is not None and self._routes.along(assignment).chain(stream.agent_id, seq) == chain
        else:
            same = (assignment.parent, assignment.parent_seq) == (stream.parent, stream.parent_seq)
        if not same:
            reader = self._routes.along(assignment)
            last = next(reader.read(stream.agent_id, reader.head(stream.agent_id).seq), None)
            raise _ended_error(last) if last is not None and _is_end(last) else _taken(stream)

    def _take_in(self, stream: ExportedStream, commits: Iterator[list[Record]], derive: StateDeriver | None,
                 count: Callable[[int], None], *, ends: bool) -> RestoredStream:  # fmt: skip
        """Restore one stream. With `ends`, an ancestor that is new here is marked as ended after its last record."""
        name = stream.agent_id
        assignment = self._register.find(name)
        head = self._ends(stream)[0].seq
        if assignment is not None and head >= stream.to_seq:
            self._opener.release_restored(name)
            return RestoredStream(stream, 0)
        begun = assignment is None or self._opener.is_restoring(name)  # the name may be taken by now
        if begun:
            log = self._opener.open_restoring(stream)
        elif head:
            log = self._open_agent(name, COMMAND)
        else:
            log = self._opener.open(self._routes.assignment(name).partition, COMMAND, label=name)
        with closing(log):
            written = _append(log, stream, commits, count)
            ends = ends and (begun or not head)
            if ends:
                _end(log, stream, self._now())
            # Registered only now: every record, and an ancestor's end, is durable before the name can be looked up.
            if begun:
                wanted = Assignment(name, partition_of(name), 1, stream.parent, stream.parent_seq)
                if not self._register.add(wanted, begun=True) and self._routes.assignment(name) != wanted:
                    raise _taken(stream)
                self._opener.release_restored(name)
            log.seal(derive)
        return RestoredStream(stream, written, ends)


def _taken(stream: ExportedStream) -> BadInput:
    name = stream.agent_id
    what = f"an agent {name!r}"
    if is_source(name):
        what = f"a source {source_of(name)!r}"
    elif is_block(name):
        what = f"a shared block {block_of(name)!r}"
    return BadInput(
        f"This store has {what} already, and its records differ from those of the export. Nothing was changed. A name "
        "is a part of each record's digest, so an agent cannot be restored under another name: restore into another "
        "store (--store DIR)."
    )


def _end(log: Log, stream: ExportedStream, now: int) -> None:
    """Append the end of an ancestor after its last record, unless an interrupted restore did so."""
    name, seq = stream.agent_id, stream.to_seq
    if log.head(name).seq == seq:
        (last,) = log.read(name, seq)
        end = draft(AgentDeleted(), event_id=_end_id(name, seq + 1, now), recorded_at=now, turn=last.turn, step=0)
        (result,) = log.append_group([Append(name, seq, [end], from_export=True)])
        if not isinstance(result, Commit):
            raise result


def _end_id(name: str, seq: int, at: int) -> str:
    """Return the id of the record that ends an ancestor. This id tells such an end apart from a user's deletion."""
    seed = hashlib.sha256(f"{name}\0{seq}\0ancestor".encode()).digest()
    return derived_id(at, seed)


def _is_end(record: Record) -> bool:
    is_deletion = record.type == AgentDeleted.kind
    return is_deletion and record.event_id == _end_id(record.agent_id, record.seq, record.recorded_at)


def _ended_error(last: Record) -> BadInput:
    return BadInput(
        f"{last.agent_id!r} was restored only as an ancestor of a fork, up to seq {last.seq - 1}, and ended. Nothing "
        "was changed. To restore the agent itself, and more forks of it, begin with another store (--store DIR): "
        "restore the agent's own export there, and then those of its forks."
    )


def _by_stream(export: ExportReader) -> Iterator[tuple[ExportedStream, Iterator[list[Record]]]]:
    for stream, found in groupby(commits_of(export), key=lambda pair: pair[0]):
        yield stream, (records for _, records in found)


def _append(log: Log, stream: ExportedStream, commits: Iterable[list[Record]], count: Callable[[int], None]) -> int:
    """Append the missing records, some thousand commits with one sync. Return their number. Raises BadInput,
    CorruptLog, StoreError.
    """
    name = stream.agent_id
    written = 0
    for group in _groups(_after(log.head(name), stream, commits)):
        for append, result in zip(group, log.append_group(group), strict=True):
            if not isinstance(result, Commit):
                raise result
            if result.repeated:
                raise CorruptLog(f"{name!r} has an event twice, at seq {append.expected_seq + 1}. It was not restored.")
            written += len(result.records)
            count(len(result.records))
    head = log.head(name)
    if head.seq > stream.to_seq:  # an ancestor that was ended before an earlier restore was interrupted
        head = Head(stream.to_seq, log.chain(name, stream.to_seq))
    if (head.seq, head.chain.hex()) != (stream.to_seq, stream.chain):
        raise StoreError(
            f"{name!r} ends at seq {head.seq} with chain {head.chain.hex()}, but the export at {stream.to_seq} with "
            f"{stream.chain}. Check the disk and the memory of this machine, and restore again."
        )
    return written


def _after(head: Head, stream: ExportedStream, commits: Iterable[list[Record]]) -> Iterator[list[Record]]:
    """Yield the records after `head`. Raises BadInput if `head` is not a position of the stream."""
    chain, passed = GENESIS, 0
    for records in commits:
        for record in records if head.seq > passed else ():
            chain = extend(chain if passed else chain_before(record, record.seq, Head(0, GENESIS)) or GENESIS, record)
            passed = record.seq
            if passed == head.seq:
                break
        if head.seq and passed == head.seq and chain != head.chain:
            raise _taken(stream)
        left = [record for record in records if record.seq > head.seq]
        if left:
            yield left


def _groups(commits: Iterable[list[Record]]) -> Iterator[Sequence[Append]]:
    """Yield groups of appends that are made durable together. The two records of a move are never in different
    groups.
    """
    group: list[Append] = []
    size = 0
    for records in commits:
        weight = sum(len(record.payload) + len(record.text or "") for record in records)
        full = len(group) >= RESTORE_COMMITS or size + weight > RESTORE_CHARS
        if group and full and not is_departure(group[-1].drafts[-1]):
            yield group
            group, size = [], 0
        drafts = [*map(draft_of, records)]
        group.append(Append(records[0].agent_id, records[0].seq - 1, drafts, from_export=True))
        size += weight
    if group:
        yield group
