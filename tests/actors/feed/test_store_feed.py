"""The feed of a store: every record once and in order, for readers that stop anywhere and continue later."""

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st

from everlog.actors.feed import store_feed
from everlog.actors.feed.feed_position import FeedPosition
from everlog.actors.feed.store_feed import NOW, START, FeedFilter, FeedReader, StoreFeed
from everlog.actors.ports.ports import Ports
from everlog.events import BadInput, CorruptLog, Record
from tests.support import virtual_time
from tests.support.feed.restless_store import RestlessStore
from tests.support.law import law

ALL = FeedFilter()


def feed_of(world: RestlessStore) -> StoreFeed:
    return StoreFeed(world.store, Ports(clock=virtual_time.WallClock(), aside=world.aside))


def own_records(world: RestlessStore, agent: str) -> list[Record]:
    """Return the records of an agent without those of its ancestors."""
    return [record for record in world.log_of(agent) if record.agent_id == agent]


def by_agent(records: Sequence[Record]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for record in records:
        found[record.agent_id].append(record.seq)
    return found


async def rest(reader: FeedReader) -> list[Record]:
    """Return all records up to the end."""
    found: list[Record] = []
    while (portion := await reader.take()) is not None:
        assert portion.error is None, portion.error
        found += portion.records
    return found


@law(st.integers(0, 2**32), few=2, many=1000)
def test_a_feed_that_is_resumed_anywhere_has_every_record_once_and_in_order(seed: int) -> None:
    """While agents write, move between logs and are forked, and logs are sealed, a reader that is cut after any portion
    and continues from its token has each record of each agent exactly once, in the order of its log.
    """
    with tempfile.TemporaryDirectory() as folder:
        world = RestlessStore(Path(folder), seed)
        found: list[Record] = []

        async def main() -> None:
            feed, token = feed_of(world), START
            quiet = 0
            while quiet < 2:
                async with feed.reader(feed.parse(token), ALL) as reader:
                    for _ in range(world.random.randint(1, 12)):
                        portion = await reader.take()
                        if portion is None:
                            world.act_by_itself()
                            await asyncio.sleep(world.random.choice((0, 1.5)))
                            continue
                        assert portion.error is None
                        found.extend(portion.records)
                        token = reader.position.token()
                if not world.left:
                    world.finish()
                    quiet += 1
            async with feed.reader(feed.parse(token), ALL) as reader:
                found.extend(await rest(reader))
                assert (
                    reader.position.token() == FeedPosition.parse(reader.position.token(), world.store.store_id).token()
                )
            await feed.close()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store_feed, "RECORDS_MAX", world.random.choice((1, 5, 500)))
            virtual_time.run(main, collect=False)
        assert by_agent(found) == {
            agent: [record.seq for record in own_records(world, agent)] for agent in world.agents
        }
        world.close()


def test_a_feed_from_now_has_what_comes_later_and_nothing_else(tmp_path: Path) -> None:
    """`now` is after everything that was committed; agents and partitions that are new later are in the feed."""
    world = RestlessStore(tmp_path, 1, calm=True)

    async def main() -> None:
        feed = feed_of(world)
        async with feed.reader(feed.parse(NOW), ALL) as reader:
            assert await reader.take() is None
            world.say("ann")
            new = world.fork("bob")
            world.say("alone-late")
            waiting: dict[str, list[int]] = defaultdict(list)
            while len(waiting) < 3:
                await reader.wait()
                for agent, seqs in by_agent(await rest(reader)).items():
                    waiting[agent] += seqs
            assert dict(waiting) == {"ann": [2], new: [2], "alone-late": [1]}
        await feed.close()

    virtual_time.run(main)


def test_filters_choose_agents_and_types(tmp_path: Path) -> None:
    """Patterns choose agents by name, types choose records, and what is not wanted is passed over for good."""
    world = RestlessStore(tmp_path, 1, calm=True)
    world.world.insert("ann", "a memory")
    world.world.insert("alone-sam", "a memory")

    async def main() -> None:
        feed = feed_of(world)

        async def seen(wanted: FeedFilter, after: str = START) -> tuple[dict[str, list[int]], str]:
            async with feed.reader(feed.parse(after), wanted) as reader:
                return dict(by_agent(await rest(reader))), reader.position.token()

        found, token = await seen(FeedFilter(agents=("a*",)))
        assert found == {"ann": [1, 2], "alone-sam": [1, 2]}
        assert (await seen(ALL, token))[0] == {}
        assert (await seen(FeedFilter(agents=("ann", "bob"), types=("archival_inserted",))))[0] == {"ann": [2]}
        assert (await seen(FeedFilter(types=("user_message",))))[0] == {"ann": [1], "bob": [1], "alone-sam": [1]}
        await feed.close()

    virtual_time.run(main)


