"""Restoring: what an export holds becomes agents of a store, record for record and with the same chain.

Everything is verified before anything is written. Then the commits of a stream are appended as they were to the
partition of its name, and only when the last of them is durable is the name registered: so an agent is there with all
of its records or not at all. Until then a file `restoring` lies in the partition, nobody else can open it, and the same
restore goes on from what is there. An agent that is here with the first of the records gets the others.

An ancestor that nobody had is here for its fork alone: after its records it ends with `agent_deleted`, before it has
its name. So it never runs a turn that was open at the cut, and no timer of it goes off; the fork's past is before that.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Protocol

from everlog.events import GENESIS, AgentDeleted, BadInput, CorruptLog, Draft, Record, StoreError, draft, extend, uuid7
from everlog.events.ids import RANDOM_BITS
from everlog.store.backup.export_agent import commits_of, counting, verify
from everlog.store.backup.export_file import ExportReader
from everlog.store.base.block_streams import block_of, is_block
from everlog.store.base.contract import Append, Commit, Head, Log, Progress, StateDeriver
from everlog.store.base.export_types import ExportedStream, RestoredStream, RestoreReport
from everlog.store.base.move_records import chain_before, is_departure
from everlog.store.base.names import name_of, partition_of
from everlog.store.base.source_streams import is_source, source_of
from everlog.store.base.store_constants import RESTORE_CHARS, RESTORE_COMMITS
from everlog.store.streams.fork_service import Opener
from everlog.store.streams.register import Assignment
from everlog.store.streams.routes import Assignments, Routes

COMMAND = "everlog restore"


class RestoringOpener(Opener, Protocol):
    """Opens the partitions of a store, also those that a restore fills."""

    def open_restoring(self, stream: ExportedStream) -> Log:
        """Own the partition of a name that nobody has, and keep everybody else from it until `set_free`.

        Raises BadInput if another export was being restored there.
        """
        ...

    def is_restoring(self, agent_id: str) -> bool:
        """Whether a restore into the partition of the name was interrupted."""
        ...

    def set_free(self, agent_id: str) -> None:
        """All records are there: anybody may open the partition."""
        ...


class RestoreService:
    """Takes exports into a store."""

    def __init__(self, register: Assignments, routes: Routes, opener: RestoringOpener,
                 open_agent: Callable[[str, str], Log], now: Callable[[], int]) -> None:  # fmt: skip
        """`open_agent` is the store's `open`: name, command. `now` gives microseconds UTC."""
        self._register = register
        self._routes = routes
        self._opener = opener
        self._open_agent = open_agent
        self._now = now

    def restore(
        self, path: Path, derive: StateDeriver | None = None, progress: Progress | None = None
    ) -> RestoreReport:
        """Take in the agents of an export, each with the records that it had. See `store.Store`."""
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
        """Where the agent of that name ends here, Head(0, GENESIS) if it has no records; and where the stream does."""
        assignment = self._register.find(name_of(stream.agent_id))
        head = Head(0, GENESIS) if assignment is None else self._routes.along(assignment).head(stream.agent_id)
        return head, stream.to_seq

    def _check_same_agent(self, stream: ExportedStream, seq: int, chain: bytes | None) -> None:
        """Raises BadInput for a name that is another agent's: one that had other records up to `seq`."""
        assignment = self._register.find(stream.agent_id)
        if assignment is None:
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
        """Restore one stream; `ends`: if nobody has it yet, it is ended where it ends."""
        name = stream.agent_id
        assignment = self._register.find(name)
        head = self._ends(stream)[0].seq
        if assignment is not None and head >= stream.to_seq:
            self._opener.set_free(name)
            return RestoredStream(stream, 0)
        begun = assignment is None or self._opener.is_restoring(name)  # somebody may have taken the name since
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
            if begun:
                wanted = Assignment(name, partition_of(name), 1, stream.parent, stream.parent_seq)
                if not self._register.add(wanted) and self._routes.assignment(name) != wanted:
                    raise _taken(stream)
                self._opener.set_free(name)
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
        f"There is {what} here already, and its records are others than those of the export. Nothing was changed. A "
        "name is a part of each record's digest, so nobody is restored under another one: restore into another store "
        "(--store DIR)."
    )


def _end(log: Log, stream: ExportedStream, now: int) -> None:
    """End an ancestor after its last record, which is the last of its log, or was before it was ended."""
    name, seq = stream.agent_id, stream.to_seq
    if log.head(name).seq == seq:
        (last,) = log.read(name, seq)
        end = draft(AgentDeleted(), event_id=_end_id(name, seq + 1, now), recorded_at=now, turn=last.turn, step=0)
        (result,) = log.append_group([Append(name, seq, [end], from_export=True)])
        if not isinstance(result, Commit):
            raise result


def _end_id(name: str, seq: int, at: int) -> str:
    """The id of the record that ends an ancestor: it is told from an agent that somebody deleted by that."""
    seed = hashlib.sha256(f"{name}\0{seq}\0ancestor".encode()).digest()
    return uuid7(at, int.from_bytes(seed, "big") % 2**RANDOM_BITS)


def _is_end(record: Record) -> bool:
    is_deletion = record.type == AgentDeleted.kind
    return is_deletion and record.event_id == _end_id(record.agent_id, record.seq, record.recorded_at)


def _ended_error(last: Record) -> BadInput:
    return BadInput(
        f"Of {last.agent_id!r} only the past of a fork is here: it was restored up to seq {last.seq - 1} with that, "
        "and ended. Nothing was changed. To have the agent itself, and more forks of it, begin with another store "
        "(--store DIR): restore the agent's own export there, and then those of its forks."
    )


def _by_stream(export: ExportReader) -> Iterator[tuple[ExportedStream, Iterator[list[Record]]]]:
    for stream, found in groupby(commits_of(export), key=lambda pair: pair[0]):
        yield stream, (records for _, records in found)


def _append(log: Log, stream: ExportedStream, commits: Iterable[list[Record]], count: Callable[[int], None]) -> int:
    """Append what is not there yet, some thousand commits with one sync. Raises BadInput, CorruptLog, StoreError."""
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
    if head.seq > stream.to_seq:  # an ancestor that was ended before this was interrupted
        head = Head(stream.to_seq, log.chain(name, stream.to_seq))
    if (head.seq, head.chain.hex()) != (stream.to_seq, stream.chain):
        raise StoreError(
            f"{name!r} ends at seq {head.seq} with chain {head.chain.hex()}, and the export at {stream.to_seq} with "
            f"{stream.chain}. Look at the disk and at the memory of this machine, and restore again."
        )
    return written


def _after(head: Head, stream: ExportedStream, commits: Iterable[list[Record]]) -> Iterator[list[Record]]:
    """What comes after `head`, which is one of the places of the stream, or before it. Raises BadInput if it is not."""
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
    """Commits as appends, as many as are made durable together. None ends between the two records of a move."""
    group: list[Append] = []
    size = 0
    for records in commits:
        weight = sum(len(record.payload) + len(record.text or "") for record in records)
        full = len(group) >= RESTORE_COMMITS or size + weight > RESTORE_CHARS
        if group and full and not is_departure(group[-1].drafts[-1]):
            yield group
            group, size = [], 0
        drafts = [_draft(record) for record in records]
        group.append(Append(records[0].agent_id, records[0].seq - 1, drafts, from_export=True))
        size += weight
    if group:
        yield group


def _draft(record: Record) -> Draft:
    """What a record was before the log gave it its place."""
    return Draft(**{field: getattr(record, field) for field in Draft.__struct_fields__})
