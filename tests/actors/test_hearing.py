"""Who hears what: a caller who comes again hears the whole turn, in order and once, whatever happens meanwhile."""

import asyncio
from collections.abc import Sequence

from actors.hearing import Audience, Listener
from events import Record, UserMessage, draft
from tests.world import START, CountingIds

IDS = CountingIds()


def record(seq: int, turn: int = 1, step: int = 1) -> Record:
    made = draft(UserMessage(text=str(seq)), event_id=IDS.new(START), recorded_at=START, turn=turn, step=step)
    return Record(
        agent_id="sam", seq=seq, commit=seq, event_id=made.event_id, recorded_at=START, said_at=None, type=made.type,
        turn=turn, step=step, cause=None, version=1, text=made.text, payload=made.payload,
    )  # fmt: skip


def heard(listener: Listener) -> list[int]:
    """The seqs that have come, in order."""
    found: list[Sequence[Record] | None] = []
    while not listener.heard.empty():
        found.append(listener.heard.get_nowait())
    return [one.seq for records in found if records is not None for one in records]


def test_what_happens_while_the_log_is_read_comes_after_it() -> None:
    """A commit that is told before the caller's turn is known neither overtakes what the log has, nor comes twice."""

    async def run() -> None:
        one, two, three = record(1), record(2), record(3)
        with Audience().joined("id", waits=True) as listener:
            listener.tell([two])
            listener.tell([three])
            assert heard(listener) == []
            listener.begin([one, two])
            assert heard(listener) == [1, 2, 3]
            listener.tell([record(4)])
            assert heard(listener) == [4]

    asyncio.run(run())


def test_a_caller_who_waits_for_nothing_hears_at_once() -> None:
    """A command that opens no turn has nothing to wait for."""

    async def run() -> None:
        audience = Audience()
        with audience.joined("id") as listener:
            audience.hear([record(1)])
            assert heard(listener) == [1]

    asyncio.run(run())


def test_a_command_that_fails_first_still_hears_what_was_told() -> None:
    """The end passes on what was held back."""

    async def run() -> None:
        audience = Audience()
        with audience.joined("id", waits=True) as listener:
            audience.hear([record(1)])
            listener.end()
            assert heard(listener) == [1]

    asyncio.run(run())
