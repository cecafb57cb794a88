"""Many commands at once, and what becomes of each: outcomes come together, as many as there are."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from everlog.actors.agent.commands import Command, StreamItem
from everlog.events import EverlogError, Record

CommandStreamer = Callable[[str, Command], AsyncIterator[StreamItem]]
"""Has an agent carry out a command, and tells what follows as it happens."""
CommandExecutor = Callable[[str, Command, list[Record]], Awaitable[Any]]
"""The same for who hears everything at the end: the list gets the records. Gives back what the command does."""
ItemT = TypeVar("ItemT")


class BatchCommand(msgspec.Struct, frozen=True):
    """One command among many."""

    number: int
    """Tells its outcome from the others."""
    agent_id: str
    command: Command


class BatchOutcome(msgspec.Struct, frozen=True):
    """What became of an order."""

    number: int
    records: Sequence[Record]
    """What followed from it, in order."""
    value: Any = None
    """What the command gives back."""
    error: EverlogError | None = None
    """Why it was not carried out, or not to its end."""


async def outcomes(carry_out: CommandExecutor, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
    """Have all orders carried out at once; what became of them, as it does, many together. A bug in one is raised."""
    ended: asyncio.Queue[asyncio.Task[BatchOutcome]] = asyncio.Queue()
    tasks = [asyncio.get_running_loop().create_task(_carried_out(carry_out, order)) for order in orders]
    for task in tasks:
        task.add_done_callback(ended.put_nowait)
    try:
        left = len(orders)
        while left:
            found = [(await ended.get()).result()]
            while not ended.empty():
                found.append(ended.get_nowait().result())
            left -= len(found)
            yield found
    finally:
        for task in tasks:
            task.cancel()


async def _carried_out(carry_out: CommandExecutor, order: BatchCommand) -> BatchOutcome:
    heard: list[Record] = []
    try:
        value = await carry_out(order.agent_id, order.command, heard)
    except EverlogError as error:
        return BatchOutcome(order.number, heard, error=error)
    return BatchOutcome(order.number, heard, value)


async def merged(streams: Iterable[AsyncIterator[ItemT]]) -> AsyncIterator[ItemT]:
    """What comes from any of the streams, as it comes; the first error of one ends it. None of them gives None."""
    heard: asyncio.Queue[ItemT | BaseException | None] = asyncio.Queue()

    async def listen(stream: AsyncIterator[ItemT]) -> None:
        async for item in stream:
            heard.put_nowait(item)

    def ended(task: asyncio.Task[None]) -> None:
        heard.put_nowait(None if task.cancelled() else task.exception())

    tasks = [asyncio.get_running_loop().create_task(listen(stream)) for stream in streams]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        left = len(tasks)
        while left:
            item = await heard.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                left -= 1
            else:
                yield item
    finally:
        for task in tasks:
            task.cancel()
