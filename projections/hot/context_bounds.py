"""Keep of each agent what the context takes of its newest records, so that a step does not compute it again.

Used by `engine`. The values are rows of `context_bounds.sql`: this file decides only how long they hold. A law holds
the context that is read by kept bounds equal to the whole statement. See
docs/explanation/decisions/0033-plans-and-bounds.md.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from everlog.events import Record

EVERY_TURN = 2**63 - 2
"""Turn of a question that is about no turn: the context has the inputs of all turns."""

KEEPING = frozenset(
    {
        "archival_deleted", "archival_inserted", "archival_updated", "function_result", "function_started", "heartbeat",
        "message_sent", "model_reply", "user_login", "user_message",
    }
)  # fmt: skip
"""Kinds of records after which the bounds hold. After any other they are read again."""


class ContextBounds(NamedTuple):
    """Row of `context_bounds`, without the agent. The first seven are what a context is read by."""

    kept_from: int
    newest: list[int]
    changed_seq: int | None
    window: int | None
    fraction: float
    threshold: float | None
    warned: bool
    reply_seq: int | None
    turn: int
    """Last turn of a record with a slot: the bounds are those of a call in this turn or a later one."""

    def after(self, reply: Record) -> "ContextBounds | None":
        """Return the bounds after a newer reply; None if the reply that was the newest is not in view, and now is not
        needed any more.
        """
        if self.reply_seq is not None and self.reply_seq < self.kept_from:
            return None
        return self._replace(turn=max(self.turn, reply.turn))


class BoundsCache:
    """Bounds of the contexts of an engine's agents as of now. For one thread at a time."""

    def __init__(self) -> None:
        self._kept: dict[str, ContextBounds | None] = {}
        """None: the agent has no record that a context needs."""
        self._met: set[str] = set()
        """Agents about which `are_new` was asked."""

    def note(self, records: Iterable[Record]) -> None:
        """Take the records that the engine has added."""
        for record in records:
            if record.agent_id not in self._kept:
                continue
            kept = self._kept[record.agent_id]
            if record.type == "model_reply" and kept is not None:
                kept = kept.after(record)
                if kept is not None:
                    self._kept[record.agent_id] = kept
                    continue
            elif record.type in KEEPING and record.type != "model_reply":
                continue
            del self._kept[record.agent_id]

    def forget(self, agents: Collection[str]) -> None:
        """Drop the bounds of these agents."""
        for agent_id in agents:
            self._kept.pop(agent_id, None)
            self._met.discard(agent_id)

    def unknown(self, agents: Iterable[str]) -> list[str]:
        """Return those of these agents whose bounds are not kept, each once."""
        return list(dict.fromkeys(agent_id for agent_id in agents if agent_id not in self._kept))

    def are_new(self, agents: Sequence[str]) -> bool:
        """Return True if there are agents, and this is asked about all of them for the first time since they came."""
        new = bool(agents) and self._met.isdisjoint(agents)
        self._met.update(agents)
        return new

    def keep(self, agents: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Keep the rows of `context_bounds` for these agents."""
        self._kept.update(dict.fromkeys(agents))
        for agent_id, *bounds in rows:
            self._kept[agent_id] = ContextBounds(*bounds)

    def given(self, wanted: Iterable[tuple[Any, ...]]) -> list[list[Any]] | None:
        """Return the parameters of the statement that reads the context of each (agent, as_of, turn) by kept bounds.

        There is one list for each column. Returns None if a call is in an earlier turn than the bounds.
        """
        rows: list[tuple[Any, ...]] = []
        for agent_id, as_of, *turn in wanted:
            kept, during = self._kept[agent_id], turn[0] if turn else EVERY_TURN
            if kept is not None:
                if during < kept.turn:
                    return None
                rows.append((agent_id, as_of, during, *kept[:7]))
        return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(10)]
