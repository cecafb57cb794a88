"""Activate agents of a shard around its one journal.

Used by `Shard`. Every agent that enters the journal must leave it again, also after an error: the journal keeps the
rows of an agent until then.
"""

from collections.abc import Awaitable, Callable

from everlog.actors.agent.activation import Activation
from everlog.actors.hosting.shard_journal import ShardJournal
from everlog.store import FileLog, LogReader

ArrivalReader = Callable[[str, FileLog], LogReader | None]
"""Finishes the move of an agent to a shard; see `Shard.arrived`."""


class ShardActivation:
    """Activation of one agent of a shard, while the block runs."""

    def __init__(self, agent_id: str, ticks: Callable[[], Awaitable[ShardJournal]], arrived: ArrivalReader) -> None:
        """Create the activation. `ticks` returns the shard's journal, and opens its log if it is closed."""
        self._agent_id = agent_id
        self._open = ticks
        self._arrived = arrived

    async def __aenter__(self) -> Activation:
        self._ticks = await self._open()
        head = await self._ticks.enter(self._agent_id, self._arrived(self._agent_id, self._ticks.log))
        self._activation = activation = Activation(self._ticks, head, self._ticks.projections)
        # Every agent that is activated while the log is open is told: the lost records may be those of any of them.
        log = self._ticks.log
        activation.cut, activation.unsealed = getattr(log, "cut", None), getattr(log, "unfinished", "")
        return activation

    async def __aexit__(self, *_: object) -> None:
        self._activation.unsealed = ""  # the log stays open: nothing was sealed
        self._ticks.leave(self._agent_id)
