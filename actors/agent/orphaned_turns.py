"""End turns that a rerun left unfinished. They are never run: outside of the rerun their calls would have real effects.

The log alone identifies such turns: their input names the fork's own `agent_forked` as its cause, and no other input
has a cause. Used by `Agent.activate`, and by `rerun.py` when a rerun ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.agent.activation_state import ActivationState
from everlog.actors.agent.undo import PositionedEvent, endings_of
from everlog.events import AgentForked, Event, FunctionResult, Record, TurnAbandoned

BEGUN = (
    "This call was begun in a rerun that ended early. Its effect may or may not have happened; it is not made again."
)
LEFT = "The turn was begun in a rerun that ended early, and is not run outside of it."


class CleanupAgent(Protocol):
    """Interface of the agent that this module uses."""

    def records(self, from_seq: int) -> Iterator[Record]: ...

    async def rows(self, name: str, as_of: int | None = None) -> Sequence[Mapping[str, Any]]: ...

    async def commit(
        self, events: Sequence[Event | PositionedEvent], *, turn: int | None, step: int
    ) -> Sequence[Record]: ...


async def end_orphaned_turns(agent: CleanupAgent, woken: ActivationState) -> Sequence[int]:
    """End the open turns that a rerun left. Return the other open turns, which the agent continues."""
    if not woken.causes:
        return woken.open_turns
    forked = {record.event_id for record in agent.records(1) if record.type == AgentForked.kind}
    left = [turn for turn, cause in woken.causes.items() if cause in forked]
    await end(agent, left)
    return [turn for turn in woken.open_turns if turn not in left]


async def end(agent: CleanupAgent, turns: Sequence[int]) -> None:
    """End open turns of a rerun, in one commit. A call that had started gets a result that says so."""
    if turns:
        placed = endings_of(await agent.rows("turn_records"), turns, TurnAbandoned(text=LEFT, reason="forked"))
        await agent.commit([_with_begun_text(one) for one in placed], turn=placed[-1].turn, step=0)


def _with_begun_text(placed: PositionedEvent) -> PositionedEvent:
    if not isinstance(placed.event, FunctionResult):
        return placed
    return msgspec.structs.replace(placed, event=msgspec.structs.replace(placed.event, text=BEGUN))
