"""The seats of a shard: places for its agents around one journal."""

from collections.abc import Awaitable, Callable

from everlog.actors.agent.activation import Activation
from everlog.actors.hosting.shard_journal import ShardJournal
from everlog.store import FileLog, LogReader

ArrivalReader = Callable[[str, FileLog], LogReader | None]
"""Has an agent that moved here go on here; see `Shard.arrived`."""


class ShardActivation:
    """A place for one agent among those of its shard, while the block runs."""

    def __init__(self, agent_id: str, ticks: Callable[[], Awaitable[ShardJournal]], arrived: ArrivalReader) -> None:
        """`ticks` gives the journal, its log opened if it is not."""
        self._agent_id = agent_id
        self._open = ticks
        self._arrived = arrived

    async def __aenter__(self) -> Activation:
        self._ticks = await self._open()
        head = await self._ticks.enter(self._agent_id, self._arrived(self._agent_id, self._ticks.log))
        return Activation(self._ticks, head, self._ticks.projections)

    async def __aexit__(self, *_: object) -> None:
        self._ticks.leave(self._agent_id)
