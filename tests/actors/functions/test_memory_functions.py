"""Functions of derived memory: only if listed, sources that exist, events in the turn, and turns that still verify."""

import asyncio
from typing import Any

import msgspec
import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.functions.memory_functions import NAMES
from everlog.actors.replay.rebuild_check import verify
from everlog.events import BadInput, FunctionResult, PlanMade, Record, TimerSet, event_of
from tests.support.agent_world import World, completion

NOTE = ("insight_note", {"text": "The user and Lea share a love of boats."})


def world_with(*replies: list[tuple[str, Any]], names: tuple[str, ...] = NAMES) -> World:
    world = World(*(completion(calls=calls) for calls in replies))
    world.settings = msgspec.structs.replace(world.settings, optional_functions=names)
    return world


def told(world: World, *texts: str) -> list[Record]:
    return asyncio.run(world.tell(*texts))


def results(world: World) -> list[FunctionResult]:
    return [event for event in map(event_of, world.log()) if isinstance(event, FunctionResult) and event.name in NAMES]


def verified(world: World) -> None:
    """Every request and every step of the log is the same today."""
    view = world.system.view("sam")
    try:
        report = verify(view, world.system.tools)
    finally:
        view.close()
    assert (report.faults, report.mismatches) == ([], [])


def of(world: World, kind: str) -> Record:
    return next(record for record in world.log() if record.type == kind)


def test_an_agent_has_these_functions_only_if_its_settings_list_them() -> None:
    """By default none is offered; listed ones are, and they stay when the agent is opened again."""

    async def main() -> None:
        world = World()
        await world.tell("Hello.")
        assert not set(NAMES) & {tool["function"]["name"] for tool in world.model.seen[-1].body["tools"]}
        world.settings = Settings(model="scripted", window=8192, optional_functions=("insight_note",))
        await world.tell("Hello again.")
        world.settings = Settings()
        await world.tell("And again.")
        offered = {tool["function"]["name"] for tool in world.model.seen[-1].body["tools"]}
        assert set(NAMES) & offered == {"insight_note"}

    asyncio.run(main())


def test_an_unknown_function_is_refused() -> None:
    """A name that is no function of derived memory is refused with the names that there are."""
    world = world_with(names=("insight_write",))
    with pytest.raises(BadInput, match=r"insight_note.*not 'insight_write'"):
        told(world, "Hello.")


def test_an_insight_without_sources_rests_on_the_newest_message() -> None:
    """An insight is an event of the turn, by the agent, in use in every generation; the turn verifies."""
    world = world_with([NOTE])
    told(world, "Lea and I bought a boat.")
    record = of(world, "insight_noted")
    payload = msgspec.json.decode(record.payload)
    assert payload["sources"] == [of(world, "user_message").seq]
    assert (payload["deriver"], payload.get("generation", 0)) == ("agent", 0)
    assert record.turn == of(world, "user_message").turn
    assert len(record.payload) < 400
    assert results(world)[0].ok
    verified(world)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("insight_note", {"text": "Boats matter.", "because_of": [999]}), "no memory with the number 999"),
        (("insight_note", {"text": "Boats matter.", "because_of": [1]}), "no memory with the number 1"),
        (("insight_note", {"text": " "}), "characters"),
        (("insight_note", {"text": "x" * 201}), "characters"),
        (("insight_note", {"text": "Lea and I bought a boat!"}), "exactly this already"),
        (("fact_note", {"subject": "", "predicate": "has", "object": "boat", "sentence": "A boat."}), "subject"),
        (("fact_note", {"subject": "A", "predicate": "Has A", "object": "boat", "sentence": "A boat."}), "lower case"),
        (
            ("fact_note", {"subject": "A", "predicate": "has", "object": "b", "sentence": "A b.", "since": "soon"}),
            "YYYY-MM-DD",
        ),
        (("fact_end", {"fact": 3, "reason": "Sold."}), "no fact 3"),
        (("plan_make", {"title": "Trip", "items": []}), "1 to 50 items"),
        (
            ("plan_make", {"title": "Trip", "items": [{"text": "Go", "start": "2001-01-01 10:00", "minutes": 5}]}),
            "in the past",
        ),
        (
            ("plan_make", {"title": "Trip", "items": [{"text": "Go", "start": "9999-01-01 10:00", "minutes": 5}]}),
            "1970 and 9998",
        ),
        (("plan_change", {"plan": 3, "item": 0, "change": "done", "reason": "So."}), "no plan 3"),
    ],
)
def test_a_call_that_cannot_be_kept_leaves_no_memory(call: tuple[str, dict[str, Any]], reason: str) -> None:
    """The model is told why, nothing is noted, and the turn verifies."""
    world = world_with([call])
    told(world, "Lea and I bought a boat.")
    (result,) = results(world)
    assert not result.ok
    assert reason in (result.text or "")
    assert not {"insight_noted", "fact_noted", "fact_ended", "plan_made", "plan_changed"} & set(world.kinds())
    verified(world)


