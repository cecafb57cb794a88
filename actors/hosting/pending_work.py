"""Find unfinished turns and timers in the logs of many agents.

Used by the supervisor's actor, at its start and after the death of a host, and by the actors of shards. Only reads: an
agent is not opened here. The reading blocks, so an event loop calls it through a thread.

Agents are read by the hundred: their records go into one engine, and one query for each projection covers them all. The
name of an agent whose log is damaged is noted, and the others are read all the same.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice

import duckdb
import msgspec
import pyarrow as pa

from everlog.actors.agent.activation_state import MAILED
from everlog.actors.hosting.timer_schedule import DueTimer, due_of
from everlog.actors.ports.agent_constants import PENDING_READ_AGENTS, PENDING_READ_BYTES
from everlog.events import AgentConfigured, EverlogError, UnknownAgent
from everlog.projections import DERIVER, HEAD, Projections
from everlog.store import LogReader, Store
from everlog.store.base.arrow_values import text_array
from everlog.store.base.lazy_pyarrow import pc

UNREADABLE = (EverlogError, duckdb.Error, pa.ArrowException, msgspec.MsgspecError, TypeError, ValueError, LookupError)
"""Errors of a log that cannot be read, or whose content makes no sense."""

_WATCHED = '"background":'
"""Words in a configuration that names a background agent."""

LogFunction = Callable[[str], None]


class PendingWork(msgspec.Struct, frozen=True):
    """Unfinished work in the log of an agent that is not in memory."""

    agent_id: str
    unfinished: bool
    """True if a turn is unfinished, or a message to or from another agent may be."""
    timers: Sequence[DueTimer]
    at: int = 0
    """Time when the newest unfinished turn began, microseconds UTC; 0 if there is none."""


class _Read(msgspec.Struct):
    """Records and states that were read of some agents."""

    names: list[str] = []
    tables: list[pa.Table] = []
    """Records of the agents, or those after their states."""
    states: list[pa.Table] = []
    bytes: int = 0
    """Size of the records in memory."""

    def of(self, names: Sequence[str]) -> "_Read":
        """Return the part for these agents."""
        mine = text_array(names)

        def filtered(tables: Sequence[pa.Table]) -> list[pa.Table]:
            return [table.filter(pc.is_in(table.column("agent_id"), mine)) for table in tables]

        return _Read(list(names), filtered(self.tables), filtered(self.states))


def pending_work(store: Store, note: LogFunction, agents: Sequence[str] | None = None) -> Iterator[PendingWork]:
    """Yield each agent that has unfinished turns or timers, of these agents or of all. Logs that cannot be read, or
    that make no sense, are noted.
    """
    for read in _read(store, note, store.agents() if agents is None else agents):
        yield from _pending_or_split(read, note)


async def read_in_thread(pending_batches: Iterator[PendingWork]) -> AsyncIterator[Sequence[PendingWork]]:
    """Yield the pending work of `pending_work` in batches; the logs are read in a thread."""
    while some := await asyncio.to_thread(lambda: list(islice(pending_batches, PENDING_READ_AGENTS))):
        yield some


async def unfinished(store: Store, note: LogFunction, agents: Sequence[str]) -> set[str]:
    """Return those of the agents that have unfinished turns; their logs are read in a thread."""
    found = await asyncio.to_thread(lambda: list(pending_work(store, note, agents)))
    return {standing.agent_id for standing in found if standing.unfinished}


def _read(store: Store, note: LogFunction, agents: Sequence[str]) -> Iterator[_Read]:
    """Yield the records of agents, in groups of a size that one engine can hold."""
    few = _Read()
    for reader, names in _partitions(store, note, agents):
        try:
            if len(names) > 1:
                yield from _shared(reader, names)
            else:
                _take(few, reader, names[0])
        except UNREADABLE as error:
            note(f"{', '.join(map(repr, names))} cannot be read: {error}")
        if len(few.names) >= PENDING_READ_AGENTS or few.bytes >= PENDING_READ_BYTES:
            yield few
            few = _Read()
    yield few


def _partitions(store: Store, note: LogFunction, agents: Sequence[str]) -> Iterator[tuple[LogReader, list[str]]]:
    """Yield each partition and the agents that are in it. An agent with records in other partitions is read by
    itself.
    """
    shared: dict[str, tuple[LogReader, list[str]]] = {}
    for name in agents:
        try:
            reader = store.reader(name)
            if len(store.route(name)) > 1:
                yield reader, [name]
            else:
                shared.setdefault(reader.partition, (reader, []))[1].append(name)
        except UnknownAgent:  # the name was registered or asked for, but the agent was never made
            pass
        except UNREADABLE as error:
            note(f"{name!r} cannot be read: {error}")
    yield from shared.values()


def _take(few: _Read, reader: LogReader, name: str) -> None:
    """Read one agent: its newest state and the records after it, or all records."""
    state = reader.state(name, DERIVER.maker)
    table = reader.table(name, state.seq + 1 if state is not None else 1)
    few.tables.append(table)
    few.names.append(name)
    few.bytes += table.nbytes
    if state is not None:
        few.states.append(state.rows)


def _shared(reader: LogReader, names: Sequence[str]) -> Iterator[_Read]:
    """Yield the states and later records of many agents of one partition."""
    for states in reader.states(DERIVER.maker, names):
        yield _Read([*states.agents], [states.after], [] if states.rows is None else [states.rows])


def _pending_or_split(read: _Read, note: LogFunction) -> list[PendingWork]:
    """Return the pending work of some agents. If that fails, split the group, until the agent at fault is found and
    noted.
    """
    if not read.names:
        return []
    try:
        return _pending_of(read)
    except UNREADABLE as error:
        if len(read.names) == 1:
            note(f"{read.names[0]!r} cannot be read: {error}")
            return []
    half = len(read.names) // 2
    return [*_pending_or_split(read.of(read.names[:half]), note), *_pending_or_split(read.of(read.names[half:]), note)]


def _pending_of(read: _Read) -> list[PendingWork]:
    """Return the pending work of agents whose logs make sense."""
    wanted = [(name, HEAD) for name in read.names]
    open_turns: dict[str, list[int]] = defaultdict(list)
    timers: dict[str, list[DueTimer]] = defaultdict(list)
    with Projections() as engine:
        for rows in read.states:
            engine.restore(rows)
        engine.load(pa.concat_tables(read.tables))
        living = {row["agent_id"] for row in engine.batch("standing", wanted) if not row["deleted"]}
        for row in engine.batch("open_turns", wanted):
            open_turns[row["agent_id"]].append(row["started_at"])
        for row in engine.batch("timers", wanted):
            timers[row["agent_id"]].append(_validated_timer(due_of(row)))
    writing = _with_mail([*read.states, *read.tables])
    busy = sorted(living & (open_turns.keys() | timers.keys() | writing))
    return [
        PendingWork(name, name in open_turns or name in writing, timers.get(name, []), max(open_turns.get(name, [0])))
        for name in busy
    ]


def _with_mail(tables: Sequence[pa.Table]) -> set[str]:
    """Return the agents whose messages to others may not be over, or whose background agent may be told more. Their
    hosts find out from the whole log: a state says only that there may be some.
    """
    found: set[str] = set()
    for table in tables:
        types = table.column("type")
        watched = pc.and_(pc.equal(types, AgentConfigured.kind), pc.match_substring(table.column("payload"), _WATCHED))
        mine = pc.or_(pc.is_in(types, text_array(sorted(MAILED))), watched)
        found.update(table.column("agent_id").filter(mine).unique().to_pylist())
    return found


def _validated_timer(due: DueTimer) -> DueTimer:
    """Return the timer after checking its types and ranges. Raises msgspec.ValidationError."""
    return msgspec.convert(msgspec.structs.asdict(due), DueTimer)
