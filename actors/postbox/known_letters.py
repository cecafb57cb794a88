"""Tell whether a letter of another agent is in this agent's log already. Used by `Postbox`.

A letter may be sent again after its sender's host died, up to a day later; the receiver knows it by the sender's event
id. The ids are read from the log once, when the first letter comes, and kept while the agent is in memory: a query for
each letter would cost more with each letter.
"""

from everlog.actors.agent.agent import Agent
from everlog.actors.mail.letters import TRIED_US
from everlog.events import AgentMessageReceived, Record, event_of, is_erased, time_of

IDS_MAX = 100_000
"""Ids beyond which those of older letters are let go, unless one day has more."""


class KnownLetters:
    """Ids of the letters that an agent has taken, of those that were sent since a time."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._since: int | None = None
        """Time from which on all ids are here, microseconds UTC; None: nothing was read yet."""
        self._most = IDS_MAX

    def has(self, agent: Agent, sent: str) -> bool:
        """Return True if the agent's log has the letter with that id."""
        at = time_of(sent) or 0
        if self._since is None or at < self._since or len(self._ids) > self._most:
            # A day more than needed, for clocks of other machines, and so that older letters seldom read it again.
            self._since = at - TRIED_US
            self._ids = {one for record in agent.recorded_since(self._since) if (one := _sent_id(record))}
            self._most = max(IDS_MAX, 2 * len(self._ids))
        return sent in self._ids

    def add(self, sent: str) -> None:
        """Add the id of a letter that was just taken."""
        self._ids.add(sent)


def _sent_id(record: Record) -> str:
    if record.type != AgentMessageReceived.kind or is_erased(record.payload):
        return ""
    event = event_of(record)
    return event.sent if isinstance(event, AgentMessageReceived) else ""
