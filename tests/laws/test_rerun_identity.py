"""The law of reruns: with recorded replies and without changes, a fork writes the same records as its parent."""

import asyncio
from collections.abc import Sequence
from contextlib import closing, suppress
from random import Random
from typing import Any, cast

import msgspec
import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.replay.rebuild_check import verify
from everlog.actors.rerun.recorded_past import past_of
from everlog.actors.rerun.rerun import RerunEnvironment, RerunOptions, RerunOutcome, rerun
from everlog.actors.rerun.rerun_effects import shape_of
from everlog.events import (
    ArchivalInserted,
    BadInput,
    ContextOverflow,
    EverlogError,
    Heartbeat,
    MessageSent,
    ModelError,
    Record,
    TimerSet,
    UserLogin,
    UserMessage,
)
from everlog.events.times import moment
from tests.support.agent_world import World, completion, counted
from tests.support.seeds import split

SEEDS = range(8)
ACTS = 10
"""Number of external inputs for each agent."""


class Outside:
    """The outside world: it counts calls, and never gives the same answer twice."""

    def __init__(self) -> None:
        self.calls = 0

    def tools(self) -> list[Tool]:
        """Return functions of every class of effect."""

        def act(name: str, effect: Any) -> Tool:
            def function(to: str, times: int = 1) -> str:
                """Do something outside.

                Args:
                    to: Whom.
                    times: How often.
                """
                self.calls += 1
                if self.calls % 5 == 0:
                    raise OSError(f"out of order at call {self.calls}")
                return f"{name} {to} {times}: number {self.calls}"

            return cast("Tool", tool(function, effect=effect, name=name))

        return [act("pay", "at_most_once"), act("book", "idempotent"), act("look", "read_only")]


def line(chance: Random) -> Any:
    """Return a reply of the model: a few calls, with counted tokens; sometimes a failure."""
    if chance.random() < 0.04:
        return chance.choice([ModelError("nobody is there", kind="unreachable"), ContextOverflow("too long")])
    if chance.random() < 0.04:
        return "no completion"
    calls: list[tuple[str, dict[str, Any] | str]] = [one(chance) for _ in range(chance.randint(1, 3))]
    body = completion(f"Thought {chance.randint(0, 99)}.", calls)
    return lambda request: counted(request, body)


def one(chance: Random) -> tuple[str, dict[str, Any] | str]:
    """Return a call of some function."""
    word = chance.choice(["sails", "Bergen", "a boat", "tea"])
    heart = {"request_heartbeat": chance.random() < 0.3}
    found: list[tuple[str, dict[str, Any] | str]] = [
        ("send_message", {"message": f"I hear {word}." * chance.randint(1, 40)}),
        ("core_memory_append", {"name": "human", "content": word, **heart}),
        ("core_memory_replace", {"name": "human", "old_content": word, "new_content": "tea", **heart}),
        ("archival_memory_insert", {"content": f"{word} {chance.randint(0, 5)}", **heart}),
        ("archival_memory_search", {"query": word, **heart}),
        ("conversation_search", {"query": word, **heart}),
        ("pay", {"to": word, **heart}),
        ("book", {"to": word, "times": 2, **heart}),
        ("look", {"to": word, **heart}),
        ("look", {"to": word, "times": "many"}),
        ("nothing", "{]"),
    ]
    return chance.choice(found)


async def live(agent: Agent, world: World, chance: Random) -> None:
    """Send one input to the agent, and run it until it waits again."""
    world.clock.skip(chance.randint(1, 100_000))
    match chance.randint(0, 13):
        case 0:
            await agent.receive(Heartbeat(reason="timer", timer="tea", text="Tea?"))
        case 1:
            await agent.receive(UserLogin(last_login=world.clock.now()))
        case 2:
            for word in ("one", "two"):  # the second message waits
                await agent.receive(UserMessage(text=word, name="Ann"))
        case 3:
            with suppress(BadInput):
                await agent.hide(chance.randint(1, 2))
        case 4:
            with suppress(BadInput):
                await agent.retry()
        case 5:
            with suppress(BadInput):
                await agent.rethink("Another thought.")
        case 6:
            with suppress(ModelError):
                await agent.summarize()
        case 7:
            await agent.expand()
        case 8:
            await agent.commit([TimerSet(timer="tea", due_at=1, every_s=60)], turn=agent.turn, step=0)
        case 9:
            kept = [ArchivalInserted(text=f"by hand {n} {world.clock.now()}") for n in range(2)]
            await agent.commit(kept, turn=agent.turn, step=0)
        case 10:
            await agent.configure(Settings(window=chance.choice([6000, 8192])))
        case 11:
            at = world.clock.now() - 10**12
            await agent.import_messages(
                [
                    ImportedMessage(UserMessage(text="long ago", imported=True), moment(at)),
                    ImportedMessage(MessageSent(text="Yes.", imported=True), moment(at)),
                ]
            )
        case _:
            await agent.receive(UserMessage(text="I sail to Bergen. " * chance.choice([1, 5, 200, 1500])))
    with suppress(ModelError):
        await agent.run()


