"""Create forks: agents that continue from a point in another agent's past. The parent is read, and never written to.

Used by `LocalSystem`, and through it by `everlog fork` and reruns.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.activation_state import activation_state_of
from everlog.actors.agent.undo import endings_of
from everlog.actors.ports.effects import Clock, Ids
from everlog.actors.prompt.context import is_imported
from everlog.events import (  # fmt: skip
    INPUTS,
    AgentCreated,
    BadInput,
    Draft,
    Event,
    FunctionResult,
    ModelReply,
    Record,
    TurnAbandoned,
    UnknownAgent,
    draft,
    event_of,
    is_erased,
)
from everlog.projections import Projections, activate
from everlog.store import LogReader, Store, check_new_name, name_of, names_generation, typed

CALL_OF_PARENT = "This call was begun before the agent was forked. What came of it is known to the other agent only."
OPEN = "The turn was open where the agent was forked from {parent!r}. It goes on there, and is not run again here."

TAIL_RECORDS = 64
"""Number of records that are read first to find the turns that are open at a fork point."""


class NewFork(msgspec.Struct, frozen=True):
    """A new fork."""

    agent_id: str
    parent: str
    parent_seq: int
    """Fork point: the last seq that the fork shares with its parent."""
    head: int
    """Seq of its last record."""
    closed: Sequence[int] = ()
    """Turns that were open at the fork point; the fork does not run them again."""


def fork(
    store: Store, reader: LogReader, parent: str, at: int, name: str, *, clock: Clock, ids: Ids, by: str = ""
) -> NewFork:
    """Create `name` as `parent` was at seq `at`, which must exist. `by`: id of the key that the log names; or empty.

    The fork point is before a departure to another partition that has no arrival yet: the record says nothing of the
    agent, and no export can end with it. Raises BadInput if the parent was deleted at that seq, if the record there was
    erased, or if the name is taken.
    """
    head = reader.head(parent)
    at -= int(head.away and at == head.seq)
    records = tail(reader, parent, at)
    if is_erased(records[-1].payload):
        raise BadInput(
            f"{parent!r} cannot be forked at seq {at}: the content of that record was erased. Choose another seq; "
            f"`everlog events {typed(parent)}` lists the records."
        )
    woken = activation_state_of([_row(record) for record in records])
    if not woken.exists:
        raise BadInput(f"{parent!r} had been deleted by seq {at}: fork it at a seq before that.")
    now = clock.now()
    rows = [msgspec.structs.asdict(record) for record in records]
    closing = _closing(rows, woken.open_turns, parent, now, ids)
    left = store.fork(parent, at, name, event_id=ids.new(now), closing=closing, by=by)
    return NewFork(left[0].agent_id, parent, at, left[-1].seq, woken.open_turns)


def open_turns_of(records: Sequence[Record]) -> Sequence[int]:
    """Return the numbers of the turns that are unfinished after some records of one incarnation, oldest first.

    The records hold all of each turn that counts.
    """
    return activation_state_of([_row(record) for record in records]).open_turns


def tail(reader: LogReader, agent_id: str, at: int) -> Sequence[Record]:
    """Return the last records of an incarnation up to `at`, enough to tell which turns are open there.

    Turns run one after the other: if a turn has a step, the turns before it have ended. So reading goes back to the
    input that opened the newest turn with a step, or to the beginning of the incarnation.
    """
    count = TAIL_RECORDS
    while True:
        records = list(reader.read(agent_id, max(1, at - count + 1), at))
        for place in reversed(range(len(records))):
            if records[place].type == AgentCreated.kind:
                return records[place:]
        worked = max((record.turn for record in records if record.step), default=0)
        if (worked and any(r.turn == worked and not r.step for r in records)) or records[0].seq == 1:
            return records
        count *= 4


def _row(record: Record) -> Mapping[str, Any]:
    """Convert a record into a row of `waking`."""
    event = event_of(record)
    owed = len(event.calls) if isinstance(event, ModelReply) else 0
    if isinstance(event, FunctionResult) and not event.approval:
        owed = -1
    said = record.type in INPUTS and not is_imported(event) and not is_erased(record.payload)
    return {
        "type": record.type, "living": True, "turn": record.turn, "step": record.step, "input": said, "owed": owed,
        "cause": record.cause, "text": None, "configuration": None,
    }  # fmt: skip


def _closing(rows: Sequence[Mapping[str, Any]], turns: Sequence[int], parent: str, now: int, ids: Ids) -> list[Draft]:
    """Return the drafts that end turns open at the fork point: what those turns had started belongs to the parent."""
    drafts = []
    for placed in endings_of(rows, turns, TurnAbandoned(text=OPEN.format(parent=parent), reason="forked")):
        event: Event = placed.event
        if isinstance(event, FunctionResult):
            event = msgspec.structs.replace(event, text=CALL_OF_PARENT)
        drafts.append(draft(event, event_id=ids.new(now), recorded_at=now, turn=placed.turn, step=placed.step))
    return drafts


def stream_for(store: Store, name: str) -> str:
    """Return the stream of a fork that gets a name: the one of that name, or of the next generation if the newest agent
    of that name was deleted.

    Raises BadInput for an impossible name. Whether the stream is taken is found when the fork is made: by then an
    interrupted fork may have registered it, and the same fork completes it.
    """
    newest = store.latest(name)
    check_new_name(newest, store.partition_of)
    if names_generation(name_of(name)) or not is_deleted(store, newest):
        return newest
    return store.next_generation(newest)


def is_deleted(store: Store, agent_id: str) -> bool | None:
    """Return True if an agent was deleted, False if it lives, and None if it has no records. Raises CorruptLog."""
    try:
        reader = store.reader(agent_id)
    except UnknownAgent:
        return None
    if not reader.head(agent_id).seq:
        return None
    with Projections() as projections:
        activate(projections, reader, agent_id)
        return bool(projections.rows("standing", agent_id)[0]["deleted"])


def live_forks(store: Store, agent_id: str) -> list[str]:
    """Return the forks of an agent that are not deleted, and theirs. Descendants come first: an agent that has a fork
    cannot be deleted.
    """
    live = []
    with Projections() as projections:
        for name in store.forks_of(agent_id):
            activate(projections, store.reader(name), name)
            live += [name for row in projections.rows("standing", name) if not row["deleted"]]
            projections.forget(name)
    return sorted(live, key=lambda name: ancestors(store, name), reverse=True)


def ancestors(store: Store, agent_id: str) -> int:
    """Return the number of ancestors of an agent; 0 for an agent that is not a fork."""
    above = store.parent_of(agent_id)
    return 0 if above is None else 1 + ancestors(store, above[0])


def check_no_forks(store: Store, agent_id: str) -> None:
    """Raise BadInput if an agent has forks that are not deleted: the caller must know of them first."""
    live = live_forks(store, agent_id)
    if live:
        raise BadInput(
            f"{agent_id!r} has forks that are not deleted: {', '.join(sorted(live))}. Delete them first, or all of "
            f"them together with `everlog delete {typed(agent_id)} --with-forks`. Nothing was deleted."
        )
