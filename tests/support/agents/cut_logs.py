"""Cut the log of a world's agent after a commit, as a crash leaves it, and let the next owner finish the turns."""

import asyncio
from collections.abc import Iterable
from itertools import groupby

from everlog.events import Draft, Record
from everlog.store import MemoryStore
from tests.support.agent_world import World, users

FIELDS = Draft.__struct_fields__


def cut(world: World, commits: int) -> World:
    """Return a new process over a store that holds only the first `commits` commits."""
    store = MemoryStore()
    store.register("sam")
    log = store.open("sam", "copy")
    for number, commit in commits_of(world.log()):
        if number <= commits:
            drafts = [Draft(**{field: getattr(record, field) for field in FIELDS}) for record in commit]
            log.append("sam", log.head("sam").seq, drafts)
    log.close()
    world = world.restarted()
    other = World(store=store, tools=users(world))
    other.clock.at, other.ids.count = world.clock.at, world.ids.count
    other.settings = world.settings
    return other


def commits_of(records: Iterable[Record]) -> list[tuple[int, list[Record]]]:
    return [(number, list(commit)) for number, commit in groupby(records, key=lambda record: record.commit)]


def finish(world: World) -> list[Record]:
    """Activate the agent, finish its open turns and return the new records."""
    heard: list[Record] = []

    async def run() -> None:
        async with world.system.agent("sam", world.settings, on_commit=heard.extend) as agent:
            await agent.run()
            assert agent.waiting == 0

    asyncio.run(run())
    return heard