def test_a_reader_that_may_not_know_of_a_stream_learns_nothing_of_it(tmp_path: Path) -> None:
    """The position of such a reader does not change with what others write into logs of their own."""
    world = RestlessStore(tmp_path, 1, calm=True)

    def named(stream: str) -> str | None:
        return "sam" if stream == "alone-sam" else None

    async def main() -> None:
        feed = feed_of(world)
        async with feed.reader(feed.parse(START), ALL, named) as reader:
            assert by_agent(await rest(reader)) == {"alone-sam": [1]}
            before = reader.position.token()
            world.say("alone-other")
            await asyncio.sleep(3)
            assert await rest(reader) == []
            assert reader.position.token() == before
        async with feed.reader(feed.parse(NOW), ALL, named) as reader:
            shards = {name for name in world.store.partitions() if name.startswith("shard")}
            assert len(reader.position.token()) <= len(before) + 10 * len(shards)
        await feed.close()

    virtual_time.run(main)


def test_a_damaged_partition_is_told_once_and_read_after_it_is_mended(tmp_path: Path) -> None:
    """Damage of one log is told to the reader, hinders no other log, and loses nothing once it is mended."""
    world = RestlessStore(tmp_path, 1, calm=True)
    path = max(world.store.partition(world.world.log("alone-sam").partition).path.glob("*.open"))
    world.say("alone-sam")
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])

    async def main() -> None:
        feed = feed_of(world)
        async with feed.reader(feed.parse(START), ALL) as reader:
            portions = []
            while (portion := await reader.take()) is not None:
                portions.append(portion)
            errors = [portion.error for portion in portions if portion.error is not None]
            assert [type(error) for error in errors] == [CorruptLog]
            assert set(by_agent([r for p in portions for r in p.records])) == {"ann", "bob"}
            world.say("bob")
            await asyncio.sleep(30)
            assert by_agent(await rest(reader)) == {"bob": [2]}
            path.write_bytes(whole)
            await asyncio.sleep(3)
            assert by_agent(await rest(reader)) == {"alone-sam": [1, 2]}
        await feed.close()

    virtual_time.run(main)


def test_partitions_that_rest_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at partitions that rest lists no folder and reads no file: it costs two looks at sizes and times."""
    world = RestlessStore(tmp_path, 1, calm=True)
    for number in range(30):
        world.say(f"alone-{number}")

    async def main() -> None:
        feed = feed_of(world)
        async with feed.reader(feed.parse(START), ALL) as reader:
            assert len(await rest(reader)) == 33
            await asyncio.sleep(10)
            disk = type(world.store.disk)
            calls: list[str] = []
            for name in ("read", "names"):
                real = getattr(disk, name)
                monkeypatch.setattr(
                    disk, name, lambda *a, real=real, name=name: calls.append(f"{name} {a[1].name}") or real(*a)
                )
            await asyncio.sleep(20)
            assert set(calls) <= {"names log"}
        await feed.close()

    virtual_time.run(main)


@pytest.mark.parametrize("token", ["", "x", "AQ", "%", "é", "start ", "A" * 50, "AQAAAAAB"])
def test_other_texts_are_no_positions(tmp_path: Path, token: str) -> None:
    """A text that no feed of this store gave is refused, and is not taken for the beginning."""
    world = RestlessStore(tmp_path, 1, calm=True)
    with pytest.raises(BadInput):
        feed_of(world).parse(token)


@law(st.dictionaries(st.text(max_size=5), st.integers(1, 2**63 - 1), max_size=20), st.binary(max_size=3), few=50,
     many=5000)  # fmt: skip
def test_a_token_is_the_position_and_nothing_else_is(commits: dict[str, int], noise: bytes) -> None:
    """A position survives its token; a token that is cut, doubled or of another store is refused or is another
    position.
    """
    position = FeedPosition("store")
    for partition, commit in commits.items():
        position.advance(partition, commit)
    token = position.token()
    again = FeedPosition.parse(token, "store")
    assert again == position
    assert all(again.of(partition) == commit for partition, commit in commits.items())
    with pytest.raises(BadInput):
        FeedPosition.parse(token, "another")
    for other in {token[:-1], token + noise.hex(), token[1:]} - {token}:
        try:
            assert FeedPosition.parse(other, "store") != position
        except BadInput:
            pass
