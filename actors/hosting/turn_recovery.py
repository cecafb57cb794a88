"""Finish turns that agents of a shard left unfinished, after the death of a host or the loss of the log.

Used by `Shard`. It must be stopped before the log of the shard is closed: a resumed agent would open the log again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from everlog.actors.agent.commands import ResumeTurns, SessionCapabilities
from everlog.actors.hosting.command_batch import CommandStreamer
from everlog.actors.ports.agent_constants import RECOVERY_WAIT_S, RECOVERY_WAIT_S_MAX, SHARD_RECOVERIES_MAX
from everlog.actors.ports.ports import Ports
from everlog.events import EverlogError, HostLost, StoreError


class TurnRecovery:
    """Resumes agents, a few at once. Agents that the store refuses are tried again with growing waits."""

    def __init__(
        self,
        perform: CommandStreamer,
        is_here: Callable[[str], bool],
        ports: Ports,
    ) -> None:
        """Create the recovery. `perform` has an agent carry out a command; `is_here` reads from the register whether
        an agent is in this shard. Failures are noted.
        """
        self._perform, self._is_here = perform, is_here
        self._clock, self._ids = ports.clock, ports.ids
        self._sleep, self._note, self._aside = ports.sleep, ports.note, ports.aside
        self.open = False
        """True while the log is open, so that turns can be finished."""
        self._left: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> bool:
        """True if turns are still to be finished."""
        return self._task is not None

    async def all_of(self, agents: Sequence[str], capabilities: Mapping[str, SessionCapabilities]) -> None:
        """Finish the unfinished turns of these agents, in the given order. `capabilities`: what callers gave them
        before.
        """
        room = asyncio.Semaphore(SHARD_RECOVERIES_MAX)

        async def resume(agent_id: str) -> None:
            async with room:
                command = ResumeTurns(id=self._ids.new(self._clock.now()), capabilities=capabilities.get(agent_id))
                try:
                    async for _ in self._perform(agent_id, command):
                        pass
                except EverlogError as error:
                    if isinstance(error, HostLost) and await self._has_moved(agent_id):
                        return  # the shard where it is now finishes its turns
                    self._note(f"{agent_id!r}: {error}")
                    # Other errors are final for this turn, for example a model failure, which is in the log.
                    if isinstance(error, (StoreError, HostLost)):
                        self.later([agent_id])

        await asyncio.gather(*map(resume, agents))

    async def _has_moved(self, agent_id: str) -> bool:
        """Return True if an agent is known to be in another partition."""
        try:
            return not await self._aside(self._is_here, agent_id)
        except EverlogError:  # the register cannot be read: it is tried again
            return False

    def later(self, agents: Sequence[str]) -> None:
        """Finish the turns of these agents after a wait, unless a caller has made an agent resume by then."""
        self._left.update(dict.fromkeys(agents))
        if self._left and self.open and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._finish())

    async def stop(self) -> None:
        """Stop. The next owner of the log finishes the rest."""
        self.open = False
        task, self._task = self._task, None
        self._left.clear()
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _finish(self) -> None:
        # Back off: a store that fails (a full disk) would fail at once again for all agents.
        wait_s = RECOVERY_WAIT_S
        while self._left and self.open:
            await self._sleep(wait_s)
            agents = list(self._left)
            self._left.clear()
            await self.all_of(agents, {})
            wait_s = min(4 * wait_s, RECOVERY_WAIT_S_MAX)
        self._task = None