def lived(seed: int) -> tuple[World, Outside]:
    """Return a world with an agent whose records are drawn from the seed."""
    chance, outside = Random(seed), Outside()
    world = World(tools=outside.tools())
    world.settings = Settings(model="scripted", window=6000, steps_max=4)

    async def life() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.receive(UserMessage(text="Hi"))
            await agent.run()
            for _ in range(ACTS):
                world.model.lines = [line(chance) for _ in range(40)]
                await live(agent, world, chance)

    asyncio.run(life())
    return world, outside


def again(world: World, what: RerunOptions, tools: list[Tool] | None = None) -> RerunOutcome:
    """Run the rerun; a call of a model fails the test."""

    def nobody(name: str) -> Any:
        raise AssertionError(f"the model {name} was asked")

    stage = RerunEnvironment(store=world.store, ports=world.ports, models=nobody, tools=tools or ())
    return asyncio.run(rerun(what, stage))


def own(world: World, name: str) -> list[Record]:
    """Return the fork's records after its first one."""
    records = [record for record in world.log(name) if record.agent_id == name]
    assert records[0].type == "agent_forked"
    return records[1:]


def said(record: Record, seqs: dict[int, int], *, bare: bool) -> Any:
    """Return a record's content with the original seqs; `bare` leaves out the request's own digest and length."""
    *rest, payload = shape_of(record, lambda seq: seqs.get(seq, seq))
    left_out = ("context_sha256", "context_bytes") if bare else ()
    return *rest, {key: value for key, value in payload.items() if key not in left_out}


def requests(now: list[Record], then: Sequence[Record]) -> list[tuple[str, str]]:
    """Return the sha256 of each request in the fork and in the parent."""
    pairs = [[msgspec.json.decode(record.payload).get("context_sha256", "") for record in side] for side in (now, then)]
    return list(zip(*pairs, strict=True))


@pytest.mark.parametrize("seed", split(SEEDS, 1, label="reruns", part="laws"))
def test_a_recorded_rerun_writes_what_was_written(seed: int) -> None:
    """From any seq on, every request has the recorded sha256, and every record the recorded content, time and id. No
    outside function is called, whether the functions are present or not.
    """
    world, outside = lived(seed)
    chance, log, calls = Random(seed), world.log(), outside.calls
    for number in range(2):
        what = RerunOptions(
            agent_id="sam", from_seq=chance.randint(1, len(log) // 2), fork=f"fork-{number}", recorded=True
        )
        tools = outside.tools() if number % 2 else None
        try:
            done = again(world, what, tools)
        except EverlogError as error:
            raise AssertionError(f"seed {seed}, from seq {what.from_seq}") from error
        assert done.diverged is None, (seed, what, str(done.diverged), done.diverged.difference)
        then = past_of(log, done.comparison.cut).records
        now = own(world, what.fork)
        seqs = {new.seq: old.seq for new, old in zip(now, then, strict=True)}
        assert done.renumbered == len({old for new, old in requests(now, then) if new != old})
        for new, old in zip(now, then, strict=True):
            assert said(new, seqs, bare=done.renumbered > 0) == said(old, {}, bare=done.renumbered > 0)
            assert (new.event_id, new.recorded_at) == (old.event_id, old.recorded_at)
        assert [pair.differs for pair in done.comparison.turns] == [[]] * len(done.comparison.turns)
        assert done.comparison.diverged is None
        assert done.comparison.answered["ran"] == done.comparison.answered["refused"] == 0
    assert outside.calls == calls
    assert world.log() == log


def test_two_recorded_reruns_are_equal_and_verify() -> None:
    """The two forks differ only in keys of calls, and in inputs caused by the fork itself; the fork verifies like any
    agent.
    """
    world, _ = lived(3)
    for name in ("one", "two"):
        again(world, RerunOptions(agent_id="sam", from_seq=8, fork=name, recorded=True))
    one, two = own(world, "one"), own(world, "two")
    bare: dict[str, Any] = {"agent_id": "", "commit": 0}
    firsts = {name: next(r.event_id for r in world.log(name) if r.agent_id == name) for name in ("one", "two")}
    blank = [
        [
            msgspec.structs.replace(record, **bare, cause="fork" if record.cause == firsts[name] else record.cause)
            for record in side
            if record.type != "function_started"
        ]
        for name, side in (("one", one), ("two", two))
    ]
    assert any(record.cause == "fork" for record in blank[0])
    assert blank[0] == blank[1]
    with closing(world.system.view("one")) as view:
        assert verify(view, world.system.tools).faults == []


@pytest.mark.long
@pytest.mark.laws
def test_the_lives_hold_what_the_law_is_about() -> None:
    """The drawn agents have summaries, trims, memory edits, archival memories, heartbeats, commands of a person and
    failures.
    """
    kinds = {kind for seed in SEEDS for kind in lived(seed)[0].kinds()}
    assert kinds >= {
        "summary", "summary_expanded", "memory_edited", "archival_inserted", "heartbeat", "timer_set", "turns_hidden",
        "reply_rethought", "agent_configured", "model_failed", "reply_rejected", "function_started", "context_trimmed",
    }  # fmt: skip
