"""Finishes the turns that agents of a shard left unfinished: those of a host before, and those whose log was lost."""

import asyncio
from collections.abc import Mapping, Sequence

from everlog.actors.agent.commands import ResumeTurns, SessionCapabilities
from everlog.actors.hosting.command_batch import CommandStreamer
from everlog.actors.ports.agent_constants import RECOVERY_WAIT_S, RECOVERY_WAIT_S_MAX, SHARD_RECOVERIES_MAX
from everlog.actors.ports.ports import Ports
from everlog.events import EverlogError, HostLost, StoreError


class TurnRecovery:
    """Asks agents to resume, a few at once; what the store refuses is tried again, less and less often."""

    def __init__(
        self,
        perform: CommandStreamer,
        ports: Ports,
    ) -> None:
        """`perform` has an agent carry out a command. A note is made of what could not be finished."""
        self._perform = perform
        self._clock, self._ids = ports.clock, ports.ids
        self._sleep, self._note = ports.sleep, ports.note
        self.open = False
        """Whether there is a log to finish anything in."""
        self._left: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> bool:
        """Whether something is still to be finished."""
        return self._task is not None

    async def all_of(self, agents: Sequence[str], capabilities: Mapping[str, SessionCapabilities]) -> None:
        """Finish what these agents left unfinished, in their order. `capabilities`: what they were lent."""
        room = asyncio.Semaphore(SHARD_RECOVERIES_MAX)

        async def resume(agent_id: str) -> None:
            async with room:
                command = ResumeTurns(id=self._ids.new(self._clock.now()), capabilities=capabilities.get(agent_id))
                try:
                    async for _ in self._perform(agent_id, command):
                        pass
                except EverlogError as error:
                    self._note(f"{agent_id!r}: {error}")
                    if isinstance(error, (StoreError, HostLost)):
                        self.later([agent_id])

        await asyncio.gather(*map(resume, agents))

    def later(self, agents: Sequence[str]) -> None:
        """Finish these in a while, if nobody who asks for them again has done so until then."""
        self._left.update(dict.fromkeys(agents))
        if self._left and self.open and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._finish())

    async def stop(self) -> None:
        """Leave the rest to whoever opens the log next."""
        self.open = False
        task, self._task = self._task, None
        self._left.clear()
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _finish(self) -> None:
        wait_s = RECOVERY_WAIT_S
        while self._left and self.open:
            await self._sleep(wait_s)
            agents = list(self._left)
            self._left.clear()
            await self.all_of(agents, {})
            wait_s = min(4 * wait_s, RECOVERY_WAIT_S_MAX)
        self._task = None
