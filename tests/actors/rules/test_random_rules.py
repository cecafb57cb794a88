"""Random rules about functions, and random models: no rule is ever broken, and every turn ends."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from everlog.actors.functions.tools import Tool, tool
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import BadInput, FunctionRule, Record
from tests.support.agent_world import World, completion, counted
from tests.support.agents.cut_logs import commits_of, cut, finish
from tests.support.agents.plain_rules import faults
from tests.support.seeds import chance, seeds

NAMES = ("look", "ask", "act", "file", "send_message")
ANSWERS = ("yes", "no", "perhaps")
KINDS = ("init", "children", "parent", "conditional", "max_count", "continue", "terminal", "required")
FOUND = "found " * 900
"""Result that is long enough to make a summary within a turn necessary."""


def functions() -> Sequence[Tool]:
    def look(words: str) -> str:
        """Look.

        Args:
            words: What for.
        """
        return FOUND

    def ask(words: str) -> str:
        """Ask.

        Args:
            words: The answer.
        """
        return words

    def act(words: str) -> str:
        """Act.

        Args:
            words: What.
        """
        return "done"

    def file(words: str) -> str:
        """File.

        Args:
            words: What.
        """
        return "filed"

    return [
        tool(look, effect="read_only"),
        tool(ask, effect="idempotent"),
        tool(act, effect="at_most_once"),
        tool(file),
    ]


def drawn_rule(draw: random.Random) -> FunctionRule:
    """Draw a rule, which may be wrong."""
    kind, name = draw.choice(KINDS), draw.choice(NAMES)
    some = draw.sample(NAMES, draw.randint(1, 3))
    match kind:
        case "children" | "parent":
            return FunctionRule(kind, name, children=some)
        case "max_count":
            return FunctionRule(kind, name, limit=draw.randint(1, 3))
        case "conditional":
            answers = draw.sample(ANSWERS, draw.randint(1, 2))
            outputs = {answer: draw.choice(NAMES) for answer in answers}
            other = draw.choice(["", "", draw.choice(NAMES)])
            return FunctionRule(kind, name, outputs=outputs, default=other, strict=not other and draw.random() < 0.3)
    return FunctionRule(kind, name)


def drawn_reply(draw: random.Random) -> Callable[[bytes], str]:
    """Return a model that calls functions at random, some of which there are not, and asks for heartbeats at random."""

    def reply(request: bytes) -> str:
        calls = []
        for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
            name = draw.choice([*NAMES, "fly"] if draw.random() < 0.1 else NAMES)
            text = draw.choice(ANSWERS)
            arguments: dict[str, Any] = {"message": text} if name == "send_message" else {"words": text}
            if draw.random() < 0.05:
                arguments = {"wrong": 1}
            if name != "send_message" and draw.random() < 0.4:
                arguments["request_heartbeat"] = True
            calls.append((name, arguments))
        return counted(request, completion("Hm.", calls))

    return reply


def lived(draw: random.Random, tally: Counter[str]) -> World | None:
    """Return a world whose agent has random rules, and got messages; None if the rules are refused."""
    world = World(after=drawn_reply(draw), tools=functions())
    rules = [drawn_rule(draw) for _ in range(draw.randint(1, 5))]
    world.settings = msgspec.structs.replace(world.settings, rules=rules, steps_max=8, window=8192)
    try:
        asyncio.run(world.tell("One", "Two", "Three"))
    except BadInput:
        tally["refused"] += 1
        return None
    tally["lived"] += 1
    return world


def check(world: World, tally: Counter[str]) -> None:
    """Hold the log against the plain model of the rules, every turn against its end, and verify it."""
    log = world.log()
    assert faults(log) == []
    with world.system.view("sam") as view:
        assert {turn["status"] for turn in view.rows("turns")} <= {"done", "abandoned"}
        assert rebuild(view).faults == []
        assert verify(view, world.system.tools).faults == []
    tally.update(record.type for record in log)
    tally.update(_ends(log))


def _ends(log: Sequence[Record]) -> list[str]:
    return [f"stopped: {record.payload}" for record in log if record.type == "turn_abandoned"]


@pytest.mark.parametrize(
    "rounds", [8, pytest.param(2000, marks=[pytest.mark.long, pytest.mark.agents])]
)  # fmt: skip
def test_no_rule_is_ever_broken_and_every_turn_ends(rounds: int) -> None:
    """With any rules that are accepted, and any model: each call that is made was allowed, each that is refused was
    not, a required function was called, and a turn ends by itself or at its limit of steps.
    """
    tally: Counter[str] = Counter()
    for number in range(rounds):
        world = lived(chance(f"rules {number}"), tally)
        if world is not None:
            check(world, tally)
    assert tally["lived"] > rounds // 4
    assert tally["refused"] > rounds // 20
    assert min(tally[kind] for kind in ("rules_applied", "function_started", "summary", "turn_abandoned")) > 0
    assert any('"rules"' in end for end in tally if end.startswith("stopped"))


@pytest.mark.parametrize("seed", seeds(2, label="cut rules"))
def test_a_crash_after_any_commit_breaks_no_rule(seed: int) -> None:
    """The next process knows from the log which calls were made, and finishes the turn by the same rules."""
    draw = random.Random(seed)
    world = None
    while world is None:
        world = lived(draw, Counter())
    for number, commit in commits_of(world.log()):
        if commit[0].turn:
            cut_off = cut(world, number)
            cut_off.model.after = drawn_reply(random.Random(seed))
            finish(cut_off)
            check(cut_off, Counter())
