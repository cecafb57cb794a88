"""Admit commands to a shard: those of callers up to a limit, and letters one after the other as there is room.

A caller whose command is refused can do something else; an agent's message would only be sent again, later. So a letter
waits for its place in the order of arrival, and its sender's delivery waits with it: what waits is bounded by what the
senders have on the way (`LETTERS_AT_ONCE` each). Used by `Shard`.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from everlog.actors.agent.commands import Command, DeliverLetter, WatchAgent
from everlog.actors.ports.agent_constants import BUSY_S, SHARD_COMMANDS_MAX
from everlog.actors.ports.effects import Clock
from everlog.events import Busy, EverlogError

LETTERS_INSIDE_MAX = 1000
"""Most letters that one shard takes at the same time: a tick is full with so many, and callers are not held up."""


class Admission:
    """Commands in progress in one shard, and the letters that wait to be."""

    def __init__(self, place: str, clock: Clock) -> None:
        """`place`: name of the shard, for refusals."""
        self._place, self._clock = place, clock
        self.arrived = 0
        """Number of commands that came."""
        self.under_way: dict[int, int] = {}
        """Arrival of each command that has not ended, except watches, by its number, oldest first; microseconds UTC."""
        self.errors: Counter[str] = Counter()
        """Commands that failed, by the type of the error."""
        self._inside = self._letters = 0
        """Number of commands that a caller waits for and that were let in, and of the letters among them."""
        self._queue: deque[asyncio.Future[None]] = deque()
        """Letters that wait, in order of arrival."""

    @asynccontextmanager
    async def entered(self, command: Command) -> AsyncIterator[None]:
        """Hold a place for a command while the block runs. A letter waits for it; any other command is refused with
        Busy if SHARD_COMMANDS_MAX are in progress.
        """
        self.arrived += 1
        number = self.arrived
        if not isinstance(command, WatchAgent):
            self.under_way[number] = self._clock.now()
        try:
            letter = isinstance(command, DeliverLetter)
            if letter:
                await self._letter_enters()
            else:
                self._enter_or_refuse()
            try:
                yield
            finally:
                self._leave(letter=letter)
        except EverlogError as error:
            self.errors[type(error).__name__] += 1
            raise
        finally:
            self.under_way.pop(number, None)

    def _enter_or_refuse(self) -> None:
        if self._inside >= SHARD_COMMANDS_MAX:
            raise Busy(
                f"{self._place} has {SHARD_COMMANDS_MAX} commands in progress, its limit. Nothing of this was "
                f"kept. Try again in {BUSY_S} seconds.",
                retry_after_s=BUSY_S,
            )
        self._inside += 1

    async def _letter_enters(self) -> None:
        if not self._queue and self._has_room():
            self._let_in()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._queue.remove(turn)
            else:  # let in and cancelled at the same time: the place would be lost
                self._leave(letter=True)
            raise

    def _has_room(self) -> bool:
        return self._letters < LETTERS_INSIDE_MAX and self._inside < SHARD_COMMANDS_MAX

    def _let_in(self) -> None:
        self._inside += 1
        self._letters += 1

    def _leave(self, *, letter: bool) -> None:
        self._inside -= 1
        self._letters -= letter
        while self._queue and self._has_room():
            turn = self._queue.popleft()
            if not turn.done():
                self._let_in()
                turn.set_result(None)
