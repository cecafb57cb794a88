"""Erase the content of records in every file: in all partitions that the agent was in, and in all of its forks.

Used by `LocalSystem.erase` and `everlog erase`. The record of the erasure must be durable before any file changes: the
next process that opens the log then finishes an interrupted erasure.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from everlog.actors.ports.effects import Clock, Ids
from everlog.events import BadInput, Fenced, RecordsErased, StoreError, draft, event_of
from everlog.projections import DERIVER, Projections, activate
from everlog.store import Log, Progress, SealReport, Store

COMMAND = "everlog erase"


class _AgentLogs(NamedTuple):
    """An agent that has the records, and every log that has or had records of the agent, the current one first."""

    agent_id: str
    to_seq: int
    logs: Sequence[Log]


def erase(
    store: Store,
    agent_id: str,
    from_seq: int,
    to_seq: int,
    *,
    clock: Clock,
    ids: Ids,
    open_log: Callable[[str], Log],
    progress: Progress | None = None,
) -> SealReport:
    """Erase the content of records `from_seq` to `to_seq`, both inclusive and in the log of the agent.

    Forks that share some of the records come first: each gets a record of its own and drops states that may quote the
    content. The agent comes last: after an interruption before that, the whole command can be repeated. A fork that is
    created meanwhile follows. Nothing starts unless all logs can be opened. Raises BadInput for records of an ancestor,
    PartitionBusy.
    """
    check_own_records(store, agent_id, from_seq)
    reach = {**forks_reached(store, agent_id, from_seq, to_seq), agent_id: to_seq}
    done, notified = SealReport(), set[str]()
    # Forks are listed again after each round, because one may have been created while the others were erased.
    while reach:
        with ExitStack() as stack:
            opened = _Opened(store, open_log, stack)
            reached = [_AgentLogs(name, last, opened.logs_of(name)) for name, last in reach.items()]
            for each in reached:
                one = _erase_partitions(store, each, from_seq, clock, ids, progress)
                done = _sum_reports(done, one)
        notified |= reach.keys()
        forks = forks_reached(store, agent_id, from_seq, to_seq)
        reach = {name: last for name, last in forks.items() if name not in notified}
    return done


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

    def __init__(self, store: Store, open_log: Callable[[str], Log], stack: ExitStack) -> None:
        self._store = store
        self._open_log = open_log
        self._stack = stack
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
                self._kept(self._store.open_partition(place, COMMAND))
        return [self._logs[place] for place in (here, *places)]

    def _kept(self, log: Log) -> str:
        self._stack.callback(log.close)
        self._logs[log.partition] = log
        return log.partition


def _erase_partitions(
    store: Store, reach: _AgentLogs, from_seq: int, clock: Clock, ids: Ids, progress: Progress | None
) -> SealReport:
    """Erase an agent in each partition that it was in, by moving it through all of them once more."""
    here, *others = reach.logs
    with Projections() as projections:
        activate(projections, store.reader(reach.agent_id, here), reach.agent_id)
        turn = projections.rows("standing", reach.agent_id)[0]["turn"]
    event = RecordsErased(from_seq=from_seq, to_seq=reach.to_seq)
    at, done = here, SealReport()
    for log in [*others, here]:
        if log is not at:
            store.begin_move(at, reach.agent_id, log.partition)
            store.finish_move(log, reach.agent_id)
            at = log
        one = _erased_in(log, reach.agent_id, event, turn, clock, ids, progress)
        done = _sum_reports(done, one)
    return done


def _erased_in(
    log: Log, agent_id: str, event: RecordsErased, turn: int, clock: Clock, ids: Ids, progress: Progress | None
) -> SealReport:
    """Erase the agent's records in one partition. The record of the erasure is durable first."""
    head, now = log.head(agent_id).seq, clock.now()
    # Durable before any file changes: an interrupted erasure is finished by the next process that opens the log.
    log.append(agent_id, head, [draft(event, event_id=ids.new(now), recorded_at=now, turn=turn, step=0)])
    try:
        return log.seal(DERIVER, progress)
    except Fenced:
        raise
    except StoreError as error:
        raise StoreError(
            f"The erasure is recorded at seq {head + 1} but not finished: {error} The next process that opens the log "
            "finishes it."
        ) from error
