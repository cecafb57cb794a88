"""Agents that run while the number of shards changes: each message once, in order, and no agent stops for long."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.commands import Command
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.actors.hosting.local_runtime import LocalRuntime
from everlog.actors.ports.ports import Ports
from everlog.actors.sharding import shard_mover
from everlog.actors.sharding.departures import Departures
from everlog.actors.sharding.shard_mover import ShardMover, misplaced
from everlog.events import Busy, EverlogError, HostLost, StoreError
from everlog.store import FileStore, MemoryStore, check, shard_of
from tests.support.agents.virtual_time_runtime import run_plain

NAMES = [f"agent {number}" for number in range(8)]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[AgentSystem]:
    async with open_system(folder, runtime="local", placement="shared", shards=2) as system:
        yield system


async def resized(system: AgentSystem, number: int) -> None:
    """Change the number of shards, and wait until all agents have moved."""
    system.store.set_shards(number)
    assert isinstance(system.runtime, LocalRuntime)
    moves = await system.runtime.move_to_shards()
    while moves.running:
        await asyncio.sleep(0)
        moves = await system.runtime.move_to_shards(begin=False)
    assert not misplaced(system.store), moves


async def talk(agent: AgentRef, said: list[str], done: asyncio.Event) -> None:
    """Send one message after the other, without a pause, until `done` and at least two."""
    while not done.is_set() or len(said) < 2:
        said.append(f"word {len(said)}")
        await agent.send(said[-1])


def heard(store: FileStore, name: str) -> Sequence[str | None]:
    """Return the messages in an agent's log, which must have no gap."""
    records = list(store.reader(name).read(name))
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    return [record.text for record in records if record.type == "user_message"]


def test_agents_at_work_move_to_more_shards_and_to_one(tmp_path: Path) -> None:
    """While shards go 2 -> 4 -> 1, agents with a message always waiting hear each message once, in order."""

    async def main() -> None:
        async with opened(tmp_path) as system:
            agents = [await system.agent(name) for name in NAMES]
            said: dict[str, list[str]] = {name: [] for name in NAMES}
            done = asyncio.Event()
            talks = [asyncio.ensure_future(talk(agent, said[agent.agent_id], done)) for agent in agents]
            for number in (4, 1):
                await resized(system, number)
                assert set(map(system.store.partition_of, NAMES)) == {shard_of(name, number) for name in NAMES}
            done.set()
            await asyncio.gather(*talks)
            assert {name: heard(system.store, name) for name in NAMES} == said
        store = FileStore(tmp_path, lambda: 0)
        assert all(check(store.partition(place), deep=True).ok for place in store.partitions())

    asyncio.run(main())


def test_an_agent_that_is_watched_moves_and_can_be_watched_again(tmp_path: Path) -> None:
    """A subscription does not keep an agent in its shard: it ends with HostLost, and a new one misses nothing."""

    async def main() -> None:
        async with opened(tmp_path) as system:
            agent = await system.agent("sam")
            watch = agent.subscribe()
            following = asyncio.ensure_future(anext(aiter(watch)))
            other = next(number for number in range(2, 99) if shard_of("sam", number) != shard_of("sam", 2))
            await agent.send("Hi")
            await resized(system, other)
            with pytest.raises(HostLost):
                await following
            again = asyncio.ensure_future(anext(aiter(agent.subscribe())))
            await agent.send("Still there?")
            again.cancel()
            with suppress(asyncio.CancelledError):
                await again

    asyncio.run(main())


def test_what_an_interrupted_move_left_is_taken_up_by_the_next_one(tmp_path: Path) -> None:
    """A process that ends after some agents have moved leaves a store that works, and the next one moves the others."""

    async def main() -> None:
        async with opened(tmp_path) as system:
            agents = [await system.agent(name) for name in NAMES]
            system.store.set_shards(5)
            out = misplaced(system.store)
            assert len(out) > 2
            for agent in agents:
                if agent.agent_id in out[:2]:
                    await agent.move("shared")
            assert misplaced(system.store) == out[2:]
        async with open_system(tmp_path, runtime="local", placement="shared") as system:
            for name in NAMES:
                await (await system.agent(name)).send("Hi")
            await resized(system, 5)
            for name in NAMES:
                await (await system.agent(name)).send("Hi again")
                assert heard(system.store, name) == ["Hi", "Hi again"]

    asyncio.run(main())


