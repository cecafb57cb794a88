"""Make a typed state of the rows of `waking`: which turns an agent left open, and how it was set up last. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from everlog.actors.prompt.context import configuration_of
from everlog.events import STOPS, AgentConfigured, AgentDeleted, ModelReply, TimerSet


class ActivationState(msgspec.Struct, frozen=True):
    """What an agent is to do first when it is activated."""

    exists: bool
    """It was created, and not deleted since."""
    turn: int
    """The last turn that was opened."""
    timed: bool
    """A timer was set in this life, whatever became of it."""
    open_turns: Sequence[int]
    """Oldest first."""
    causes: Mapping[int, str]
    """Of the open turns whose input names a cause: its id. Only inputs of reruns do."""
    configurations: Sequence[AgentConfigured]
    """Of all its lives, the oldest first: each may hold schemas that later ones name."""
    recorded: AgentConfigured | None
    """The newest configuration of this life."""


class _Turn:
    """How far a turn is after some of its records."""

    __slots__ = ("cause", "opened", "pending", "stopped", "waits")

    def __init__(self) -> None:
        self.opened = self.stopped = False
        self.waits = False
        """An input has no reply yet."""
        self.pending = 0
        """Calls without a result."""
        self.cause: str | None = None
        """What the input that opened it names as its cause."""

    @property
    def open(self) -> bool:
        """Whether it is unfinished."""
        return self.opened and not self.stopped and (self.waits or self.pending > 0)


def activation_state_of(rows: Sequence[Mapping[str, Any]]) -> ActivationState:
    """Make the state of the rows of `waking`: one row for each record, in the order of the log."""
    configured: Mapping[bool, list[AgentConfigured]] = {False: [], True: []}
    turns: dict[int, _Turn] = {}
    kinds = set()
    for row in rows:
        kind, living = row["type"], row["living"]
        if row["configuration"] is not None:
            event = configuration_of(AgentConfigured.version, row["text"], row["configuration"])
            configured[living].append(cast("AgentConfigured", event))
        if living:
            kinds.add(kind)
            turn = turns.setdefault(row["turn"], _Turn())
            if row["input"] and not row["step"]:
                turn.opened, turn.cause = True, row["cause"]
            turn.waits = row["input"] or (turn.waits and kind != ModelReply.kind)
            turn.pending += row["owed"] or 0
            turn.stopped |= kind in STOPS
    exists = bool(kinds) and AgentDeleted.kind not in kinds
    unfinished = sorted(number for number, turn in turns.items() if number and turn.open) if exists else ()
    return ActivationState(
        exists=exists,
        turn=max(turns) if exists else 0,
        timed=exists and TimerSet.kind in kinds,
        open_turns=unfinished,
        causes={number: cause for number in unfinished if (cause := turns[number].cause) is not None},
        configurations=configured[False] + configured[True],
        recorded=configured[True][-1] if configured[True] else None,
    )
