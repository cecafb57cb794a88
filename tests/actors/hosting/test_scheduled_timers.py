"""Timers at clock times: due as the clocks of their zone show, set again with each heartbeat, whatever happens."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog.actors.agent.commands import SetTimer
from everlog.actors.ports.timer_schedules import instant_of, next_due
from everlog.events import BadInput, TimerSet, event_of
from everlog.events.times import moment, since_epoch
from tests.support import virtual_time
from tests.support.agent_world import START
from tests.support.agents.virtual_time_runtime import Home, run_plain

DAY = 86400
OSLO = "Europe/Oslo"


def at(text: str) -> int:
    return since_epoch(datetime.fromisoformat(text))


def times(cron: str, zone: str, after: str, count: int) -> list[str]:
    """Return the next times of a schedule, as the clocks of the zone show them, with their offset."""
    found, now = [], at(after)
    for _ in range(count):
        now = next_due(cron, zone, now)
        found.append(moment(now).astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M %z"))
    return found


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("0 7 * * *", "2026-03-28T12:00Z", ["03-29 07:00 +0200", "03-30 07:00 +0200"]),
        ("0 7 * * *", "2026-10-24T12:00Z", ["10-25 07:00 +0100", "10-26 07:00 +0100"]),
        ("0 7 * * 1-5", "2026-03-27T12:00Z", ["03-30 07:00 +0200", "03-31 07:00 +0200"]),
        ("30 2 * * *", "2026-03-28T12:00Z", ["03-29 03:00 +0200", "03-30 02:30 +0200"]),
        ("30 2 * * *", "2026-10-24T12:00Z", ["10-25 02:30 +0200", "10-26 02:30 +0100"]),
        ("*/30 * * * *", "2026-03-29T00:15Z", ["03-29 01:30 +0100", "03-29 03:00 +0200", "03-29 03:30 +0200"]),
        ("*/30 * * * *", "2026-10-25T00:15Z", ["10-25 02:30 +0200", "10-25 03:00 +0100"]),
        ("0 0 29 2 *", "2026-01-01T00:00Z", ["02-29 00:00 +0100"]),
        ("0 7 1 * 1", "2026-06-01T12:00Z", ["06-08 07:00 +0200", "06-15 07:00 +0200"]),
    ],
)
def test_a_schedule_follows_the_clocks_of_its_zone(cron: str, after: str, expected: list[str]) -> None:
    """A time stays the same hour over a change of the clocks; a skipped time is the jump, a repeated one comes once."""
    assert times(cron, OSLO, after, len(expected)) == expected


@given(
    cron=st.sampled_from(["0 7 * * *", "30 2 * * *", "*/7 * * * *", "15 0 1 * *", "0 0 * * 0", "59 23 31 12 *"]),
    zone=st.sampled_from(["UTC", OSLO, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"]),
    after=st.integers(at("2000-01-01T00:00Z"), at("2040-01-01T00:00Z")),
)
def test_a_schedule_always_moves_on(cron: str, zone: str, after: int) -> None:
    """The next time lies after the moment; clocks show the minute of the schedule, or have just been changed."""
    due = next_due(cron, zone, after)
    assert due > after
    wall = moment(due).astimezone(ZoneInfo(zone))
    before = (moment(due) - timedelta(seconds=1)).astimezone(ZoneInfo(zone))
    minute = cron.split(maxsplit=1)[0]
    assert minute.startswith("*/") or wall.minute == int(minute) or before.utcoffset() != wall.utcoffset()


@pytest.mark.parametrize("cron", ["", "0 7 * *", "0 25 * * *", "@daily", "* * * * * *", "0 7 * * * 2026", "x y z a b"])
def test_what_is_no_schedule_is_refused(cron: str) -> None:
    """Anything but five valid fields is refused, and so is a schedule without any time."""
    with pytest.raises(BadInput, match="is not a schedule: five fields"):
        next_due(cron, "UTC", START)
    with pytest.raises(BadInput, match="has no time in the next years"):
        next_due("0 0 31 4 *", "UTC", START)


def test_a_wall_time_is_one_moment() -> None:
    """A skipped time is the moment of the jump, and a repeated time its first occurrence."""
    assert instant_of(datetime(2026, 3, 29, 2, 30), OSLO) == at("2026-03-29T01:00Z")  # noqa: DTZ001
    assert instant_of(datetime(2026, 10, 25, 2, 30), OSLO) == at("2026-10-25T00:30Z")  # noqa: DTZ001
    assert instant_of(datetime(2026, 7, 1, 12), OSLO) == at("2026-07-01T10:00Z")  # noqa: DTZ001


async def week(begin: str, away: tuple[float, float]) -> Home:
    """Run a daily timer for six days from `begin` on. No process runs from the first to the second day of `away`."""
    skew = at(begin) - START
    home = Home(skew=skew)
    sam = await home.open()
    now = home.clock.now()
    due = next_due("0 7 * * *", OSLO, now)
    await sam._sender.perform(SetTimer, timer="tea", text="Tea?", due_at=due, cron="0 7 * * *", zone=OSLO)
    await asyncio.sleep(away[0] * DAY)
    await home.leave()
    await asyncio.sleep((away[1] - away[0]) * DAY)
    home = Home(home.store, skew=skew)
    await home.open()
    await asyncio.sleep((6 - away[1]) * DAY)
    await home.leave()
    return home


def wall(home: Home) -> list[tuple[str, bool]]:
    """Return the heartbeats by the clocks of the zone, and True if marked late."""
    found = []
    for record in home.log():
        if record.type == "heartbeat":
            event: Any = event_of(record)
            shown = datetime.fromtimestamp(record.recorded_at / 10**6, UTC).astimezone(ZoneInfo(OSLO))
            found.append((f"{shown:%d %H:%M}", event.late))
    return found


@pytest.mark.parametrize("run", [run_plain, virtual_time.run])
def test_a_daily_timer_stays_at_its_hour(run: Any) -> None:
    """Over the change to summer time it fires at 07:00 each day; two days without a process give one late heartbeat."""
    home = run(lambda: week("2026-03-27T12:00Z", (2.5, 4.25)))
    assert wall(home) == [
        ("28 07:00", False), ("29 07:00", False), ("31 20:00", True), ("01 07:00", False), ("02 07:00", False),
    ]  # fmt: skip


def test_the_next_time_is_in_the_commit_of_the_heartbeat() -> None:
    """No crash can come between the heartbeat and the record that sets the timer again."""
    home = run_plain(lambda: week("2026-03-27T12:00Z", (2.5, 4.25)))
    log = home.log()
    for beat in (record for record in log if record.type == "heartbeat"):
        after = log[beat.seq]
        event = event_of(after)
        assert isinstance(event, TimerSet) and after.commit == beat.commit
        assert (event.timer, event.text, event.cron, event.zone) == ("tea", "Tea?", "0 7 * * *", OSLO)
        assert event.due_at > beat.recorded_at


def test_a_timer_has_an_interval_or_a_schedule() -> None:
    """A timer with both is refused, and so is one whose zone does not exist: it could not be set again."""

    async def main() -> None:
        home = Home()
        sam = await home.open()
        with pytest.raises(BadInput, match="either an interval"):
            await sam._sender.perform(
                SetTimer, timer="tea", text="", due_at=START, every_s=60, cron="0 7 * * *", zone="UTC"
            )
        with pytest.raises(BadInput, match="There is no time zone 'Mars/Base'"):
            await sam._sender.perform(SetTimer, timer="tea", text="", due_at=START, cron="0 7 * * *", zone="Mars/Base")
        await home.leave()
        assert [record for record in home.log() if record.type == "timer_set"] == []

    run_plain(main)
