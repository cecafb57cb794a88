"""Run the turns of an open agent one after the other, and report the end of each turn to its waiters.

Used by `Host`. Turns of one agent never overlap: a second task would write to the same log.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from everlog.actors.agent.agent import Agent
from everlog.events import EverlogError, HostLost, ModelError, UsageError

AnswerT = TypeVar("AnswerT")


class TurnWorker:
    """Runs turns in at most one task, which ends when no turn is left."""

    def __init__(self, agent: Agent, after_turn: Callable[[], Awaitable[None]]) -> None:
        self.broken = False
        """True if this owner can no longer write the log: the log must be opened again."""
        self._agent = agent
        self._after_turn = after_turn
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """True if a turn runs."""
        return self._task is not None and not self._task.done()

    async def turn_ends(self, turn: int) -> None:
        """Run turns until this turn has ended. Raises the error that ended it; a ModelError is in the log."""
        if turn in self._agent.open_turns:
            await self._ended(turn)

    def begin(self, turn: int) -> None:
        """Run turns until this one has ended, without waiting for it. Its error is in the log, or breaks the log."""
        if turn in self._agent.open_turns:
            self._ended(turn)

    async def all_end(self) -> None:
        """Run turns until none is unfinished. Then raise the ModelError of the first turn that failed."""
        failed: ModelError | None = None
        for ended in [self._ended(turn) for turn in self._agent.open_turns]:
            try:
                await ended
            except ModelError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    async def guarded(self, work: Awaitable[AnswerT]) -> AnswerT:
        """Await the work, and return its result. An error that is neither the caller's nor the model's marks the log as
        broken.
        """
        try:
            return await work
        except (UsageError, ModelError):
            raise
        except EverlogError:
            self.broken = True
            raise

    async def stop(self) -> None:
        """Interrupt the running turn. Its waiters get HostLost; the next owner of the agent finishes it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _ended(self, turn: int) -> asyncio.Future[None]:
        """Return a future that is resolved at the end of an open turn, and start running turns if none runs."""
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
            # A command may have cancelled or undone further turns while this one ran.
            for turn in self._waiting.keys() - set(self._agent.open_turns):
                self._end(turn, None)
            await self._after_turn()

    def _stopped(self, task: asyncio.Task[None]) -> None:
        """Resolve all waiters after the task has ended: regularly, by an error that breaks the log, or by an
        interruption.
        """
        error = _interrupted_error() if task.cancelled() else task.exception()
        if task is not self._task:  # a newer task runs the turns that are left
            return
        for turn in list(self._waiting):
            self._end(turn, error)

    def _end(self, turn: int, error: BaseException | None) -> None:
        for ended in self._waiting.pop(turn, ()):
            if ended.done():  # its waiter was cancelled
                continue
            if error is None:
                ended.set_result(None)
            else:
                ended.set_exception(error)
                ended.exception()  # mark as retrieved: a waiter for several turns may have gone


def _interrupted_error() -> HostLost:
    return HostLost(
        "The agent was unloaded while a turn ran. Acknowledged events are in the log; the turn is finished when the "
        "agent is opened next."
    )
