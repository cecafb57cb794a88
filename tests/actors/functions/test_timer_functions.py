"""Functions of an agent's own timers: events of the step, limits that say what to do, and turns that still verify."""

import asyncio
from typing import Any

import pytest

from everlog.actors.functions.timer_functions import TIMERS_MAX
from everlog.actors.models.offline import reply
from everlog.actors.replay.rebuild_check import verify
from everlog.events import FunctionResult, MessageSent, TimerCancelled, TimerSet, event_of
from tests.support import virtual_time
from tests.support.agent_world import SECOND, World, completion
from tests.support.agents.virtual_time_runtime import Home

MINUTE_US = 60 * SECOND


def told(*replies: list[tuple[str, dict[str, Any]]]) -> World:
    """Return a world in which the model answered one message for each reply, with these calls."""
    world = World(*(completion(calls=calls) for calls in replies))
    asyncio.run(world.tell(*(f"Message {number}." for number in range(len(replies)))))
    return world


def results(world: World) -> list[FunctionResult]:
    """Return the results of the functions of timers, in order."""
    events = map(event_of, world.log())
    return [event for event in events if isinstance(event, FunctionResult) and event.name.endswith(("timer", "timers"))]


def set_timers(world: World) -> list[TimerSet]:
    """Return the timers that were set."""
    return [event for event in map(event_of, world.log()) if isinstance(event, TimerSet)]


def a_timer(**arguments: Any) -> tuple[str, dict[str, Any]]:
    return "set_timer", {"name": "bread", "text": "Remind the user: buy bread", **arguments}


def test_a_timer_is_an_event_of_the_step_that_set_it() -> None:
    """The event stands before the result of its call, in the same commit, and every step still verifies."""
    world = told([a_timer(in_minutes=2)])
    commit = next(record for record in world.log() if record.type == "timer_set").commit
    kinds = [record.type for record in world.log() if record.commit == commit]
    assert kinds.index("timer_set") < kinds.index("function_result")
    view = world.system.view("sam")
    report = verify(view, world.system.tools)
    rows = view.rows("timers")
    view.close()
    assert (report.faults, report.mismatches) == ([], [])
    assert [(row["timer"], row["text"]) for row in rows] == [("bread", "Remind the user: buy bread")]


def test_every_way_to_say_a_time_is_understood() -> None:
    """Minutes from now, a wall clock and a schedule in the agent's zone."""
    world = told([a_timer(in_minutes=0.5)], [a_timer(at="2099-01-02 03:04")], [a_timer(schedule="0 7 * * 1-5")])
    half, wall, schedule = set_timers(world)
    now = next(record.recorded_at for record in world.log() if record.type == "model_reply")
    assert abs(half.due_at - now - MINUTE_US // 2) < SECOND
    assert (wall.due_at, wall.every_s) == (4_071_006_240 * SECOND, 0)
    assert (schedule.cron, schedule.zone) == ("0 7 * * 1-5", "UTC")
    assert all(result.ok for result in results(world))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Give one of in_minutes, at and schedule"),
        ({"in_minutes": 1, "at": "2099-01-01 00:00"}, "Give one of"),
        ({"at": "2001-01-01 00:00"}, "is in the past: it is"),
        ({"at": "tomorrow"}, "written as YYYY-MM-DD HH:MM"),
        ({"at": "9999-01-01 00:00"}, "between the years"),
        ({"in_minutes": -1}, "more than 0"),
        ({"in_minutes": 1e300}, "more than 0"),
        ({"schedule": "* * * * *"}, "repeats after 5 minutes or more"),
        ({"schedule": "noon"}, "is not a schedule"),
        ({"in_minutes": 1, "name": ""}, "1 to 100 characters"),
        ({"in_minutes": 1, "name": "plan-3-0"}, "an item of a plan"),
        ({"in_minutes": 1, "text": " "}, "1 to 1000 characters"),
        ({"in_minutes": 1, "text": "x" * 1001}, "not 1001"),
    ],
)
def test_a_timer_that_cannot_be_set_is_told_to_the_model(arguments: dict[str, Any], words: str) -> None:
    """The result says what is wrong, no timer is set, and the turn goes to its end."""
    world = told([a_timer(**arguments)])
    assert not results(world)[0].ok
    assert words in (results(world)[0].text or "")
    assert set_timers(world) == []


def test_calls_of_one_reply_see_each_other() -> None:
    """A timer that a call before set is listed, replaced and cancelled in the same reply."""
    world = told(
        [
            a_timer(in_minutes=2),
            a_timer(in_minutes=3),
            ("list_timers", {}),
            ("cancel_timer", {"name": "bread"}),
            ("list_timers", {}),
            ("cancel_timer", {"name": "bread"}),
        ]
    )
    first, second, listed, cancelled, empty, gone = results(world)
    assert (first.text or "").startswith("Set: ")
    assert (second.text or "").startswith("Replaced: ")
    assert (listed.text or "").count('"name":"bread"') == 1
    assert (cancelled.ok, empty.text) == (True, "No timers are set.")
    assert "there are no timers" in (gone.text or "")


def test_a_timer_of_a_turn_before_is_cancelled_by_its_name() -> None:
    """The cancellation is an event, and a wrong name is answered with the names there are."""
    world = told([a_timer(in_minutes=2)], [("cancel_timer", {"name": "milk"})], [("cancel_timer", {"name": "bread"})])
    _, wrong, right = results(world)
    assert (wrong.text or "").endswith("There is no timer 'milk'; there are 'bread'.")
    assert right.ok
    assert [event.timer for event in map(event_of, world.log()) if isinstance(event, TimerCancelled)] == ["bread"]


def test_an_agent_has_a_limited_number_of_timers() -> None:
    """One more than the limit is refused, and one that replaces another is not."""
    many = [
        ("set_timer", {"name": f"t{number}", "text": "x", "in_minutes": number + 1}) for number in range(TIMERS_MAX)
    ]
    world = told(many, [("set_timer", {"name": "more", "text": "x", "in_minutes": 1})], [
        ("set_timer", {"name": "t0", "text": "again", "in_minutes": 1})
    ])  # fmt: skip
    assert [result.ok for result in results(world)] == [True] * TIMERS_MAX + [False, True]
    assert "Cancel one first" in (results(world)[TIMERS_MAX].text or "")


@pytest.mark.parametrize("restarted", [False, True])
def test_the_offline_model_reminds_of_bread_once(restarted: bool) -> None:
    """A reminder in two minutes comes after two minutes, once, also if the process is replaced in between."""

    async def main() -> list[str]:
        offline = [lambda request: reply(request).decode()] * 20
        home = Home(lines=offline)
        sam = await home.open()
        await sam.send("Remind me to buy bread in 2 minutes")
        if restarted:
            await asyncio.sleep(30)
            await home.leave()
            await asyncio.sleep(30)
            home = Home(home.store, lines=offline)
            await home.open()
        await asyncio.sleep(1000)
        await home.leave()
        assert [(round(at), late) for at, late in home.beats()] == [(120, False)]
        events = map(event_of, home.log())
        return [event.text or "" for event in events if isinstance(event, MessageSent)]

    said = virtual_time.run(main)
    assert said.count("You asked me to remind you: buy bread.") == 1