def test_a_fact_is_noted_and_ended_with_what_rests_on_it_outdated() -> None:
    """A fact that the agent ended is not believed any more, and an insight on it is outdated."""

    async def main() -> None:
        fact = {
            "subject": "Lea",
            "predicate": "owns",
            "object": "a boat",
            "sentence": "Lea owns a boat.",
            "since": "2026-01-01",
        }
        world = world_with([("fact_note", fact)])
        await world.tell("Lea bought a boat.")
        noted = of(world, "fact_noted").seq
        world.model.lines = [
            completion(calls=[("insight_note", {"text": "Lea will sail a lot.", "because_of": [noted]})])
        ]
        await world.tell("She loves it.")
        world.model.lines = [
            completion(calls=[("fact_end", {"fact": noted, "reason": "She sold it.", "until": "2026-02-01"})])
        ]
        await world.tell("She sold it.")
        async with world.system.agent("sam", world.settings) as agent:
            (row,) = await agent.rows("facts")
            assert (row["believed"], row["reason"], row["from_precision"]) == (False, "She sold it.", "day")
            (insight,) = await agent.rows("insights")
            assert insight["outdated"]
        verified(world)

    asyncio.run(main())


TRIP = {
    "title": "Trip",
    "items": [
        {"text": "Buy tickets", "start": "2026-03-01 10:00", "minutes": 30},
        {"text": "Drive to the sea", "start": "2026-03-01 12:00", "minutes": 120, "place": "coast"},
    ],
}


def test_a_plan_of_the_agent_has_timers_that_are_named_after_it() -> None:
    """The timers are in the commit of the reply, named after the plan's own seq, and due in the agent's zone."""
    world = world_with([("plan_make", TRIP)])
    world.settings = msgspec.structs.replace(world.settings, zone="Europe/Berlin")
    told(world, "Plan a trip.")
    made = of(world, "plan_made")
    timers = [(record, event_of(record)) for record in world.log() if record.type == "timer_set"]
    assert [event.timer for _, event in timers if isinstance(event, TimerSet)] == [
        f"plan-{made.seq}-0",
        f"plan-{made.seq}-1",
    ]
    assert {record.commit for record, _ in timers} == {made.commit}
    assert f"plan {made.seq}, item 1" in (timers[1][0].text or "")
    plan = event_of(made)
    assert isinstance(plan, PlanMade)
    assert [event.due_at for _, event in timers if isinstance(event, TimerSet)] == [item.start for item in plan.items]
    assert plan.items[0].start % (24 * 3600 * 10**6) == 9 * 3600 * 10**6
    verified(world)


def test_a_plan_can_be_changed_by_the_numbers_that_its_reminders_name() -> None:
    """Postponing an item sets its timer again; cancelling it cancels the timer."""

    async def main() -> None:
        world = world_with([("plan_make", TRIP)])
        await world.tell("Plan a trip.")
        plan = of(world, "plan_made").seq
        change = {"plan": plan, "item": 0, "change": "postponed", "reason": "Closed.", "start": "2026-03-01 11:00"}
        cancel = {"plan": plan, "item": 1, "change": "cancelled", "reason": "Storm."}
        world.model.lines = [completion(calls=[("plan_change", change), ("plan_change", cancel)])]
        await world.tell("The shop is closed, and a storm is coming.")
        async with world.system.agent("sam", world.settings) as agent:
            (timer,) = await agent.rows("timers")
            assert timer["timer"] == f"plan-{plan}-0"
            assert [row["status"] for row in await agent.rows("plan_items")] == ["postponed", "cancelled"]
        verified(world)

    asyncio.run(main())
