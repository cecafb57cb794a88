"""Timed heartbeats: exactly those that are due, once each, with any clock and any restart."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from everlog.actors.agent.commands import FireTimer
from everlog.actors.hosting import edit_commands
from everlog.events import BadInput
from everlog.events.times import EPOCH
from tests.support import virtual_time
from tests.support.agent_world import SECOND, completion
from tests.support.agents.virtual_time_runtime import Home, moment, run_plain, when
from tests.support.virtual_time import WallClock

MINUTE, HOUR, DAY = 60, 3600, 86400


async def a_day(every_s: int) -> list[tuple[float, bool]]:
    """Run a timer for a day from 00:10 on, with a pause of 45 minutes from 08:00:30 on and no process from 15:00:10 to
    15:17:10. Return the heartbeats.
    """
    pause = completion(calls=[("pause_heartbeats", {"minutes": 45})])
    home = Home()
    sam = await home.open()
    await sam.set_timer("tea", "[steps=1]", due_at=when(10 * MINUTE), every=timedelta(seconds=every_s))
    await asyncio.sleep(8 * HOUR + 30)
    home.lines = [pause]
    await sam.send("Leave me alone [pause=45]")
    await asyncio.sleep(7 * HOUR - 20)
    await home.leave()
    await asyncio.sleep(17 * MINUTE)
    home = Home(home.store)
    await home.open()
    await asyncio.sleep(DAY - 15 * HOUR - 17 * MINUTE - 10)
    await home.leave()
    return home.beats()


@pytest.mark.parametrize(
    ("run", "every_s"),
    [
        (run_plain, 20 * MINUTE),
        (virtual_time.run, HOUR),
        pytest.param(run_plain, MINUTE, marks=[pytest.mark.long, pytest.mark.hosts]),
    ],
)
def test_a_day_of_heartbeats(run: Any, every_s: int) -> None:
    """A timer of a few minutes (an hour for a full agent) gives one heartbeat each time over a day, one when the
    pause ends, and one marked late for all that were missed.
    """
    pause, gone = (8 * HOUR + 30, 8 * HOUR + 45 * MINUTE + 30), (15 * HOUR + 10, 15 * HOUR + 17 * MINUTE + 10)
    times = [t for t in range(10 * MINUTE, DAY, every_s) if not any(a < t < b for a, b in (pause, gone))]
    assert run(lambda: a_day(every_s)) == sorted([(t, False) for t in times] + [(pause[1], False), (gone[1], True)])


def test_a_pause_continues_over_a_restart() -> None:
    """A process that restarts during a pause sends no heartbeat before the pause is over, and then one that is not
    late.
    """

    async def main() -> list[tuple[float, bool]]:
        home = Home()
        sam = await home.open()
        await sam.set_timer("tea", due_at=when(60), every=timedelta(seconds=60))
        await sam.send("[pause=30]")
        await home.leave()
        await asyncio.sleep(600)
        home = Home(home.store)
        await home.open()
        await asyncio.sleep(1300)
        await home.leave()
        return home.beats()

    assert run_plain(main) == [(1800, False), (1860, False)]


def test_timers_that_fire_once_and_timers_of_the_past() -> None:
    """A timer in the past fires at once; it is marked late only if it is overdue by more than a minute, or was due
    before the schedule began.
    """

    async def main() -> Home:
        home = Home()
        await asyncio.sleep(1000)
        for name, at in (("sam", 2000), ("ada", 990), ("ben", 100), ("cy", -3 * DAY)):
            ref = await home.open(name)
            await ref.set_timer("tea", due_at=when(at))
        await asyncio.sleep(DAY)
        await home.leave()
        return home

    home = run_plain(main)
    assert {name: home.beats(name) for name in ("sam", "ada", "ben", "cy")} == {
        "sam": [(2000, False)], "ada": [(1000, False)], "ben": [(1000, True)], "cy": [(1000, True)],
    }  # fmt: skip


def test_two_timers_of_one_agent_and_timers_of_several() -> None:
    """Each timer keeps its own times, also when two are due at the same moment."""

    async def main() -> Home:
        home = Home()
        for name in ("sam", "ada"):
            ref = await home.open(name)
            await ref.set_timer("tea", due_at=when(60), every=timedelta(seconds=60))
            await ref.set_timer("mail", due_at=when(120), every=timedelta(seconds=90))
        await asyncio.sleep(400)
        await home.leave()
        return home

    home = run_plain(main)
    for name in ("sam", "ada"):
        assert home.beats(name, "tea") == [(t, False) for t in range(60, 400, 60)]
        assert home.beats(name, "mail") == [(t, False) for t in range(120, 400, 90)]


def test_a_missed_heartbeat_comes_once_after_days() -> None:
    """After days without a process one late heartbeat is sent, with a new id: the log refuses ids older than a day."""

    async def main() -> list[tuple[float, bool]]:
        home = Home()
        sam = await home.open()
        await sam.set_timer("tea", due_at=when(60), every=timedelta(seconds=HOUR))
        await home.leave()
        await asyncio.sleep(9 * DAY)
        home = Home(home.store)
        await home.open()
        await asyncio.sleep(100)
        await home.leave()
        return home.beats()

    assert run_plain(main) == [(9 * DAY, True), (9 * DAY + 60, False)]


@pytest.mark.parametrize("whole", [False, True])
def test_a_timer_is_cancelled_or_replaced_while_it_is_due(whole: bool) -> None:
    """A timer that is cancelled before the due time has no heartbeat; a timer that is set again is a new timer, even
    with the due time of one that has fired.
    """

    async def main() -> Home:
        home = Home()
        sam = await home.open()
        await sam.set_timer("tea", "first", due_at=when(10))
        await asyncio.sleep(20)
        await sam.set_timer("tea", "second", due_at=when(10))
        await sam.set_timer("mail", due_at=when(40))
        await asyncio.sleep(10)
        assert await sam.cancel_timer("mail")
        assert not await sam.cancel_timer("mail")
        await asyncio.sleep(DAY)
        await home.leave()
        return home

    home = (virtual_time.run if whole else run_plain)(main)
    assert home.beats() == [(10, False), (20, False)]
    assert [r.text for r in home.log() if r.type == "heartbeat"] == ["first", "second"]
    assert not home.notes


def test_two_schedules_of_one_store_make_one_heartbeat() -> None:
    """Further reports of a due timer, marked late or not, add no heartbeat."""

    async def main() -> tuple[Home, list[bool]]:
        home = Home()
        sam = await home.open()
        await sam.set_timer("tea", due_at=when(60), every=timedelta(seconds=60))
        await asyncio.sleep(59)
        clock = WallClock()

        async def told(command: FireTimer) -> bool:
            return [heard async for heard in home.runtime.perform("sam", command)][-1].value

        others = [
            FireTimer(id=home.ids.new(clock.now()), timer="tea", due_at=moment(60), late=late) for late in (False, True)
        ]
        await asyncio.sleep(1)
        answers = await asyncio.gather(*[told(command) for command in others])
        await asyncio.sleep(10)
        await home.leave()
        return home, list(answers)

    home, answers = run_plain(main)
    assert home.beats() == [(60, False)]
    assert sum(answers) <= 1


@pytest.mark.parametrize("skew_s", [-5, 5])
@pytest.mark.parametrize("run", [run_plain, virtual_time.run])
def test_heartbeats_are_correct_with_a_skewed_host_clock(run: Any, skew_s: int) -> None:
    """With a host's clock behind or ahead of the schedule's clock, each heartbeat is recorded once, and not before its
    due time.
    """

    async def main() -> Home:
        home = Home()
        host_clock = home.clock
        sam = await home.open()
        home.runtime._schedule._clock = WallClock()
        host_clock.skew = skew_s * SECOND
        await sam.set_timer("tea", due_at=when(60), every=timedelta(seconds=60))
        await asyncio.sleep(330)
        await home.leave()
        return home

    assert run(main).beats() == [(t + max(skew_s, 0), False) for t in range(60, 330, 60)]


def test_an_agent_that_cannot_be_opened_is_tried_again_later() -> None:
    """While another process owns the agent, the schedule tries once a minute; when the agent is free, one heartbeat is
    sent.
    """

    async def main() -> tuple[Home, int]:
        home = Home(idle_s=1)
        sam = await home.open()
        await sam.set_timer("tea", due_at=when(100), every=timedelta(seconds=600))
        await asyncio.sleep(50)
        held = home.store.open("sam", "everlog chat")
        looks = Counter[str]()
        opened = home.store.open
        home.store.open = lambda *args, **more: (looks.update("x"), opened(*args, **more))[1]
        await asyncio.sleep(365)
        held.close()
        await asyncio.sleep(60)
        await home.leave()
        return home, looks["x"]

    home, looks = run_plain(main)
    assert home.beats() == [(460, True)]
    assert looks == 7
    assert len(home.notes) == 6


def test_a_recreated_agent_has_no_timers_of_the_deleted_one() -> None:
    """A deleted agent's timers are gone, no schedule reads them, and an agent created again under the name has none."""

    async def main() -> Home:
        home = Home(idle_s=1)
        for name in ("sam", "ada"):
            ref = await home.open(name)
            await ref.set_timer("tea", due_at=when(100), every=timedelta(seconds=100))
        await home.ref("sam").delete()
        await asyncio.sleep(50)
        other = Home(home.store)
        await other.ref("ada").delete()
        await other.leave()
        await asyncio.sleep(200)
        assert home.runtime._schedule.next_at is None
        again = await home.open("sam")
        await asyncio.sleep(200)
        await again.set_timer("tea", due_at=when(100), every=timedelta(seconds=0))
        await asyncio.sleep(10)
        await home.leave()
        return home

    home = run_plain(main)
    assert home.beats("sam") == [(450, True)]
    assert home.beats("ada") == []
    assert not home.notes


