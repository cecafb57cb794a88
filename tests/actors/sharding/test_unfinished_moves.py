"""A move into a shard that a dead process had begun is finished, and the shard stays open for all of its agents."""

import asyncio
from pathlib import Path

from everlog.actors.api import open_system
from everlog.actors.ports.real_clock import RealClock
from everlog.store import FileStore
from everlog.store.base.move_records import departure

SHARD = "shard-000"


async def agents_of(root: Path) -> FileStore:
    """Make a store with one shard: bob is in it, and eve has a log of her own."""
    for name, placement in (("bob", "shared"), ("eve", "dedicated")):
        async with open_system(root, runtime="local", placement=placement, shards=1, timers=False) as system:
            await system.agent(name)
    return FileStore(root, RealClock().now)


def test_an_agent_whose_move_was_not_registered_is_found_in_the_shard(tmp_path: Path) -> None:
    """The agent's log says that it left, and the register does not: the first command finishes the move, is answered
    from the shard, and leaves the shard to the host of the others.
    """

    async def main() -> None:
        store = await agents_of(tmp_path)
        log = store.open("eve", "a process that dies")
        head = log.head("eve")
        gone = departure("eve", head, SHARD, 2, RealClock().now())
        log.append("eve", head.seq, gone.drafts)
        log.close()
        async with open_system(tmp_path, runtime="local", timers=False) as system:
            for name in ("eve", "bob", "eve"):
                agent = await system.agent(name)
                assert await agent.send("Good morning!")
        assert {store.partition_of(name) for name in ("eve", "bob")} == {SHARD}

    asyncio.run(main())
