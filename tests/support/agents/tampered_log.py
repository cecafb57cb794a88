"""A log whose records were changed by other means than everlog, and random agents, as input for verify."""

import asyncio
import json
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.local_system import AgentView
from everlog.actors.replay.rebuild_check import ReplayReport, verify
from everlog.events import Heartbeat, Record, SystemAlert, UserLogin, UserMessage, event_of
from everlog.store import LogReader, State, States, batch_of
from tests.golden.make import converse
from tests.support.agent_world import World, completion, counted, say
from tests.support.seeds import split

Change = Callable[[Record], Record]


class Tampered:
    """A reader of a log with changed records; head and chain are those of the original log."""

    def __init__(self, reader: LogReader, change: Change) -> None:
        self._reader = reader
        self._change = change
        self.partition = reader.partition
        self.agents, self.head = reader.agents, reader.head
        self.chain, self.seq_at = reader.chain, reader.seq_at

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        return map(self._change, self._reader.read(agent_id, from_seq, to_seq))

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        assert agent_id is not None
        return pa.Table.from_batches([batch_of(list(self.read(agent_id, from_seq, to_seq)))])

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        return None

    def states(self, maker: str, agents: Iterable[str] | None = None) -> Iterator[States]:
        raise NotImplementedError


def replaced(seq: int, old: str, new: str) -> Change:
    """Return a change that replaces the first `old` in the text of record `seq`, or else in its payload. `old` must be
    there.
    """

    def change(record: Record) -> Record:
        if record.seq != seq:
            return record
        field = "text" if old in (record.text or "") else "payload"
        before = getattr(record, field)
        assert old in before, f"{old!r} is not in record {seq}"
        return msgspec.structs.replace(record, **{field: before.replace(old, new, 1)})

    return change


def verified(world: World, *changes: Change, **options: Any) -> ReplayReport:
    """Return verify's report of sam after these changes."""

    def change(record: Record) -> Record:
        for one in changes:
            record = one(record)
        return record

    view = AgentView("sam", Tampered(world.store.reader("sam"), change))
    try:
        return verify(view, world.system.tools, **options)
    finally:
        view.close()


def conversed() -> World:
    """Return a world whose agent answered, edited memory, stored, searched, failed, paused and summarized."""
    world = World()
    asyncio.run(converse(world))
    return world


def calls(world: World) -> list[Record]:
    """Return sam's records that name a request."""
    return [record for record in world.log() if getattr(event_of(record), "context_sha256", "")]


def first(world: World, kind: str, holding: str = "") -> Record:
    """Return the first record of that kind whose text or payload contains `holding`."""
    return next(r for r in world.log() if r.type == kind and holding in f"{r.text}{r.payload}")


def lived(seed: int) -> World:
    """Return a world with a random agent: its inputs, its model's replies and manual summaries depend on the seed."""
    chance = random.Random(seed)
    world = World()
    world.settings = msgspec.structs.replace(
        world.settings, window=chance.choice([4096, 8192]), verify_first=chance.random() < 0.3
    )
    world.model.after = lambda request: counted(request, line_of(chance))

    async def live() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for _ in range(chance.randint(6, 14)):
                await agent.receive(input_of(chance))
                await agent.run()
                await by_hand(agent, chance)

    asyncio.run(live())
    return world


def line_of(chance: random.Random) -> str:
    words = " ".join(chance.choices(["sea", "boat", "wind", "Ada", "harbour", "\u00e9t\u00e9", "\U0001f30a"], k=12))
    beat = {"request_heartbeat": True} if chance.random() < 0.3 else {}
    deeds = [
        ("core_memory_append", {"name": chance.choice(["human", "persona", "nobody"]), "content": words, **beat}),
        ("core_memory_replace", {"name": "human", "old_content": "sea", "new_content": "lake", **beat}),
        ("archival_memory_insert", {"content": words, **beat}),
        ("conversation_search", {"query": "boat", **beat}),
        ("pause_heartbeats", {"minutes": chance.randint(1, 90)}),
        ("no_such_function", "not even JSON"),
    ]
    if chance.random() < 0.6:
        return say(words * chance.randint(1, 20))
    return completion(words, chance.sample(deeds, chance.randint(1, 3)))


def input_of(chance: random.Random) -> UserMessage | SystemAlert | UserLogin | Heartbeat:
    text = "What do you know of the sea? " * chance.choice([1, 3, 30, 400])
    return chance.choice(
        [UserMessage(text=text)] * 5
        + [SystemAlert(text="The user liked it", source="user_event"), UserLogin(), Heartbeat(reason="manual")]
    )


async def by_hand(agent: Agent, chance: random.Random) -> None:
    if chance.random() < 0.15:
        await agent.summarize()


def payload_of(record: Record) -> dict[str, Any]:
    """Return the payload of a record."""
    found: dict[str, Any] = json.loads(record.payload)
    return found


def some(few: int, many: int, label: str) -> list[Any]:
    """Return seeds: a few that the commit selects for every run, the others for the deep suite."""
    return split(range(many), few, label=label, part="agents")
