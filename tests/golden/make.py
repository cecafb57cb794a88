"""Make a golden log: `python -m tests.golden.make NAME [SCENE...]`. An existing golden log is never made again.

A golden log is a whole store as this version writes it, with everything that agents can do, and `expected.json`: the
facts that the code of that day derives from each agent. Later code must derive the same facts; it may derive more. With
scenes it holds only these, and those of EVERY: what is new needs no second copy of all the rest.
"""

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.deriving.derived_commands import change_derived, derive
from everlog.actors.deriving.memory_commands import (
    ChangePlan,
    DeriveMemories,
    MakePlan,
    NameEntity,
    NoteFact,
    WithdrawMemories,
)
from everlog.actors.deriving.plan_commands import change_plan, make_plan
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.memory.document_load import Document
from everlog.actors.memory.source_service import Sources
from everlog.actors.ports.timer_schedules import next_due
from everlog.events import (
    ApprovalRule,
    ArchivalDeleted,
    ArchivalInserted,
    ArchivalUpdated,
    BadInput,
    Draft,
    FunctionRule,
    Heartbeat,
    MessageSent,
    PlanItem,
    SourceAttached,
    SourceDetached,
    Summary,
    SystemAlert,
    TimerCancelled,
    TimerSet,
    UserMessage,
    event_of,
)
from everlog.events.times import moment
from everlog.projections import PROJECTIONS
from everlog.store import FileStore
from tests.golden.filled_events import every_kind
from tests.golden.message_scene import line, write_to_each_other
from tests.support.agent_world import World, completion, counted, say

HERE = Path(__file__).parent
VALUE_CHARS_MAX = 300
"""Characters of a row's value that are kept; a longer value is replaced by its sha256."""


@tool(effect="idempotent")
def post(text: str) -> str:
    """Post a text where it can be seen.

    Args:
        text: what to post
    """
    return f"posted {len(text)} characters"


DAY = 86_400_000_000
"""Microseconds of a day."""
Scene = Callable[[World], Coroutine[Any, Any, None]]
TOOLS: list[Tool] = [post]
"""Capabilities of the agents of a golden log."""


def expectations(store: FileStore) -> dict[str, Any]:
    """Return the facts that must stay true of every agent, and of the documents of every source."""
    system = World(store=store, tools=TOOLS).system
    sources = Sources(store, clock=World().clock, ids=World().ids)
    return {
        "agents": {name: facts(system, name) for name in system.agents()},
        "sources": {name: [_plain(row) for row in sources.documents(name)] for name in sources.names()},
    }


def facts(system: LocalSystem, name: str, tables: Iterable[str] = PROJECTIONS) -> dict[str, Any]:
    """Return the facts that must stay true of an agent: its chain, its kinds, its last request, these tables."""
    view = system.view(name)
    records = list(view.reader.read(name))
    found: dict[str, Any] = {
        "head": view.head.seq,
        "chain": view.head.chain.hex(),
        "kinds": [record.type for record in records],
        "versions": [record.version for record in records],
        "texts": [record.text for record in records],
    }
    try:
        found["request"] = _short(view.request().decode())
    except BadInput:
        found["request"] = None
    for table in tables:
        found[table] = sorted(map(_plain, view.rows(table)), key=lambda row: json.dumps(row, sort_keys=True))
    view.close()
    return found


def _plain(row: dict[str, Any]) -> dict[str, str]:
    """Return a row as text, without the moment as of which it was read."""
    return {name: _short(str(value)) for name, value in row.items() if name != "as_of"}


def _short(value: str) -> str:
    return value if len(value) <= VALUE_CHARS_MAX else f"sha256 {sha256(value.encode()).hexdigest()}"


async def converse(world: World) -> None:
    """Hold a conversation in which every part of an agent takes part."""
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
    """Write a pause in the shape of its version 1, which is upcast, and a record from a newer everlog."""
    await leave(
        world,
        agent,
        [("heartbeats_paused", 1, None, '{"minutes":5}'), ("dreamt", 3, "of the sea", '{"depth":2}')],
    )


async def leave(world: World, agent: Agent, shapes: list[tuple[str, int, str | None, str]]) -> None:
    """Append records of any kind, version, text and payload, as if the agent had written them."""
    now = world.clock.now()
    drafts = [
        Draft(
            event_id=world.ids.new(now),
            type=kind,
            version=version,
            text=text,
            payload=payload,
            recorded_at=now,
            turn=agent.turn,
            step=0,
        )
        for kind, version, text, payload in shapes
    ]
    await agent._journal.commit(agent.agent_id, agent.head, drafts)


