"""Plan when letters that could not be delivered are sent again. Kept in memory only: the next host tries at once.

A receiver that has no room, or whose host was just lost, is tried again after seconds, then more and more seldom; any
other failure lasts longer, and is tried again each minute. The other letters of the agent, its timers and the ends of
its waits are due meanwhile. Used by `Postbox`.
"""

from collections.abc import Sequence

import msgspec

from everlog.actors.mail.letters import Due, MessageRow
from everlog.actors.ports.agent_constants import BUSY_S
from everlog.events import Busy, EverlogError, HostLost
from everlog.events.times import MICROSECONDS

RETRY_US = 60 * MICROSECONDS
"""Longest time between two attempts to deliver a letter."""


class _Retry(msgspec.Struct):
    """Next attempt for one letter."""

    at: int = 0
    """Microseconds UTC."""
    tries: int = 0


class Retries:
    """Letters of one agent that were tried in vain, and when each is tried again."""

    def __init__(self) -> None:
        self._planned: dict[int, _Retry] = {}
        """Next attempts by the seq of the sender's own record."""

    def ready(self, dues: Sequence[Due], now: int) -> list[Due]:
        """Return those letters whose next attempt is due at `now`, microseconds UTC. What is not among `dues` is
        forgotten.
        """
        pending = {due.seq for due in dues}
        self._planned = {seq: retry for seq, retry in self._planned.items() if seq in pending}
        return [due for due in dues if due.seq not in self._planned or self._planned[due.seq].at <= now]

    def plan(self, due: Due, error: EverlogError, now: int) -> bool:
        """Plan the next attempt of a letter that failed with `error`. Return True if it is as late as it can be."""
        retry = self._planned.setdefault(due.seq, _Retry())
        retry.tries += 1
        wait = RETRY_US
        if isinstance(error, Busy | HostLost):
            wait = min(BUSY_S * 2 ** min(retry.tries - 1, 10) * MICROSECONDS, RETRY_US)
        retry.at = now + wait
        return wait >= RETRY_US

    def delayed(self, rows: Sequence[MessageRow]) -> list[MessageRow]:
        """Return the rows of messages, with the time of the next attempt as the time of those that were tried."""
        return [
            {**row, "time": max(row["time"], self._planned[row["seq"]].at)} if row["seq"] in self._planned else row
            for row in rows
        ]
