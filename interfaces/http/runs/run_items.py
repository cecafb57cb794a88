"""Yield what comes out of a run: records, previews of a reply that is streamed, and one end.

Every surface encodes the same items in its own format. A run is in the log from its first moment, so a reader that
comes back joins it: the same input, sent again under the same id, is what gives the rest of the run.
"""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from everlog.actors.feed.run_lookup import RunRecords, status_of_ended
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.runtime import Run
from everlog.events import (
    BudgetExceeded,
    DuplicateId,
    Event,
    EverlogError,
    ModelError,
    ModelFailed,
    Record,
    event_of,
)
from everlog.interfaces.http.core.service import HttpService
from everlog.interfaces.wire.runs import RunStatusName


class RunEnded(NamedTuple):
    """Last item of a run that has ended."""

    status: RunStatusName
    last_seq: int
    """Last record of the run."""
    error: ModelError | None = None
    """Failure that ended the run: there is one if the status is `failed`."""


class RunLeft(NamedTuple):
    """Last item for a reader of a run that has not ended and continues elsewhere, or will: the reader comes back."""

    error: EverlogError


RunItem = Sequence[Record] | Preview | RunEnded | RunLeft
"""Records that were committed together, a preview, or the end."""


def ignore_preview(_: Preview) -> None:
    """Ignore a preview: the items of the run have it."""


async def begun_items(run: Run, after: int = 0) -> AsyncIterator[RunItem]:
    """Send the command of a run, and return the items of the run. `after`: seq of the last record that the reader has.

    Raises the error of a command that was not taken: an answer whose stream has not begun can still have its status.
    """
    items = run.items()
    return _items_of(run, items, await anext(items, None), after)


def input_of_run(run: Run) -> Record:
    """Return the input of a run that has begun: its first records have it."""
    return next(record for record in run.records if record.event_id == run.event_id)


async def _items_of(
    run: Run, items: AsyncIterator[Sequence[Record] | Preview], first: Sequence[Record] | Preview | None, after: int
) -> AsyncIterator[RunItem]:
    """Yield the items of a run that is at work. `first`: item that was received already."""
    last, received = after, first
    try:
        while received is not None:
            if isinstance(received, Preview):
                yield received
            else:
                fresh = [record for record in received if record.seq > after]
                last = max((record.seq for record in fresh), default=last)
                if fresh:
                    yield fresh
            received = await anext(items, None)
    except ModelError as error:  # the failure is in the log, and the run has ended by it
        yield RunEnded("failed", last, error)
        return
    except EverlogError as error:
        yield RunLeft(error)
        return
    turn = run.value.turn if isinstance(run.value, Record) else 0
    yield _ended([record for record in run.records if record.turn == turn], last)


async def drained(items: AsyncIterator[RunItem]) -> None:
    """Receive the rest of a run whose caller does not wait. A failure is in the log."""
    async for _ in items:
        pass


def ended_items(found: RunRecords, after: int = 0) -> Sequence[RunItem]:
    """Return the items of a run that has ended, from its records."""
    fresh = [record for record in found.records if record.seq > after]
    end = _ended(found.records, found.records[-1].seq)
    return (fresh, end) if fresh else (end,)


def _ended(records: Sequence[Record], last_seq: int) -> RunEnded:
    """Return the end of a run that has ended, from all of its records."""
    status = status_of_ended(records)
    return RunEnded(status, last_seq, _failure(records) if status == "failed" else None)


def _failure(records: Sequence[Record]) -> ModelError:
    """Return the failure that ended a run, as its records tell it."""
    last = next(record for record in reversed(records) if record.type in (ModelFailed.kind, BudgetExceeded.kind))
    failed = event_of(last)
    kind = failed.failure if isinstance(failed, ModelFailed) else "budget"
    return ModelError(last.text or "The model failed.", kind=kind)


async def joined_items(
    service: HttpService, stream: str, run_id: str, found: RunRecords, after: int = 0
) -> AsyncIterator[RunItem]:
    """Yield the items of a run after a seq: of one that has ended from the log, of another one as they come."""
    if found.status != "running":
        for item in ended_items(found, after):
            yield item
        return
    said = event_of(found.input)
    assert isinstance(said, Event)
    run = service.system.handle(stream).send(said, event_id=run_id, preview=ignore_preview)
    try:
        items = await begun_items(run, after)
    except ModelError:  # it failed since it was looked up
        for item in ended_items(await _again(service, stream, run_id), after):
            yield item
        return
    except DuplicateId:  # a timer's heartbeat was written together with the next time of the timer
        async for item in _followed(service, stream, run_id, found, after):
            yield item
        return
    except EverlogError as error:  # no host takes the run now
        yield RunLeft(error)
        return
    async for item in items:
        yield item


async def _followed(
    service: HttpService, stream: str, run_id: str, found: RunRecords, after: int
) -> AsyncIterator[RunItem]:
    """Yield the records of a run from the log, until the run has ended."""
    async for records in service.tails.follow(stream, after or found.input.seq - 1):
        fresh = [record for record in records if record.turn == found.input.turn]
        if fresh:
            yield fresh
        now = await _again(service, stream, run_id)
        if now.status != "running":
            for item in ended_items(now, records[-1].seq):
                yield item
            return


async def _again(service: HttpService, stream: str, run_id: str) -> RunRecords:
    """Return a run that was found before, as it is now."""
    found = await service.run_of(stream, run_id)
    assert found is not None, "a run that was in the log is in the log"
    return found