def test_a_clock_that_jumps() -> None:
    """If the clock jumps ahead, one late heartbeat comes within a minute; when it jumps back, the next heartbeat
    waits for its time.
    """

    async def main() -> list[tuple[float, bool]]:
        home = Home()
        sam = await home.open()
        await sam.set_timer("tea", due_at=when(600), every=timedelta(seconds=600))
        await asyncio.sleep(700)
        home.clock.skew = 5000 * SECOND
        await asyncio.sleep(60)
        home.clock.skew = 0
        await asyncio.sleep(5900)
        await home.leave()
        return home.beats()

    beats = run_plain(main)
    assert beats[0] == (600, False)
    assert 5700 <= beats[1][0] <= 5760 and beats[1][1]
    assert beats[2:] == [(6000, False), (6600, False)]


@pytest.mark.parametrize("wrong", [{"due_at": EPOCH - timedelta(days=1)}, {"due_at": EPOCH, "every": timedelta(10**8)}])
def test_a_timer_beyond_the_limit_is_refused(wrong: dict[str, Any]) -> None:
    """A time or a period out of bounds is refused, and the agent continues."""

    async def main() -> None:
        home = Home()
        sam = await home.open()
        with pytest.raises(BadInput, match="It was not set"):
            await sam.set_timer("tea", **wrong)
        await sam.send("Hello")
        await home.leave()

    virtual_time.run(main)


def test_an_agent_has_a_limited_number_of_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One timer more than the limit is refused, nothing is lost, and one that replaces another is set."""
    monkeypatch.setattr(edit_commands, "TIMERS_MAX", 3)

    async def main() -> None:
        home = Home()
        sam = await home.open()
        for name in ("a", "b", "c"):
            await sam.set_timer(name, due_at=when(HOUR))
        with pytest.raises(BadInput, match="has 3 timers, and 3 is the most"):
            await sam.set_timer("d", due_at=when(HOUR))
        assert await sam.set_timer("a", due_at=when(MINUTE)) == "a"
        await asyncio.sleep(2 * HOUR)
        assert sorted(home.beats()) == [(MINUTE, False), (HOUR, False), (HOUR, False)]
        await home.leave()

    run_plain(main)
