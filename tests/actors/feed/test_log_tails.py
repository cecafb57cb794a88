"""Followed agents: each record once and in order, whatever happens to the log, and an error instead of silence."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st

from everlog.actors.feed import log_tails
from everlog.actors.feed.log_tails import LogTails
from everlog.actors.ports.ports import Ports
from everlog.events import CorruptLog, Record, UnknownAgent
from tests.support import virtual_time
from tests.support.feed.restless_store import AGENTS, RestlessStore
from tests.support.law import law

Followed = AsyncIterator[Sequence[Record]]


def tails_of(world: RestlessStore) -> LogTails:
    return LogTails(world.store, Ports(clock=virtual_time.WallClock(), aside=world.aside))


async def seqs_until(records: Followed, last: int) -> list[int]:
    """Read until a seq has come, and return all seqs."""
    found: list[int] = []
    while not found or found[-1] < last:
        found += [record.seq for record in await anext(records)]
    return found


@law(st.integers(0, 2**32), st.booleans(), few=2, many=1000)
def test_a_follower_gets_each_record_once_and_in_order(seed: int, slow: bool) -> None:
    """From any start, while agents write to the same logs, move, are forked and logs are sealed, each follower gets
    exactly the records of its agent's log, in order.
    """
    with tempfile.TemporaryDirectory() as folder:
        world = RestlessStore(Path(folder), seed)
        found: dict[tuple[str, int], list[Record]] = {}

        async def follow(tails: LogTails, agent: str, after: int) -> None:
            seen = found[agent, after] = []
            async for records in tails.follow(agent, after):
                seen += records
                if slow:
                    await asyncio.sleep(world.random.choice((0, 5)))

        async def main() -> None:
            tails = tails_of(world)
            readers = [(agent, world.random.randint(0, world.world.seq(agent))) for agent in (*AGENTS, *AGENTS)]
            work = [asyncio.ensure_future(follow(tails, *reader)) for reader in dict.fromkeys(readers)]
            while world.left:
                world.act_by_itself()
                await asyncio.sleep(world.random.random())
            for name in [name for name in world.agents if name not in AGENTS]:
                work.append(asyncio.ensure_future(follow(tails, name, 0)))
            await asyncio.sleep(1)
            world.finish()
            world.say("ann")
            await asyncio.sleep(60)
            for task in work:
                task.cancel()
            for outcome in await asyncio.gather(*work, return_exceptions=True):
                assert isinstance(outcome, asyncio.CancelledError), outcome
            await tails.close()

        virtual_time.run(main, collect=False)
        for (agent, after), seen in found.items():
            assert [(r.seq, r.event_id) for r in seen] == [(r.seq, r.event_id) for r in world.log_of(agent)[after:]]
        world.close()


def test_a_queue_that_overflows_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes nothing while more records arrive than its queue holds gets them all from the log later."""
    monkeypatch.setattr(log_tails, "QUEUED_MAX", 5)
    world = RestlessStore(tmp_path, 1, calm=True)

    async def main() -> None:
        tails = tails_of(world)
        reading = tails.follow("ann", 0)
        assert [record.seq for record in await anext(reading)] == [1]
        for _ in range(3):
            world.say("ann", 4)
            await asyncio.sleep(2)
        assert await seqs_until(reading, 13) == list(range(2, 14))
        world.say("ann")
        assert await seqs_until(reading, 14) == [14]
        await reading.aclose()
        await tails.close()

    virtual_time.run(main)