class Mover:
    """A mover over hosts that answer as a test says."""

    def __init__(self, answers: list[EverlogError | None]) -> None:
        self.store: Any = MemoryStore(shards=1)
        self.store.register_many(["sam"], shared=True)
        self.store.set_shards(next(number for number in range(2, 99) if shard_of("sam", number) != "shard-000"))
        self.answers = answers
        self.patience: list[float] = []
        self.notes: list[str] = []
        self.arrived: list[str] = []
        ports = Ports(sleep=self.sleep, note=self.notes.append, aside=self.aside)
        self.mover = ShardMover(self.store, self.send, ports, self.note_arrived)

    async def note_arrived(self, agents: Sequence[str]) -> None:
        self.arrived.extend(agents)

    async def sleep(self, _: float) -> None:
        await asyncio.sleep(0)

    async def aside(self, work: Any, *arguments: Any) -> Any:
        return work(*arguments)

    async def send(self, commands: Sequence[tuple[str, Command]]) -> Sequence[EverlogError | None]:
        ((name, command),) = commands
        self.patience.append(command.patience_s)  # type: ignore[attr-defined]
        answer = self.answers.pop(0)
        if answer is None:
            log = self.store.open(name, "test")
            self.store.begin_move(log, name, shard_of(name, self.store.shards))
            log.close()
        return [answer]

    def run(self) -> None:
        async def main() -> None:
            self.mover.begin()
            assert self.mover._task is not None
            await self.mover._task

        asyncio.run(main())


def test_an_agent_at_work_gets_time_to_end_its_turn() -> None:
    """An agent that is at work is tried again, and has some time then."""
    world = Mover([Busy("at work", retry_after_s=1), None])
    world.run()
    assert world.patience == [0, shard_mover.PATIENCE_S]
    assert (world.mover.status.moved, world.arrived, world.notes) == (1, ["sam"], [])


def test_an_agent_that_cannot_be_moved_is_given_up_and_named() -> None:
    """A lasting fault ends the attempts, and is told; the next beginning tries again."""
    world = Mover([StoreError("the disk is broken")] * shard_mover.PASSES_MAX)
    world.run()
    assert world.mover.status.faults == ["the disk is broken"]
    assert ["the disk is broken" in note for note in world.notes] == [True]
    world.answers = [None]
    world.run()
    assert not misplaced(world.store)
    assert not world.mover.status.faults


def test_a_host_that_dies_is_asked_again() -> None:
    """A lost host is no lasting fault."""
    world = Mover([HostLost("it died"), HostLost("it died"), None])
    world.run()
    assert not misplaced(world.store)
    assert not world.notes


@pytest.mark.parametrize("seed", range(20))
def test_commands_of_an_agent_that_leaves_wait_until_it_has_left(seed: int) -> None:
    """While an agent is unloaded for a move no command of it runs, and none is held for longer."""

    async def main() -> None:
        chance = random.Random(seed)
        departures = Departures(asyncio.sleep)
        inside, gone, ran = 0, False, 0

        async def command() -> None:
            nonlocal inside, ran
            await asyncio.sleep(chance.random() * 3)
            await departures.hold("sam", Command(id="x"), works=inside > 0)
            assert not gone
            inside += 1
            await asyncio.sleep(chance.random())
            inside -= 1
            ran += 1

        async def unload() -> bool:
            return not inside

        commands = [asyncio.ensure_future(command()) for _ in range(30)]
        moved = 0
        for _ in range(3):
            await asyncio.sleep(chance.random())
            with suppress(Busy):
                async with departures.leaving("sam", unload, 5):
                    gone = True
                    assert not inside
                    await asyncio.sleep(chance.random())
                    gone = False
                    moved += 1
        await asyncio.gather(*commands)
        assert (moved, ran) == (3, 30)

    run_plain(main)


def test_only_one_move_of_an_agent_at_a_time() -> None:
    """A second move of an agent that is leaving is Busy; after Busy its commands run."""

    async def main() -> None:
        departures = Departures(asyncio.sleep)

        async def works() -> bool:
            return False

        with pytest.raises(Busy, match="at work"):
            async with departures.leaving("sam", works, 1):
                pass
        await departures.hold("sam", Command(id="x"), works=False)

        async def idle() -> bool:
            return True

        async with departures.leaving("sam", idle, 0):
            with pytest.raises(Busy, match="moving already"):
                async with departures.leaving("sam", idle, 0):
                    pass

    run_plain(main)
