"""Works off the turns of an open agent, one after the other, and tells who waits for a turn how it ended."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from everlog.actors.agent.agent import Agent
from everlog.events import EverlogError, HostLost, ModelError, UsageError

AnswerT = TypeVar("AnswerT")


class TurnWorker:
    """One task at most runs turns; it stops when none is left."""

    def __init__(self, agent: Agent, after_turn: Callable[[], Awaitable[None]]) -> None:
        self.broken = False
        """The log can no longer be written by this owner: it must be opened anew."""
        self._agent = agent
        self._after_turn = after_turn
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self._task is not None and not self._task.done()

    async def turn_ends(self, turn: int) -> None:
        """Wait until the turn has ended, and have it run. Raises what it ended with; a ModelError is in the log."""
        if turn in self._agent.open_turns:
            await self._ended(turn)

    async def all_end(self) -> None:
        """Wait until no turn is unfinished. Raises what the first that failed ended with, when all have ended."""
        failed: ModelError | None = None
        for ended in [self._ended(turn) for turn in self._agent.open_turns]:
            try:
                await ended
            except ModelError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    async def guarded(self, work: Awaitable[AnswerT]) -> AnswerT:
        """An error that is neither the caller's nor the model's leaves a log that this owner cannot write."""
        try:
            return await work
        except (UsageError, ModelError):
            raise
        except EverlogError:
            self.broken = True
            raise

    async def stop(self) -> None:
        """Interrupt the turn that runs: whoever opens the agent next finishes it. Who waits for it hears HostLost."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _ended(self, turn: int) -> asyncio.Future[None]:
        """What is set when the open turn has ended, for one who waits for it; it runs from now on, or when those before
        it have ended.
        """
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(turn, []).append(ended)
        if not self.busy:
            self._task = asyncio.get_running_loop().create_task(self._work_off())
            self._task.add_done_callback(self._stopped)
        return ended

    async def _work_off(self) -> None:
        while self._agent.open_turns:
            ran = await self.guarded(self._agent.run_next())
            if ran is not None:
                self._end(*ran)
            for turn in self._waiting.keys() - set(self._agent.open_turns):  # it was taken back
                self._end(turn, None)
            await self._after_turn()

    def _stopped(self, task: asyncio.Task[None]) -> None:
        """The task is at its end, by itself, by an error that nobody can go on after, or because it was interrupted."""
        error = _interrupted_error() if task.cancelled() else task.exception()
        if task is not self._task:  # another goes on with the turns already
            return
        for turn in list(self._waiting):
            self._end(turn, error)

    def _end(self, turn: int, error: BaseException | None) -> None:
        for ended in self._waiting.pop(turn, ()):
            if ended.done():  # who waited has gone away
                continue
            if error is None:
                ended.set_result(None)
            else:
                ended.set_exception(error)
                ended.exception()  # who waits for several turns may have gone away


def _interrupted_error() -> HostLost:
    return HostLost("The agent was let go of while it was at work. What it had acknowledged is in the log.")
