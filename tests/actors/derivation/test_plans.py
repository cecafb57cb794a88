"""Plans: checked items, timers in the same commit, changes that reach all parts, and divisions before the start."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.derivation import plan_rules
from everlog.actors.derivation.plan_model import reader
from everlog.actors.deriving.memory_commands import ChangePlan, MakePlan
from everlog.actors.deriving.plan_commands import PlanDivision
from everlog.actors.hosting.edit_commands import edit
from everlog.events import BadInput, BadReply, DerivationReplied, PlanItem, PlanMade, event_of
from tests.support.agent_world import SECOND, START, World, written

HOUR = 3600 * SECOND
MORNING = PlanItem("Paint the fence", START + 10 * HOUR, 90, "garden")
NOON = PlanItem("Cook lunch", START + 12 * HOUR, 60)


def plan(*items: PlanItem, **more: Any) -> PlanMade:
    return plan_rules.made("Saturday", items, now=START, **more)


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([], "1 to 50 items, not 0"),
        ([PlanItem("x", START + HOUR * number, 1) for number in range(51)], "1 to 50 items, not 51"),
        ([PlanItem("Too late", START - 1, 30)], "in the past"),
        ([PlanItem("No time", START, 0)], "1 to 1440 minutes"),
        ([PlanItem("Back in time", START, -5)], "1 to 1440 minutes"),
        ([PlanItem("For ever", START, 1441)], "1 to 1440 minutes"),
        ([PlanItem("  ", START, 5)], "characters"),
        ([PlanItem("x" * 201, START, 5)], "characters"),
        ([PlanItem("Paint", START, 90), PlanItem("Cook", START + HOUR, 30)], "overlap"),
        ([PlanItem("In the year 10000", 2**62, 5)], "after the year"),
    ],
)
def test_an_unusable_plan_is_refused(items: list[PlanItem], reason: str) -> None:
    """A plan without items, with too many, in the past, without a duration, or with overlapping items is refused."""
    with pytest.raises(BadInput, match=reason):
        plan(*items)


def test_items_are_put_in_order() -> None:
    """Items that are given in any order are kept by their starts; one may begin as another one ends."""
    late = PlanItem("Rest", START + 13 * HOUR, 30)
    assert [item.text for item in plan(late, NOON, MORNING).items] == ["Paint the fence", "Cook lunch", "Rest"]


def with_agent(main: Callable[[World, Agent], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        world = World()
        await world.tell("Please plan my Saturday.")
        async with world.system.agent("sam", world.settings) as agent:
            await main(world, agent)

    asyncio.run(run())


def command(world: World, kind: Any, **fields: Any) -> Any:
    return kind(id=world.ids.new(world.clock.now()), **fields)


async def make(world: World, agent: Agent, *items: PlanItem, **more: Any) -> int:
    return int(await edit(agent, command(world, MakePlan, text="Saturday", items=items or (MORNING, NOON), **more)))


async def due(agent: Agent) -> dict[str, int]:
    return {row["timer"]: row["due_us"] for row in await agent.rows("timers")}


async def states(agent: Agent) -> dict[tuple[int, int], str]:
    return {(row["plan"], row["item"]): row["status"] for row in await agent.rows("plan_items")}


def test_a_plan_and_its_timers_are_one_commit() -> None:
    """Each item is a timer that is named after the plan's seq; the plan rests on the newest message of the user."""

    async def main(world: World, agent: Agent) -> None:
        head = agent.head
        made = await make(world, agent)
        records = list(agent.records(head + 1))
        assert [record.type for record in records] == ["plan_made", "timer_set", "timer_set"]
        assert {record.commit for record in records} == {records[0].commit}
        assert made == records[0].seq
        assert await due(agent) == {f"plan-{made}-0": MORNING.start, f"plan-{made}-1": NOON.start}
        event = event_of(records[0])
        assert isinstance(event, PlanMade)
        assert [next(agent.records(seq)).text for seq in event.sources] == ["Please plan my Saturday."]

    with_agent(main)


def test_a_repeated_command_makes_no_second_plan() -> None:
    """The same command again returns the same plan, and a change that is sent twice is made once."""

    async def main(world: World, agent: Agent) -> None:
        first = command(world, MakePlan, text="Saturday", items=(MORNING,))
        made = await edit(agent, first)
        assert await edit(agent, first) == made
        change = command(world, ChangePlan, plan=made, item=0, change="cancelled", reason="It rains.")
        changed = await edit(agent, change)
        head = agent.head
        assert await edit(agent, change) == changed
        assert agent.head == head

    with_agent(main)