async def every_shape(world: World) -> None:
    """Write an agent whose log has each kind of event, with every field filled."""
    async with world.system.agent("kinds", world.settings) as agent:
        await leave(world, agent, every_kind())


async def wander(world: World) -> None:
    """Write a shared agent that stores, changes and deletes memories, has timers and documents, and moves to its own
    log.
    """
    world.store.register("ann", shared=True)
    await world.tell("I am Ann.", agent="ann")
    async with world.system.agent("ann", world.settings) as agent:
        kept = await agent.commit(
            [ArchivalInserted(text=f"Fact {n}.", tags=["fact", str(n)]) for n in range(3)], turn=None, step=0
        )
        timers = [
            TimerSet(timer=name, due_at=world.clock.at + 10**9, every_s=60, text=name) for name in ("tea", "rain")
        ]
        more = [
            ArchivalUpdated(memory_id=kept[0].event_id, text="Fact zero.", tags=["changed"]),
            ArchivalDeleted(memory_id=kept[1].event_id),
            *timers,
            TimerCancelled(timer="rain"),
            SourceAttached(source="handbook"),
            SourceAttached(source="logbook"),
            SourceDetached(source="logbook"),
        ]
        await agent.commit(more, turn=None, step=0)
    world.system.move("ann", shared=False)
    await world.tell("Where was I?", agent="ann")


async def keep_time(world: World) -> None:
    """Write an agent with a timer of a schedule, which fired once and was set again in the same commit."""
    await world.tell("I am Tim.", agent="tim")
    async with world.system.agent("tim", world.settings) as agent:
        timer = TimerSet(
            timer="tea", due_at=world.clock.at, cron="0 16 * * 1-5", zone="Europe/Oslo", text="Time for tea."
        )
        await agent.commit([timer], turn=agent.turn, step=0)
        beat = Heartbeat(text=timer.text, reason="timer", timer=timer.timer)
        again = msgspec.structs.replace(timer, due_at=next_due(timer.cron, timer.zone, world.clock.at))
        await agent.receive(beat, then=[again])
        await agent.run()


async def conclude(world: World) -> None:
    """Write an agent that derived facts and insights by rules and, as a second generation, by a model, that noted and
    withdrew some, and that has a plan with a change; one message is erased, which seals the log.
    """
    said = (
        "Lea lives in Paris.",
        "I sail every weekend, the boat is called Ada.",
        "I took the boat to the lake.",
        "I repaired the boat.",
        "Lea moved to Rome on 1 March.",
    )
    start = world.clock.at - len(said) * DAY
    messages = [
        ImportedMessage(UserMessage(text=text, name="Lou", imported=True), moment(start + number * DAY))
        for number, text in enumerate(said)
    ]
    async with world.system.agent("lou", world.settings) as agent:
        await agent.import_messages(messages)
        first = next(record.seq for record in agent.records(1) if record.text == said[0])
        await conclude_twice(world, agent)
        await correct(world, agent, first)
    world.system.erase("lou", first + 2, first + 2)


async def conclude_twice(world: World, agent: Agent) -> None:
    """Derive by rules; then, as generation 2, by a model whose answers are in part untrue or no JSON."""
    claims = [
        {"subject": subject, "predicate": predicate, "object": what, "messages": [number], "sentence": sentence}
        for subject, predicate, what, number, sentence in (
            ("Ada", "is_a", "boat", 2, "Ada is the boat."),
            ("John Doe", "lives_in", "Paris", 1, "John Doe lives in Paris."),
        )
    ]
    for kind in ("facts", "reflection"):
        await derive(agent, DeriveMemories(id=world.ids.new(world.clock.at), derivation=kind))
    world.model.lines = []
    world.model.summaries = [completion(json.dumps({"facts": claims, "ended": []}))]
    world.model.summaries += [completion("I cannot say."), completion("Nor now.")]
    for kind in ("facts", "reflection"):
        command = DeriveMemories(id=world.ids.new(world.clock.at), derivation=kind, generation=2, model="wise")
        await derive(agent, command)


async def correct(world: World, agent: Agent, first: int) -> None:
    """Note and withdraw a fact, merge two names, and make and change a plan, as a person. `first`: seq of a message."""

    def new_id() -> str:
        return world.ids.new(world.clock.at)

    said = [first + 1]
    noted = NoteFact(id=new_id(), subject="Ada", predicate="is_a", object="dinghy", sources=said)
    fact = await change_derived(agent, noted)
    await change_derived(agent, NameEntity(id=new_id(), alias="the Ada", entity="Ada", sources=said))
    await change_derived(agent, WithdrawMemories(id=new_id(), seqs=[fact], reason="It is a yawl."))
    item = PlanItem(text="Sell the boat", start=world.clock.at + 30 * DAY, minutes=90, place="harbour")
    plan = await make_plan(agent, MakePlan(id=new_id(), text="The sale", items=[item], sources=said))
    await change_plan(agent, ChangePlan(id=new_id(), plan=plan, item=0, change="cancelled", reason="Lea keeps it."))


