"""Carry out many commands at once, and yield their outcomes in batches as they complete.

Used by the runtimes and by shards for `perform_many`; `cluster.outcome_codec` encodes the outcomes for other processes.
Outcomes arrive in any order: only their `number` matches them to the commands.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from everlog.actors.agent.commands import Command, StreamItem
from everlog.events import EverlogError, Record

CommandStreamer = Callable[[str, Command], AsyncIterator[StreamItem]]
"""Has an agent carry out a command, and yields what follows as it happens."""
CommandExecutor = Callable[[str, Command, list[Record]], Awaitable[Any]]
"""Has an agent carry out a command, appends its records to the list, and returns the command's value at the end."""
ItemT = TypeVar("ItemT")


class BatchCommand(msgspec.Struct, frozen=True):
    """One command among many."""

    number: int
    """Number by which the outcome is matched to the command."""
    agent_id: str
    command: Command


class BatchOutcome(msgspec.Struct, frozen=True):
    """Outcome of a `BatchCommand`."""

    number: int
    records: Sequence[Record]
    """Records that followed from the command, in order."""
    value: Any = None
    """Value of the command."""
    error: EverlogError | None = None
    """Error that stopped the command before or during its work; None if it succeeded."""


BatchPerformer = Callable[[Sequence[BatchCommand]], AsyncIterator[Sequence[BatchOutcome]]]
"""Carries out many commands; `Runtime.perform_many`."""


async def outcomes(
    perform_and_collect: CommandExecutor, orders: Sequence[BatchCommand]
) -> AsyncIterator[Sequence[BatchOutcome]]:
    """Carry out all commands at once. Yield their outcomes in batches as they complete. A bug in one command is
    raised.
    """
    ended: asyncio.Queue[asyncio.Task[BatchOutcome]] = asyncio.Queue()
    tasks = [asyncio.get_running_loop().create_task(_batch_outcome(perform_and_collect, order)) for order in orders]
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


async def _batch_outcome(perform_and_collect: CommandExecutor, order: BatchCommand) -> BatchOutcome:
    collected: list[Record] = []
    try:
        value = await perform_and_collect(order.agent_id, order.command, collected)
    except EverlogError as error:
        return BatchOutcome(order.number, collected, error=error)
    return BatchOutcome(order.number, collected, value)


async def errors_of(
    perform_many: BatchPerformer, commands: Sequence[tuple[str, Command]]
) -> Sequence[EverlogError | None]:
    """Have agents, each named before its command, carry out commands. Return the error of each, in order."""
    errors: list[EverlogError | None] = [None] * len(commands)
    orders = [BatchCommand(number, agent_id, command) for number, (agent_id, command) in enumerate(commands)]
    async for some in perform_many(orders):
        for outcome in some:
            errors[outcome.number] = outcome.error
    return errors


async def merge_streams(streams: Iterable[AsyncIterator[ItemT]]) -> AsyncIterator[ItemT]:
    """Yield the items of all streams as they arrive; the first error of a stream ends it. No stream may yield None."""
    collected: asyncio.Queue[ItemT | BaseException | None] = asyncio.Queue()

    async def forward(stream: AsyncIterator[ItemT]) -> None:
        async for item in stream:
            collected.put_nowait(item)

    def ended(task: asyncio.Task[None]) -> None:
        collected.put_nowait(None if task.cancelled() else task.exception())

    tasks = [asyncio.get_running_loop().create_task(forward(stream)) for stream in streams]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        left = len(tasks)
        while left:
            item = await collected.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                left -= 1
            else:
                yield item
    finally:
        for task in tasks:
            task.cancel()
