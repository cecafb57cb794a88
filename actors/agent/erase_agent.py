"""Erasure: what records say goes from every file, wherever their agent was, and whoever was forked from it."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from everlog.actors.ports.effects import Clock, Ids
from everlog.events import BadInput, Fenced, RecordsErased, StoreError, draft, event_of
from everlog.projections import DERIVER, Projections, activate
from everlog.store import Log, Progress, SealReport, Store

COMMAND = "everlog erase"


class _Reach(NamedTuple):
    """One agent that has the records, and every log in which it has or had records, the one where it is first."""

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
    """Erase what records `from_seq` to `to_seq` say, both inclusive and in the log of the agent.

    Forks that share some of them are told first, by a record of their own, and drop the states that may quote them; the
    agent is last. So an interruption before that leaves everything to be erased again. A fork that is made meanwhile is
    told after that. Nothing is begun unless all logs can be opened. Raises BadInput for records that are an ancestor's,
    PartitionBusy.
    """
    check_own_records(store, agent_id, from_seq)
    reach = {**forks_reached(store, agent_id, from_seq, to_seq), agent_id: to_seq}
    done, told = SealReport(), set[str]()
    while reach:
        with ExitStack() as stack:
            opened = _Opened(store, open_log, stack)
            reached = [_Reach(name, last, opened.logs_of(name)) for name, last in reach.items()]
            for each in reached:
                one = _erase_partitions(store, each, from_seq, clock, ids, progress)
                done = _both(done, one)
        told |= reach.keys()
        forks = forks_reached(store, agent_id, from_seq, to_seq)
        reach = {name: last for name, last in forks.items() if name not in told}
    return done


def _both(one: SealReport, other: SealReport) -> SealReport:
    """What two sealings did together."""
    return SealReport(*(getattr(one, field) + getattr(other, field) for field in SealReport.__struct_fields__))


def unnotified_forks(store: Store, agent_id: str, from_seq: int, to_seq: int) -> list[str]:
    """The forks that share some of the records and have none of their own that says so: an erasure was interrupted."""
    return [
        name
        for name, last in forks_reached(store, agent_id, from_seq, to_seq).items()
        if not any(
            isinstance(event, RecordsErased) and event.from_seq <= from_seq and event.to_seq >= last
            for event in map(event_of, store.reader(name).read(name, last + 1))
        )
    ]


def forks_reached(store: Store, agent_id: str, from_seq: int, to_seq: int) -> dict[str, int]:
    """The forks that share some of the records, deleted ones too, and the last that each does; sorted by name."""
    shared = {name: min(cut, to_seq) for name, cut in store.forks_of(agent_id).items() if cut >= from_seq}
    return {name: last for name, last in shared.items() if store.reader(name).head(name).seq}


def check_own_records(store: Store, agent_id: str, from_seq: int) -> None:
    """Raises BadInput where a record from that one on is not the agent's own: its ancestors may have other forks."""
    ancestor = store.parent_of(agent_id)
    if ancestor is None or from_seq > ancestor[1]:
        return
    parent, cut = ancestor
    raise BadInput(
        f"{agent_id!r} was forked from {parent!r}: its records 1 to {cut} are those of {parent!r}. Erase them there, "
        f"which erases them here too; its own begin at seq {cut + 1}. Nothing was erased."
    )


class _Opened:
    """The logs that are open, each once: agents may share one."""

    def __init__(self, store: Store, open_log: Callable[[str], Log], stack: ExitStack) -> None:
        self._store = store
        self._open_log = open_log
        self._stack = stack
        self._logs: dict[str, Log] = {}

    def logs_of(self, agent_id: str) -> list[Log]:
        """Every log that an agent was in, the one where it is first."""
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
    store: Store, reach: _Reach, from_seq: int, clock: Clock, ids: Ids, progress: Progress | None
) -> SealReport:
    """Erase what an agent has: it goes through all partitions that it was in once more, and is erased in each."""
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
        done = _both(done, one)
    return done


def _erased_in(
    log: Log, agent_id: str, event: RecordsErased, turn: int, clock: Clock, ids: Ids, progress: Progress | None
) -> SealReport:
    """Erase what one partition has of it. The record comes first, durably."""
    head, now = log.head(agent_id).seq, clock.now()
    log.append(agent_id, head, [draft(event, event_id=ids.new(now), recorded_at=now, turn=turn, step=0)])
    try:
        return log.seal(DERIVER, progress)
    except Fenced:
        raise
    except StoreError as error:
        raise StoreError(
            f"The erasure is recorded, at seq {head + 1}, and not carried out yet: {error} Whoever opens the "
            "log next carries it out."
        ) from error