@pytest.mark.parametrize("sources", [[999], [-4], [1]])
def test_a_plan_rests_on_memories_that_exist(sources: list[int]) -> None:
    """Sources that are later, that do not exist, or that are no memories are refused, and nothing is kept."""

    async def main(world: World, agent: Agent) -> None:
        head = agent.head
        with pytest.raises(BadInput):
            await make(world, agent, sources=sources)
        assert agent.head == head

    with_agent(main)


def test_changing_an_item_changes_its_timer() -> None:
    """A postponed item is due at its new start, a cancelled or done one has no timer, and a continued one keeps it."""

    async def main(world: World, agent: Agent) -> None:
        made = await make(world, agent)
        later = START + 20 * HOUR
        await edit(
            agent, command(world, ChangePlan, plan=made, item=0, change="postponed", reason="Rain.", start=later)
        )
        assert (await due(agent))[f"plan-{made}-0"] == later
        await edit(agent, command(world, ChangePlan, plan=made, item=0, change="continued", reason="Sun again."))
        assert (await due(agent))[f"plan-{made}-0"] == later
        await edit(agent, command(world, ChangePlan, plan=made, item=0, change="cancelled", reason="No paint."))
        await edit(agent, command(world, ChangePlan, plan=made, item=1, change="done", reason="It was early."))
        assert await due(agent) == {}
        assert await states(agent) == {(made, 0): "cancelled", (made, 1): "done"}

    with_agent(main)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"change": "postponed"}, "new start"),
        ({"change": "postponed", "start": START - HOUR}, "in the past"),
        ({"change": "done", "start": START + HOUR}, "new start"),
        ({"change": "forgotten"}, "not 'forgotten'"),
        ({"change": "cancelled", "reason": " "}, "reason of a change"),
        ({"change": "cancelled", "item": 7}, "no item 7"),
        ({"change": "cancelled", "plan": 3}, "no plan 3"),
        ({"change": "cancelled", "sources": [10**6]}, "no record with seq|not before"),
    ],
)
def test_an_impossible_change_is_refused(fields: dict[str, Any], reason: str) -> None:
    """A change without what it needs, of something that does not exist, is refused with the reason."""

    async def main(world: World, agent: Agent) -> None:
        made = await make(world, agent)
        head = agent.head
        with pytest.raises(BadInput, match=reason):
            await edit(agent, command(world, ChangePlan, **{"plan": made, "item": 0, "reason": "So.", **fields}))
        assert agent.head == head

    with_agent(main)


def test_an_item_that_has_ended_cannot_change() -> None:
    """A cancelled item cannot be done."""

    async def main(world: World, agent: Agent) -> None:
        made = await make(world, agent)
        await edit(agent, command(world, ChangePlan, plan=made, item=0, change="cancelled", reason="Rain."))
        with pytest.raises(BadInput, match="cancelled already"):
            await edit(agent, command(world, ChangePlan, plan=made, item=0, change="done", reason="Oh."))

    with_agent(main)


