"""Requests that come together, and what comes back of them: pieces and answers, gathered for a moment, so that what
crosses between processes is few and large.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from functools import partial

import msgspec

from everlog.actors.ports.effects import NOTHING, DeltaCallback, ModelResponse, ReplyDelta, Spent
from everlog.events import ModelError


class ModelRequest(msgspec.Struct, frozen=True, gc=False):
    """One request of one agent, on its way to a model. `spent`: see `Gateway.ask`."""

    agent_id: str
    name: str
    base_url: str
    request: bytes
    spent: Spent = NOTHING
    streamed: bool = False
    """Pieces of the reply are wanted as they come."""


ModelOutcome = ModelResponse | ModelError
ResponseItem = ModelOutcome | list[ReplyDelta]
"""Pieces, in order; and once, at the end, what came of it."""


class RequestBatch:
    """Some requests, under way."""

    def __init__(
        self,
        askings: Sequence[ModelRequest],
        ask: Callable[[ModelRequest, DeltaCallback | None], Awaitable[ModelOutcome]],
        gather_s: float,
    ) -> None:
        """What is there within `gather_s` seconds comes together. Must be made inside the event loop."""
        self._gather_s = gather_s
        self._done: list[tuple[int, asyncio.Task[ModelOutcome]]] = []
        self._said: dict[int, list[ReplyDelta]] = {}
        self._news = asyncio.Event()
        self._left = len(askings)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[ModelOutcome]] = []
        for place, asking in enumerate(askings):
            on_delta = partial(self._on_delta, place) if asking.streamed else None
            task: asyncio.Task[ModelOutcome] = asyncio.ensure_future(ask(asking, on_delta))
            task.add_done_callback(partial(self._end, place))
            self._tasks.append(task)

    def drop(self, places: Iterable[int]) -> None:
        """Nobody waits for these any more: they are cancelled, and nothing comes back."""
        for place in places:
            self._tasks[place].cancel()

    async def batches(self) -> AsyncGenerator[list[tuple[int, ResponseItem]], None]:
        """What comes back, with its place, as it comes. Who stops listening has the rest cancelled."""
        try:
            while self._left:
                await self._news.wait()
                if len(self._done) < self._left:
                    await asyncio.wait([self._ended], timeout=self._gather_s)
                batch = self._batch()
                if batch:
                    yield batch
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _batch(self) -> list[tuple[int, ResponseItem]]:
        batch: list[tuple[int, ResponseItem]] = list(self._said.items())
        batch += [(place, task.result()) for place, task in self._done if not task.cancelled()]
        self._left -= len(self._done)
        self._said = {}
        self._done.clear()
        self._news.clear()
        return batch

    def _end(self, place: int, task: "asyncio.Task[ModelOutcome]") -> None:
        self._done.append((place, task))
        self._news.set()
        if len(self._done) == self._left and not self._ended.done():
            self._ended.set_result(None)

    def _on_delta(self, place: int, piece: ReplyDelta) -> None:
        """Pieces that go on where the last one ended are one piece."""
        said = self._said.setdefault(place, [])
        last = said[-1] if said else None
        if piece.restart:
            said[:] = [piece]
        elif last is not None and last.call == piece.call and not piece.name and not last.restart:
            said[-1] = ReplyDelta(last.text + piece.text, last.call, last.name, last.arguments + piece.arguments)
        else:
            said.append(piece)
        self._news.set()