def test_an_agent_of_a_followed_partition_needs_no_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a partition is followed, the heads of its agents are known, also of what was just written or sealed, and
    a further reader of what is new opens no log. The head of an agent elsewhere is not known.
    """
    world = RestlessStore(tmp_path, 1, calm=True)

    async def main() -> None:
        tails = tails_of(world)
        assert await tails.head("ann") == 0
        world.seal()
        world.say("ann", 2)
        first = tails.follow("ann", 0)
        assert await seqs_until(first, 3) == [1, 2, 3]
        monkeypatch.setattr(world.store, "reader", lambda name: pytest.fail(f"the log of {name} was opened"))
        assert await tails.head("ann") == 3
        for seal in (False, True, False):
            world.say("ann")
            if seal:
                world.seal()
            head = world.world.seq("ann")
            assert await tails.head("ann") == head
        second = tails.follow("ann", head)
        waiting = asyncio.ensure_future(seqs_until(second, head + 1))
        await asyncio.sleep(2)
        world.say("ann")
        assert await waiting == [head + 1]
        assert await seqs_until(first, head + 1) == list(range(4, head + 2))
        assert await tails.head("alone-sam") == 0
        for reading in (first, second):
            await reading.aclose()
        await tails.close()

    virtual_time.run(main)


def test_a_move_that_was_interrupted_is_waited_for(tmp_path: Path) -> None:
    """An agent that has left its log, while the register does not say so yet, is followed to where it goes."""
    world = RestlessStore(tmp_path, 1, calm=True)
    register = world.store.register_files
    move, moved = register.move, []
    register.move = moved.append

    async def main() -> None:
        tails = tails_of(world)
        readings = [tails.follow("ann", 0), tails.follow("ann", 0)]
        assert await seqs_until(readings[0], 1) == [1]
        world.depart("ann", "shard-000" if world.world.log("ann").partition == "shard-001" else "shard-001")
        assert await seqs_until(readings[0], 2) == [2]
        assert await seqs_until(readings[1], 2) == [1, 2]
        waiting = [asyncio.ensure_future(seqs_until(reading, 4)) for reading in readings]
        await asyncio.sleep(5)
        move(moved[0])
        await asyncio.sleep(5)
        world.say("ann")
        assert await asyncio.gather(*waiting) == [[3, 4], [3, 4]]
        for reading in readings:
            await reading.aclose()
        await tails.close()

    virtual_time.run(main)


def test_a_fork_is_followed_from_its_ancestors_on(tmp_path: Path) -> None:
    """A fork that is followed from its beginning has the records of its parent first, and only those it shares."""
    world = RestlessStore(tmp_path, 1, calm=True)
    world.say("ann", 5)
    name = world.fork("ann")
    world.say("ann", 2)

    async def main() -> None:
        tails = tails_of(world)
        reading = tails.follow(name, 0)
        first = await seqs_until(reading, len(world.log_of(name)))
        world.say(name)
        assert first + await seqs_until(reading, len(world.log_of(name))) == [r.seq for r in world.log_of(name)]
        await reading.aclose()
        await tails.close()

    virtual_time.run(main)


@pytest.mark.parametrize("already", [True, False])
def test_the_reader_of_a_damaged_log_gets_the_error(tmp_path: Path, already: bool) -> None:
    """Damage in a followed log is an error for all its readers, those that wait already too, and is no silence."""
    world = RestlessStore(tmp_path, 1, calm=True)
    path = max(world.store.partition(world.world.log("ann").partition).path.glob("*.open"))

    async def main() -> None:
        tails = tails_of(world)
        readings = [tails.follow("ann", 0) for _ in range(2)]
        if already:
            for reading in readings:
                await anext(reading)
        waiting = [asyncio.ensure_future(seqs_until(reading, 99)) for reading in readings]
        if already:
            await asyncio.sleep(0)
        size = path.stat().st_size
        world.say("ann")
        world.say("ann")
        data = bytearray(path.read_bytes())
        data[size + 100] ^= 1
        path.write_bytes(bytes(data))
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(outcome, CorruptLog)
        await tails.close()

    virtual_time.run(main)


def test_readers_of_a_tail_that_failed_come_and_go(tmp_path: Path) -> None:
    """After damage was mended, a new reader of the same log reads on, also before the old readers are gone."""
    world = RestlessStore(tmp_path, 1, calm=True)
    path = max(world.store.partition(world.world.log("ann").partition).path.glob("*.open"))

    async def main() -> None:
        tails = tails_of(world)
        old = tails.follow("ann", 0)
        await anext(old)
        waiting = asyncio.ensure_future(anext(old))
        at = path.stat().st_size + 100
        world.say("ann")
        world.say("ann")
        whole = path.read_bytes()
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CorruptLog):
            await waiting
        path.write_bytes(whole)
        new = tails.follow("ann", 1)
        assert await seqs_until(new, 3) == [2, 3]
        await new.aclose()
        await tails.close()

    virtual_time.run(main)


def test_an_unknown_agent_is_an_error(tmp_path: Path) -> None:
    """Following an agent that does not exist fails at once."""
    world = RestlessStore(tmp_path, 1, calm=True)

    async def main() -> None:
        tails = tails_of(world)
        with pytest.raises(UnknownAgent):
            await anext(tails.follow("nobody", 0))
        await tails.close()

    virtual_time.run(main)
