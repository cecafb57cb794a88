"""Forks: an agent that goes on from a point in another one's past. The parent is read, and never written to."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from events import BadInput, Draft, Event, FunctionResult, TurnAbandoned, draft
from projections import Projections, activate
from store import Store

from .effects import Clock, Ids
from .hiding import ended
from .view import View

ELSEWHERE = "This call was begun before the agent was forked. What came of it is known to the other agent only."
OPEN = "The turn was open where the agent was forked from {parent!r}. It goes on there, and is not run again here."


class Forked(msgspec.Struct, frozen=True):
    """A fork that was made."""

    agent_id: str
    parent: str
    parent_seq: int
    """The cut: the last seq that it shares with its parent."""
    head: int
    """Seq of its last record."""
    closed: Sequence[int] = ()
    """Turns that were open at the cut: they are not run again in the fork."""


def fork(store: Store, view: View, name: str, *, clock: Clock, ids: Ids) -> Forked:
    """Begin `name` as what the agent of `view` was at the view's moment.

    Raises BadInput for a moment at which it was deleted, or whose record was erased, and for a name that is taken.
    """
    parent, at = view.agent_id, view.seq
    if view.rows("standing")[0]["deleted"]:
        raise BadInput(f"{parent!r} had been deleted by seq {at}: fork it at a seq before that.")
    now = clock.now()
    rows = view.rows("turn_records")
    turns = sorted({row["turn"] for row in rows})
    closing = _closing(rows, turns, parent, now, ids)
    records = store.fork(parent, at, name, event_id=ids.new(now), closing=closing)
    return Forked(records[0].agent_id, parent, at, records[-1].seq, turns)


def _closing(rows: Sequence[Mapping[str, Any]], turns: Sequence[int], parent: str, now: int, ids: Ids) -> list[Draft]:
    """How the turns end that are open at the cut: what they had begun is the parent's."""
    drafts = []
    for placed in ended(rows, turns, TurnAbandoned(text=OPEN.format(parent=parent), reason="forked")):
        event: Event = placed.event
        if isinstance(event, FunctionResult):
            event = msgspec.structs.replace(event, text=ELSEWHERE)
        drafts.append(draft(event, event_id=ids.new(now), recorded_at=now, turn=placed.turn, step=placed.step))
    return drafts


def living_forks(store: Store, agent_id: str) -> list[str]:
    """The forks of an agent that were not deleted, those of its forks too, by name."""
    living = []
    with Projections() as projections:
        for name in store.forks_of(agent_id):
            activate(projections, store.reader(name), name)
            living += [name for row in projections.rows("standing", name) if not row["deleted"]]
            projections.forget(name)
    return living


def refuse_with_forks(store: Store, agent_id: str) -> None:
    """Raises BadInput for an agent that has forks: whoever ends it should know of them."""
    living = living_forks(store, agent_id)
    if living:
        raise BadInput(
            f"{agent_id!r} has forks that live on: {', '.join(living)}. Delete them first, or all of them together "
            f"with `everlog delete {agent_id} --with-forks`. Nothing was deleted."
        )
