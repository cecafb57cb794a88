"""Make a golden log: `python -m tests.golden.make NAME`. A golden log that was released is never made again.

It is a whole store as this version writes it, with everything that an agent does in it, and `expected.json`: what
today's code says of it. Tomorrow's code must say the same.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.agent import Agent
from events import Draft, Summary, SystemAlert, event_of
from store import FileStore
from tests.world import World, completion, counted, say

HERE = Path(__file__).parent
TABLES = (
    "agents",
    "core_memory",
    "memory_pressure",
    "recall_memory",
    "archival_memory",
    "turns",
    "model_calls",
    "timers",
)


def facts(store: FileStore) -> dict[str, Any]:
    """What is to stay true of the log: its chain, its last request, its tables."""
    view = World(store=store).system.look("sam")
    found: dict[str, Any] = {
        "head": view.head.seq,
        "chain": view.head.chain.hex(),
        "kinds": [record.type for record in view.reader.read("sam")],
        "request": view.request().decode(),
    }
    for name in TABLES:
        rows = [{k: str(v) for k, v in row.items() if k != "as_of"} for row in view.rows(name)]
        found[name] = sorted(rows, key=repr)
    view.close()
    return found


def line(function: str, **arguments: Any) -> Callable[[bytes], str]:
    """A line of the model: one call, its tokens counted."""
    body = completion("Hm.", [(function, arguments)])
    return lambda request: counted(request, body)


async def converse(world: World) -> None:
    """A conversation in which every part of an agent has its say."""
    world.model.lines = [
        line("send_message", message="Hello Chad."),
        line("core_memory_append", name="human", content="Sails.", request_heartbeat=True),
        line("send_message", message="Noted."),
        line("core_memory_replace", name="human", old_content="Mars", new_content="x"),
        line("archival_memory_insert", content="Chad has a boat, the Ada."),
        line("conversation_search", query="boat", request_heartbeat=True),
        line("send_message", message="The Ada."),
        line("pause_heartbeats", minutes=30),
    ]
    world.model.after = lambda request: counted(request, say("Thank you."))
    await world.tell("Hi, I am Chad.", "I sail.", "Forget Mars.", "What is my boat called?", "Rest now.")
    async with world.system.agent("sam", world.settings) as agent:
        await agent.receive(SystemAlert(text="The user liked your message", source="user_event"))
        await agent.run()
        assert await agent.summarize()
        await leave_other_shapes(world, agent)


async def leave_other_shapes(world: World, agent: Agent) -> None:
    """A record as an older everlog wrote it, and one from a newer everlog."""
    now = world.clock.now()
    place = {"recorded_at": now, "turn": agent.turn, "step": 0}
    old = Draft(
        event_id=world.ids.new(now), type="heartbeats_paused", version=1, text=None, payload='{"minutes":5}', **place
    )
    new = Draft(
        event_id=world.ids.new(now), type="dreamt", version=3, text="of the sea", payload='{"depth":2}', **place
    )
    await agent._journal.commit("sam", agent.head, [old, new])


def main(name: str) -> None:
    """Write `tests/golden/NAME/`."""
    folder = HERE / name
    folder.mkdir()
    first = World()
    (folder / "store").mkdir()
    store = FileStore.create(folder / "store", first.clock.now, first.ids.new(first.clock.now()))
    world = World(store=store)
    asyncio.run(converse(world))
    assert any(isinstance(event_of(record), Summary) for record in world.log())
    (folder / "expected.json").write_text(json.dumps(facts(store), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
