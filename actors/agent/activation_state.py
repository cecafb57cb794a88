"""Derive an agent's state at activation from the rows of `waking`: open turns and newest configuration. Pure.

Used by `Agent.activate`, by `fork_agent.py`, and by the rebuild check of `everlog verify`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from everlog.actors.prompt.context import configuration_of
from everlog.events import (
    STOPS,
    AgentConfigured,
    AgentDeleted,
    AgentMessageReceived,
    AgentMessageSent,
    ApprovalRequested,
    ModelReply,
    TimerSet,
)

TIMED = frozenset({TimerSet.kind, ApprovalRequested.kind})
"""Kinds of records after which something of the agent is due at a time."""
MAILED = frozenset({AgentMessageSent.kind, AgentMessageReceived.kind})
"""Kinds of records after which a message to another agent may be due."""


class ActivationState(msgspec.Struct, frozen=True):
    """State of an agent at activation."""

    exists: bool
    """True if the agent was created and not deleted since."""
    turn: int
    """Number of the last turn that was opened."""
    timed: bool
    """True if this incarnation had a timer or a call that waited for an approval, even if it is gone by now. A state
    leaves out those that are gone, so after one it may be False for them.
    """
    mailed: bool
    """True if a message was sent to another agent, or received from one, even if it is over by now, as `timed` says."""
    open_turns: Sequence[int]
    """Numbers of the unfinished turns, oldest first."""
    causes: Mapping[int, str]
    """Cause ids of open turns, for turns whose input names a cause. Only inputs of reruns do."""
    configurations: Sequence[AgentConfigured]
    """Configurations of all incarnations, oldest first: a later one may name a schema that only an earlier one
    holds.
    """
    recorded: AgentConfigured | None
    """Newest configuration of this incarnation."""


class _Turn:
    """Progress of a turn after some of its records."""

    __slots__ = ("cause", "opened", "pending", "stopped", "waits")

    def __init__(self) -> None:
        self.opened = self.stopped = False
        self.waits = False
        """True if an input has no reply yet."""
        self.pending = 0
        """Number of calls without a result."""
        self.cause: str | None = None
        """Cause that the opening input names."""

    @property
    def open(self) -> bool:
        """True if the turn is unfinished."""
        return self.opened and not self.stopped and (self.waits or self.pending > 0)


def activation_state_of(rows: Sequence[Mapping[str, Any]]) -> ActivationState:
    """Derive the state from the rows of `waking`: one row for each record, in the order of the log."""
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
        timed=exists and not TIMED.isdisjoint(kinds),
        mailed=exists and not MAILED.isdisjoint(kinds),
        open_turns=unfinished,
        causes={number: cause for number in unfinished if (cause := turns[number].cause) is not None},
        configurations=configured[False] + configured[True],
        recorded=configured[True][-1] if configured[True] else None,
    )


class IdleDeriving(msgspec.Struct, frozen=True):
    """Derivations of an agent while it is idle, and if its background agent is told what was said."""

    deriver: str = ""
    reflect_at: int = 150
    rate_importance: bool = False
    blocks: Sequence[str] = ()
    watched: bool = False
    """True if it has a background agent."""


NOT_DERIVING = IdleDeriving()
"""One object for the many agents that derive nothing by themselves."""


def idle_deriving(configured: AgentConfigured) -> IdleDeriving:
    """Return what a configuration wants to be derived while the agent is idle."""
    if not configured.deriver and not configured.derive_blocks and not configured.background:
        return NOT_DERIVING
    blocks = tuple(configured.derive_blocks)
    return IdleDeriving(
        configured.deriver, configured.reflect_at, configured.rate_importance, blocks, bool(configured.background)
    )
