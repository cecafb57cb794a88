"""Send requests that arrive together, and gather their chunks and outcomes for a moment, so that few and large messages
cross between processes.

Used by `Gateway`, and by `cluster.gateway_client`, which sends the batches. An outcome is the last item of its request.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from functools import partial

import msgspec

from everlog.actors.ports.effects import NOTHING, DeltaCallback, ModelResponse, ReplyDelta, Spent
from everlog.events import ModelError


class ModelRequest(msgspec.Struct, frozen=True, gc=False):
    """One request of an agent to a model. `spent`: see `Gateway.ask`."""

    agent_id: str
    name: str
    base_url: str
    request: bytes
    spent: Spent = NOTHING
    streamed: bool = False
    """True if the chunks of the reply are wanted as they arrive."""


ModelOutcome = ModelResponse | ModelError
ResponseItem = ModelOutcome | list[ReplyDelta]
"""Chunks, in order; and once, at the end, the outcome."""


class RequestBatch:
    """Requests in progress that were sent together."""

    def __init__(
        self,
        model_requests: Sequence[ModelRequest],
        ask: Callable[[ModelRequest, DeltaCallback | None], Awaitable[ModelOutcome]],
        gather_s: float,
    ) -> None:
        """Start the requests, inside the event loop. Items that arrive within `gather_s` seconds are yielded
        together.
        """
        self._gather_s = gather_s
        self._done: list[tuple[int, asyncio.Task[ModelOutcome]]] = []
        self._said: dict[int, list[ReplyDelta]] = {}
        self._news = asyncio.Event()
        self._left = len(model_requests)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[ModelOutcome]] = []
        for place, asking in enumerate(model_requests):
            on_delta = partial(self._on_delta, place) if asking.streamed else None
            task: asyncio.Task[ModelOutcome] = asyncio.ensure_future(ask(asking, on_delta))
            task.add_done_callback(partial(self._end, place))
            self._tasks.append(task)

    def drop(self, places: Iterable[int]) -> None:
        """Cancel requests that have no waiter any more. Nothing more is yielded for them."""
        for place in places:
            self._tasks[place].cancel()

    async def batches(self) -> AsyncGenerator[list[tuple[int, ResponseItem]], None]:
        """Yield batches of items, each with the index of its request. Closing the iterator cancels the rest."""
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
        """Collect a chunk; a chunk that continues the last one is merged with it."""
        said = self._said.setdefault(place, [])
        last = said[-1] if said else None
        if piece.restart:
            said[:] = [piece]
        elif last is not None and last.call == piece.call and not piece.name and not last.restart:
            said[-1] = ReplyDelta(last.text + piece.text, last.call, last.name, last.arguments + piece.arguments)
        else:
            said.append(piece)
        self._news.set()
