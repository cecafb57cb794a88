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
    joined_items,
)


class FinishedRun(NamedTuple):
    """A run that has ended."""

    records: Sequence[Record]
    end: RunEnded


async def begun(call: HttpCall, run: ConversationRun, *, preview: bool) -> AsyncIterator[RunItem]:
    """Send the message of a run, or join the run if it was sent before. Return its items. `preview`: with the reply as
    the model writes it.

    Raises the error of a message that was not taken: nothing was sent then.
    """
    if run.message is None:
        found = await call.service.run_of(run.stream, run.run)
        if found is None:
            raise not_found(f"run {run.run!r}")
        return joined_items(call.service, run.stream, run.run, found)
    handle = call.service.system.handle(run.stream, by=call.caller.key_id, first_id=run.run)
    items = await begun_items(handle.send(run.message, preview=ignore_preview if preview else None))
    call.service.tails.nudge(run.stream)
    return items


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