def test_an_item_is_divided_two_hours_ahead_and_once() -> None:
    """Nothing is divided earlier; then the rules cut the item into parts of 30 minutes, which say so and are timers in
    the place of the item's own.
    """

    async def main(world: World, agent: Agent) -> None:
        made = await make(world, agent)
        set_clock(world, START + 8 * HOUR - 60 * SECOND)
        assert (await PlanDivision(agent).run()).noted == 0
        set_clock(world, START + 8 * HOUR)
        report = await PlanDivision(agent).run()
        assert (report.noted, report.deriver) == (1, "rules-1")
        (division,) = [(r.seq, event_of(r)) for r in world.log() if r.type == "plan_made" and r.seq != made]
        seq, event = division
        assert isinstance(event, PlanMade)
        assert [(item.text, item.start - START, item.minutes, item.place) for item in event.items] == [
            (f"Paint the fence (part {n} of 3)", 10 * HOUR + (n - 1) * HOUR // 2, 30, "garden") for n in (1, 2, 3)
        ]
        assert "cut by rules" in (event.text or "")
        assert (event.level, event.parent, event.parent_item, event.sources) == ("hours", made, 0, [made])
        assert sorted(await due(agent)) == sorted([f"plan-{made}-1", *(f"plan-{seq}-{n}" for n in range(3))])
        head = agent.head
        assert (await PlanDivision(agent).run()).noted == 0
        assert agent.head == head

    with_agent(main)


def test_cancelling_an_item_cancels_what_it_was_divided_into() -> None:
    """The parts of a cancelled item are cancelled with it, in the same commit, and no timer of them is left."""

    async def main(world: World, agent: Agent) -> None:
        made = await make(world, agent, MORNING)
        set_clock(world, START + 9 * HOUR)
        await PlanDivision(agent).run()
        assert len(await due(agent)) == 3
        await edit(agent, command(world, ChangePlan, plan=made, item=0, change="cancelled", reason="It rains."))
        assert await due(agent) == {}
        assert set((await states(agent)).values()) == {"cancelled"}

    with_agent(main)


def test_a_postponed_item_is_divided_again() -> None:
    """Postponing an item cancels its parts; two hours before its new start it is divided again."""

    async def main(world: World, agent: Agent) -> None:
        made = await make(world, agent, MORNING)
        set_clock(world, START + 9 * HOUR)
        await PlanDivision(agent).run()
        later = START + 20 * HOUR
        await edit(
            agent, command(world, ChangePlan, plan=made, item=0, change="postponed", reason="Rain.", start=later)
        )
        assert await due(agent) == {f"plan-{made}-0": later}
        assert (await PlanDivision(agent).run()).noted == 0
        set_clock(world, START + 19 * HOUR)
        assert (await PlanDivision(agent).run()).noted == 1
        assert min((await due(agent)).values()) == later

    with_agent(main)


def set_clock(world: World, now: int) -> None:
    """Move the clock of the world forward."""
    world.clock.at = now


STEPS = {"steps": [{"text": "Open the paint", "minutes": 10}, {"text": "Paint the front", "minutes": 50}]}


def test_a_model_divides_an_item_into_steps() -> None:
    """The steps of an answer follow each other from the start of the item; a second run asks nothing."""

    async def main(world: World, agent: Agent) -> None:
        await make(world, agent, MORNING)
        set_clock(world, START + 9 * HOUR)
        world.model.summaries = [lambda raw: written(raw, "So: " + json.dumps(STEPS))]
        report = await PlanDivision(agent, "thinker").run()
        # The second step is longer than a part, so it is divided at once: by rules, because no answer is left for it.
        assert (report.noted, len(report.refused)) == (2, 1)
        rows = [row for row in await agent.rows("plan_items") if row["level"] == "hours"]
        assert [(row["text"], row["start"] - START, row["minutes"]) for row in rows] == [
            ("Open the paint", 10 * HOUR, 10), ("Paint the front", 10 * HOUR + 600 * SECOND, 50)
        ]  # fmt: skip
        asked = len(world.model.requests)
        assert (await PlanDivision(agent, "thinker").run()).noted == 0
        assert len(world.model.requests) == asked

    with_agent(main)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "1 to 50 steps"),
        ([("x y", 1)] * 51, "1 to 50 steps"),
        ([("Paint", 0)], "1 minute or more"),
        ([("Paint all", 60), ("Clean up", 31)], "90 at most"),
        ([("", 5)], "characters"),
        ([("x" * 201, 5)], "characters"),
        ([("Paint", 5), ("paint!", 5)], "repeat"),
        ([("Paint the fence", 90)], "repeat"),
        ([("what to do", 5)], "repeat"),
    ],
)
def test_steps_that_are_no_division_are_refused(steps: list[tuple[str, int]], reason: str) -> None:
    """Steps that are too many, too long, empty or repeated are a fault of the answer."""
    row = {"text": "Paint the fence", "place": ""}
    text = json.dumps({"steps": [{"text": text, "minutes": minutes} for text, minutes in steps]})
    with pytest.raises(BadReply, match=reason):
        reader(row, START, 90)(text)


def test_an_item_is_cut_by_rules_if_the_model_has_no_steps() -> None:
    """Two unusable answers are recorded; then the rules cut the item, and the plan says that it was rules."""

    async def main(world: World, agent: Agent) -> None:
        await make(world, agent, MORNING)
        set_clock(world, START + 9 * HOUR)
        world.model.summaries = [lambda raw: written(raw, "I would rather not.")] * 9
        report = await PlanDivision(agent, "thinker").run()
        assert report.refused
        faults = [event.fault for event in map(event_of, world.log()) if isinstance(event, DerivationReplied)]
        assert len(faults) == 2
        assert all(faults)
        division = [event for event in map(event_of, world.log()) if isinstance(event, PlanMade)][-1]
        assert division.deriver == "rules-1"
        assert "cut by rules" in (division.text or "")

    with_agent(main)
