"""Pending work is read from the logs, in any partition and either file format."""

import asyncio
from pathlib import Path

from everlog.actors.hosting.pending_work import PendingWork, pending_work
from everlog.events import TimerSet, UserMessage
from everlog.projections import DERIVER
from everlog.store import FileStore
from tests.store.conftest import now
from tests.support.agent_world import World, say

NAMES = ("ann", "bob", "sam")


async def shard_of_three(folder: Path) -> FileStore:
    """Return a store in which ann and bob were created in the shard, and sam was moved to it. All have a timer, and bob
    has a waiting input.
    """
    store = FileStore.create(folder, now, "test", shards=1)
    world = World(after=say("Yes."), store=store)
    for name in NAMES:
        store.register(name, shared=name != "sam")
        async with world.system.agent(name, world.settings) as agent:
            timer = TimerSet(text="Look.", timer=f"timer of {name}", due_at=10**15)
            await agent.commit([timer], turn=agent.turn, step=0)
            if name == "bob":
                await agent.receive(UserMessage(text="Hello"))
    world.system.move("sam", shared=True)
    await world.tell("Are you there?", agent="sam")
    return store


def told(found: list[PendingWork]) -> dict[str, tuple[bool, list[str]]]:
    return {one.agent_id: (one.unfinished, [timer.timer for timer in one.timers]) for one in found}


def test_pending_work_moves_with_an_agent(tmp_path: Path) -> None:
    """A timer that an agent set before it moved to the shard is found with the others, before and after sealing."""
    store = asyncio.run(shard_of_three(tmp_path / "store"))
    notes: list[str] = []
    before = list(pending_work(store, notes.append))
    assert told(before) == {name: (name == "bob", [f"timer of {name}"]) for name in NAMES}
    log = store.open_partition("shard-000", "test")
    log.seal(DERIVER)
    log.close()
    assert told(list(pending_work(store, notes.append))) == told(before)
    assert notes == []
