"""The published client of Letta against a server in this process: it runs in a thread, like a program of its own."""

import asyncio
import inspect
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from letta_client import AsyncLetta, Letta

from everlog.actors.ports.effects import DeltaCallback, ModelResponse
from everlog.events import ModelError
from tests.support.cli.command_line import Script
from tests.support.http.served_store import Served, served
from tests.support.models.streaming_model import pieces_of

ResultT = TypeVar("ResultT")


class Speaker(Script):
    """A script whose answers are streamed, in pieces of some characters."""

    def __init__(self, answers: list[str | ModelError], size: int = 6) -> None:
        super().__init__(answers)
        self._size = size

    async def ask(self, request: bytes, *, on_delta: DeltaCallback | None = None, **how: object) -> ModelResponse:
        """Answer the next line of the script, piece by piece."""
        answer = await super().ask(request, **how)
        for piece in pieces_of(answer.raw, self._size):
            await asyncio.sleep(0)
            if on_delta is not None:
                on_delta(piece)
        return answer


class Halting(Speaker):
    """A speaker that halts in the middle of its first answer until the test lets it continue."""

    def __init__(self, answers: list[str | ModelError]) -> None:
        super().__init__(answers, size=3)
        self.go = asyncio.Event()

    async def ask(self, request: bytes, *, on_delta: DeltaCallback | None = None, **how: object) -> ModelResponse:
        """Give a part of the answer, wait, and give the rest."""
        answer = await Script.ask(self, request, **how)
        pieces = list(pieces_of(answer.raw, 3))
        for number, piece in enumerate(pieces):
            if number == len(pieces) - 3:
                await self.go.wait()
            if on_delta is not None:
                on_delta(piece)
        return answer


class Gated(Speaker):
    """A speaker whose answers wait until the test lets them begin."""

    def __init__(self, answers: list[str | ModelError]) -> None:
        super().__init__(answers)
        self.asked_now, self.go = asyncio.Event(), asyncio.Event()

    async def ask(self, request: bytes, **how: Any) -> ModelResponse:
        """Wait, then answer."""
        self.asked_now.set()
        await self.go.wait()
        return await super().ask(request, **how)


class LettaServer:
    """A server and the clients of it."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.url = f"{server.address}/letta"

    async def run(self, work: Callable[[Letta], ResultT], *, url: str = "", **options: Any) -> ResultT:
        """Run blocking work with a client in a thread, and return its result. `options`: of the client."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the client's own methods

            def worked() -> ResultT:
                with Letta(base_url=url or self.url, **{"api_key": None, **options}) as client:
                    return work(client)

            return await asyncio.to_thread(worked)

    def client(self, **options: Any) -> AsyncLetta:
        """Return a client for this event loop."""
        return AsyncLetta(base_url=self.url, **{"api_key": None, **options})


@asynccontextmanager
async def letta(root: Path, model: Any = None, **options: Any) -> AsyncIterator[LettaServer]:
    """Serve the store in `root` to clients of Letta while the block runs. `options`: of `served`."""
    async with served(root, model, **options) as server:
        yield LettaServer(server)


def created(client: Letta, name: str = "sam", **fields: Any) -> str:
    """Create an agent, and return its id."""
    given = {"memory_blocks": [{"label": "human", "value": "Chad"}], "model": "openai/script", **fields}
    return client.agents.create(name=name, **given).id


def kinds(messages: Any) -> list[str]:
    """Return the types of messages."""
    return [message.message_type for message in messages]


def texts(messages: Any) -> list[str]:
    """Return what an agent said in messages."""
    return [message.content for message in messages if message.message_type == "assistant_message"]


def client_methods(resource: Any, path: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the methods of a client that send a request, by their paths."""
    for name in dir(resource):
        if name.startswith(("_", "with_")) or name in {"close", "copy", "get_api_list", "is_closed"}:
            continue
        member = getattr(resource, name)
        if type(member).__name__.endswith("Resource"):
            yield from client_methods(member, f"{path}{name}.")
        elif path and inspect.ismethod(member):
            yield f"{path}{name}", member
