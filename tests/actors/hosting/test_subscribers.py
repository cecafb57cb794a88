"""Delivery to subscribers: a caller that reconnects gets its whole turn, in order and once, with any events in
between.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from everlog.actors.hosting.subscribers import Collector, StreamSubscriber, Subscribers
from everlog.events import ModelReply, Record, draft
from everlog.testing import CountingIds
from tests.support.agent_world import START

IDS = CountingIds()


def record(seq: int, turn: int = 1) -> Record:
    made = draft(ModelReply(text=str(seq)), event_id=IDS.new(START), recorded_at=START, turn=turn, step=1)
    return Record(
        agent_id="sam", seq=seq, commit=seq, event_id=made.event_id, recorded_at=START, said_at=None, type=made.type,
        turn=turn, step=1, cause=None, version=1, text=made.text, payload=made.payload,
    )  # fmt: skip


def heard(listener: StreamSubscriber) -> list[int]:
    """Return the seqs of the delivered records, in order."""
    found: list[Sequence[Record] | None] = []
    while not listener.collected.empty():
        found.append(listener.collected.get_nowait())
    return [one.seq for records in found if records is not None for one in records]


def run(main: Callable[[Subscribers], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main(Subscribers()))


def test_commits_during_a_log_read_come_after_it() -> None:
    """Commits that are published before the caller's turn is known are delivered once, after the records that were read
    from the log.
    """

    async def main(audience: Subscribers) -> None:
        one, two, three = record(1), record(2), record(3)
        with audience.joined("id", "asker", held=True) as listener:
            audience.on_commit([two])
            audience.on_commit([three])
            assert heard(listener) == []
            listener.attach_turn(1, [one, two])
            assert heard(listener) == [1, 2, 3]
            audience.on_commit([record(4)])
            assert heard(listener) == [4]

    run(main)


def test_a_command_without_a_turn_gets_records_at_once() -> None:
    """A command that opens no turn gets records immediately."""

    async def main(audience: Subscribers) -> None:
        with audience.joined("id", "asker", held=False) as listener:
            audience.on_commit([record(1)])
            assert heard(listener) == [1]

    run(main)


def test_a_command_that_fails_early_still_gets_its_records() -> None:
    """If a command ends before its turn is known, the records that were held back are delivered."""

    async def main(audience: Subscribers) -> None:
        with audience.joined("id", "asker", held=True) as listener:
            audience.on_commit([record(1)])
            listener.end()
            assert heard(listener) == [1]

    run(main)


def test_records_of_a_departed_caller_go_to_watchers_only() -> None:
    """Records of a turn whose caller has left are delivered to watchers and to no other caller."""

    async def main(audience: Subscribers) -> None:
        with audience.joined("a", "asker", held=False) as gone:
            gone.attach_turn(1)
        with audience.joined("b", "asker", held=False) as other, audience.joined("w", "watcher", held=False) as watcher:
            other.attach_turn(2)
            audience.on_commit([record(1, turn=1)])
            audience.on_commit([record(2, turn=2)])
            assert (heard(other), heard(watcher)) == ([2], [1])

    run(main)


def test_a_collector_gets_all_records_once_and_in_order() -> None:
    """A collector has the records before its turn was known, those from the log and the later ones, up to the end of
    the turn.
    """

    async def main(audience: Subscribers) -> None:
        found: list[Record] = []
        gatherer = Collector("id", "asker", held=True, collected=found)
        audience.join(gatherer)
        one, two = record(1), record(2)
        audience.on_commit([two])
        assert not found
        gatherer.attach_turn(1, [one, two])
        audience.on_commit([record(3)])
        assert not gatherer.ended.done()
        gatherer.end()
        await gatherer.ended
        audience.on_commit([record(4)])
        audience.leave(gatherer)
        assert [one.seq for one in found] == [1, 2, 3]

    run(main)


def test_ending_the_turn_of_a_departed_caller_is_no_error() -> None:
    """Ending the turn of a caller that has left raises no error."""

    async def main(audience: Subscribers) -> None:
        gatherer = Collector("id", "asker", held=False, collected=[])
        audience.join(gatherer)
        gatherer.ended.cancel()
        audience.leave(gatherer)
        gatherer.end()
        assert gatherer.ended.cancelled()

    run(main)
