"""Begin or join the run that answers a request, and wait for its end. Used by the surfaces of other makers."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from everlog.actors.formats.reply_preview import Preview
from everlog.actors.reply import Reply
from everlog.events import Record
from everlog.interfaces.http.conversations.conversation_run import ConversationRun
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.runs.run_items import (
    RunEnded,
    RunItem,
    RunLeft,
    begun_items,
    ignore_preview,
    input_of_run,
    joined_items,
)


class FinishedRun(NamedTuple):
    """A run that has ended."""

    records: Sequence[Record]
    end: RunEnded


class StartedRun(NamedTuple):
    """A run whose input is in the log."""

    input: Record
    items: AsyncIterator[RunItem]
    """Items from the beginning of the run."""


async def begun(call: HttpCall, run: ConversationRun, *, preview: bool) -> StartedRun:
    """Send the message of a run, or join the run if it was sent before. `preview`: yield the reply as the model writes
    it.

    Raises the error of a message that was not taken: nothing was sent then.
    """
    if run.message is None:
        found = await call.service.run_of(run.stream, run.run)
        if found is None:
            raise not_found(f"run {run.run!r}")
        return StartedRun(found.input, joined_items(call.service, run.stream, run.run, found))
    handle = call.service.system.handle(run.stream, by=call.caller.key_id, first_id=run.run)
    sent = handle.send(run.message, preview=ignore_preview if preview else None)
    items = await begun_items(sent)
    call.service.tails.nudge(run.stream)
    return StartedRun(input_of_run(sent), items)


async def finished(items: AsyncIterator[RunItem]) -> FinishedRun:
    """Wait for the end of a run, and return it. Raises the failure of the model, and the error of a run that continues
    elsewhere.
    """
    records: list[Record] = []
    async for item in items:
        if isinstance(item, RunLeft):
            raise item.error
        if isinstance(item, RunEnded):
            if item.error is not None:
                raise item.error
            return FinishedRun(records, item)
        if not isinstance(item, Preview):
            records += item
    raise AssertionError("a run has an end")


async def reply_of(call: HttpCall, stream: str, run: str, records: Sequence[Record]) -> Reply:
    """Return what the records of a run say together."""
    return Reply(stream, run, records, records[0] if records else None, await call.service.system.prices())