def load(world: World) -> None:
    """Write a source whose documents were loaded, changed and removed."""
    sources = Sources(world.store, clock=world.clock, ids=world.ids)
    for texts in ({"tides": "Twice a day.", "wind": "From the west."}, {"tides": "Every twelve hours."}):
        documents = [Document(name=name, text=text, origin="/handbook") for name, text in texts.items()]
        sources.load("handbook", documents, origins=["/handbook"], prune=True)


async def remember(world: World) -> None:
    """Write an agent with an imported conversation. One message is erased, which seals the agent's log."""
    said = [
        ImportedMessage(event=UserMessage(text=f"Secret {n}", imported=True), said_at=moment(n * 10**6))
        for n in range(1, 4)
    ]
    said.append(ImportedMessage(event=MessageSent(text="I see.", imported=True), said_at=moment(4 * 10**6)))
    async with world.system.agent("mel", world.settings) as agent:
        await agent.import_messages(said)
        await agent.receive(UserMessage(text="Do you remember?"))
        await agent.run()
    secret = next(record for record in world.log("mel") if record.text == "Secret 2")
    world.system.erase("mel", secret.seq, secret.seq)


async def reach_outside(world: World) -> None:
    """Write an agent that acts outside its log."""
    world.model.lines = [
        line("post", text="hello", request_heartbeat=True),
        line("send_message", message="Posted."),
    ]
    await world.tell("Post it.", agent="pat")


async def go_by_rules(world: World) -> None:
    """Write an agent with rules about functions, one of whose calls waits for an approval."""
    settings = msgspec.structs.replace(
        world.settings,
        approvals=[ApprovalRule("post")],
        rules=[FunctionRule("init", "conversation_search"), FunctionRule("max_count", "post", limit=1)],
    )
    world.model.lines = [
        line("send_message", message="At once."),
        line("conversation_search", query="post", request_heartbeat=True),
        line("post", text="hello"),
    ]
    async with world.system.agent("rio", settings) as agent:
        await agent.receive(UserMessage(text="Post it, by the rules."))
        await agent.run()


async def live_twice(world: World) -> None:
    """Write an agent that was deleted, and another agent that was created under the same name."""
    await world.tell("First life.", agent="dan")
    await world.system.delete("dan")
    await world.tell("Second life.", agent="dan")


async def part_ways(world: World) -> None:
    """Write a fork of another agent."""
    world.system.fork("pat", "pia", at=len(world.log("pat")) - 2)
    await world.tell("Who are you?", agent="pia")


SCENES: Mapping[str, Scene] = {
    scene.__name__: scene
    for scene in (
        converse, every_shape, wander, remember, reach_outside, go_by_rules, part_ways, live_twice, keep_time, conclude,
        write_to_each_other,
    )
}  # fmt: skip
EVERY = ("converse", "every_shape")
"""Scenes of every golden log."""


def grow(world: World, scenes: Collection[str]) -> None:
    """Write the agents of the scenes, and the documents."""
    load(world)
    for name, scene in SCENES.items():
        if name in scenes or name in EVERY:
            asyncio.run(scene(world))
    assert any(isinstance(event_of(record), Summary) for record in world.log())


def main(arguments: list[str]) -> int:
    """Write `tests/golden/NAME/` with all scenes, or with those that are named."""
    name, *scenes = arguments or [""]
    if not name or not set(scenes) <= SCENES.keys():
        print(f"usage: python -m tests.golden.make NAME [SCENE...], of {', '.join(SCENES)}", file=sys.stderr)
        return 2
    folder = HERE / name
    if folder.exists():
        print(f"{folder} is there, and a golden log is never made again: give another name.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".making-") as making:
        made = Path(making) / "made"
        (made / "store").mkdir(parents=True)
        first = World()
        store = FileStore.create(made / "store", first.clock.now, first.ids.new(first.clock.now()), shards=1)
        grow(World(store=store, tools=TOOLS), scenes or SCENES)
        (made / "expected.json").write_text(json.dumps(expectations(store), indent=0) + "\n")
        shutil.move(made, folder)
    print(f"{folder}: {sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
