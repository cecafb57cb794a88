"""Erase the content of records in every file: in all partitions that an agent was in, and in all of its forks.

Used by `LocalSystem.erase` and `actors/erasure`. The record of the erasure must be durable before any file changes: the
next process that opens the log then finishes an interrupted erasure.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from everlog.actors.ports.effects import Clock, Ids
from everlog.actors.ports.log_warnings import note_opening
from everlog.actors.ports.ports import discard_note
from everlog.events import BadInput, Fenced, RecordsErased, StoreError, draft, event_of
from everlog.projections import DERIVER, Projections, activate
from everlog.store import Log, Progress, SealReport, Store

COMMAND = "everlog erase"
Span = tuple[int, int]
"""First and last seq of a range, both inclusive."""


class _AgentLogs(NamedTuple):
    """An agent that has the records, and every log that has or had records of the agent, the current one first."""

    agent_id: str
    spans: Sequence[Span]
    logs: Sequence[Log]


def erase(
    store: Store,
    targets: Mapping[str, Sequence[Span]],
    *,
    clock: Clock,
    ids: Ids,
    open_log: Callable[[str], Log],
    progress: Progress | None = None,
    note: Callable[[str], None] = discard_note,
) -> SealReport:
    """Erase the content of records: `targets` are ranges of each stream's own records, in the order of the erasure.

    Forks that share some of the records come first: each gets records of its own and drops states that may quote the
    content. The last target comes last of all: after an interruption before that, the whole command can be repeated. A
    fork that is created meanwhile follows. Nothing starts unless all logs can be opened. Raises BadInput for records of
    an ancestor, PartitionBusy.
    """
    for name, spans in targets.items():
        check_own_records(store, name, min(first for first, _ in spans))
    reach = _reach(store, targets)
    done, notified = SealReport(), set[str]()
    # Forks are listed again after each round, because one may have been created while the others were erased.
    while reach:
        with ExitStack() as stack:
            opened = _Opened(store, open_log, stack, note)
            reached = [_AgentLogs(name, spans, opened.logs_of(name)) for name, spans in reach.items()]
            for each in reached:
                one = _erase_partitions(store, each, clock, ids, progress)
                done = _sum_reports(done, one)
        notified |= reach.keys()
        reach = {name: spans for name, spans in _reach(store, targets).items() if name not in notified}
    return done


def _reach(store: Store, targets: Mapping[str, Sequence[Span]]) -> dict[str, list[Span]]:
    """Return the ranges to erase by stream: of the forks that share some of the records, then of the targets.

    A fork that is a target itself has its place among the targets, with the ranges that it shares.
    """
    shared: dict[str, list[Span]] = {}
    for name, spans in targets.items():
        for first, last in spans:
            for fork, cut in forks_reached(store, name, first, last).items():
                shared.setdefault(fork, []).append((first, cut))
    forks = {name: spans for name, spans in sorted(shared.items()) if name not in targets}
    own = {name: [*shared.get(name, ()), *spans] for name, spans in targets.items()}
    return {**forks, **own}


def _sum_reports(one: SealReport, other: SealReport) -> SealReport:
    """Add two seal reports."""
    return SealReport(*(getattr(one, field) + getattr(other, field) for field in SealReport.__struct_fields__))


def unnotified_forks(store: Store, agent_id: str, from_seq: int, to_seq: int) -> list[str]:
    """Return the forks that share some of the records and have no record of the erasure: it was interrupted."""
    return [
        name
        for name, last in forks_reached(store, agent_id, from_seq, to_seq).items()
        if not any(
            isinstance(event, RecordsErased) and event.from_seq <= from_seq and event.to_seq >= last
            for event in map(event_of, store.reader(name).read(name, last + 1))
        )
    ]


def forks_reached(store: Store, agent_id: str, from_seq: int, to_seq: int) -> dict[str, int]:
    """Return the forks, deleted ones too, that share some of the records, and the last seq of each; sorted by name."""
    shared = {name: min(cut, to_seq) for name, cut in store.forks_of(agent_id).items() if cut >= from_seq}
    return {name: last for name, last in shared.items() if store.reader(name).head(name).seq}


def check_own_records(store: Store, agent_id: str, from_seq: int) -> None:
    """Raise BadInput if a record from `from_seq` on is an ancestor's: the ancestor may have other forks."""
    ancestor = store.parent_of(agent_id)
    if ancestor is None or from_seq > ancestor[1]:
        return
    parent, cut = ancestor
    raise BadInput(
        f"{agent_id!r} was forked from {parent!r}: its records 1 to {cut} are those of {parent!r}. Erase them there, "
        f"which erases them here too; its own begin at seq {cut + 1}. Nothing was erased."
    )


class _Opened:
    """Logs that are open, each opened once: agents may share a log."""

    def __init__(
        self, store: Store, open_log: Callable[[str], Log], stack: ExitStack, note: Callable[[str], None]
    ) -> None:
        self._store = store
        self._open_log = open_log
        self._stack = stack
        self._note = note
        self._logs: dict[str, Log] = {}

    def logs_of(self, agent_id: str) -> list[Log]:
        """Return every log that an agent was in, the current one first."""
        here = self._store.partition_of(agent_id)
        if here in self._logs:
            self._store.finish_move(self._logs[here], agent_id)
        else:
            here = self._kept(self._open_log(agent_id))
        places = [place for place in dict.fromkeys(self._store.route(agent_id)) if place != here]
        for place in places:
            if place not in self._logs:
                log = self._store.open_partition(place, COMMAND)
                self._kept(log)
                note_opening(self._note, agent_id, log)
        return [self._logs[place] for place in (here, *places)]

    def _kept(self, log: Log) -> str:
        self._stack.callback(log.close)
        self._logs[log.partition] = log
        return log.partition


def _erase_partitions(store: Store, reach: _AgentLogs, clock: Clock, ids: Ids, progress: Progress | None) -> SealReport:
    """Erase an agent in each partition that it was in, by moving it through all of them once more."""
    here, *others = reach.logs
    with Projections() as projections:
        activate(projections, store.reader(reach.agent_id, here), reach.agent_id)
        turn = projections.rows("standing", reach.agent_id)[0]["turn"]
    events = [RecordsErased(from_seq=first, to_seq=last) for first, last in reach.spans]
    at, done = here, SealReport()
    for log in [*others, here]:
        if log is not at:
            store.begin_move(at, reach.agent_id, log.partition)
            store.finish_move(log, reach.agent_id)
            at = log
        one = _erased_in(log, reach.agent_id, events, turn, clock, ids, progress)
        done = _sum_reports(done, one)
    return done


def _erased_in(
    log: Log, agent_id: str, events: Sequence[RecordsErased], turn: int, clock: Clock, ids: Ids,
    progress: Progress | None,
) -> SealReport:  # fmt: skip
    """Erase the agent's records in one partition. The records of the erasure are durable first, all in one commit."""
    head, now = log.head(agent_id).seq, clock.now()
    # Durable before any file changes: an interrupted erasure is finished by the next process that opens the log.
    log.append(
        agent_id, head, [draft(one, event_id=ids.new(now), recorded_at=now, turn=turn, step=0) for one in events]
    )
    try:
        return log.seal(DERIVER, progress)
    except Fenced:
        raise
    except StoreError as error:
        raise StoreError(
            f"The erasure is recorded at seq {head + 1} but not finished: {error} The next process that opens the log "
            "finishes it."
        ) from error
