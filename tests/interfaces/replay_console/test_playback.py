"""The player's progress as time passes. The player has no clock: the passed time is an argument."""

import pytest

from everlog.events import UserMessage
from everlog.interfaces.replay_console import playback as player
from everlog.interfaces.replay_console.playback import PACE_US, PAUSE_US_MAX, SPEED_MAX, SPEED_MIN, Playback
from tests.support.cli.story_records import RECORDS, SECOND, recorded

BEGUN = Playback(seq=1, first=1, last=len(RECORDS))


def later(gap_us: int, *, count: int = 3):
    return recorded([(UserMessage(text="x"), 1, 0)] * count, gap_us=gap_us)


@pytest.mark.parametrize(
    ("gap_us", "speed", "pause_us"),
    [
        (SECOND, 1.0, SECOND),
        (SECOND, 4.0, SECOND // 4),
        (SECOND, 0.5, 2 * SECOND),
        (3600 * SECOND, 1.0, PAUSE_US_MAX),
        (3600 * SECOND, 1024.0, PAUSE_US_MAX),
        (4 * SECOND, 8.0, SECOND // 2),
        (0, 1.0, PACE_US),
        (0, 2.0, PACE_US // 2),
        (-SECOND, 1.0, PACE_US),
    ],
)
def test_recorded_time_is_divided_by_the_speed(gap_us: int, speed: float, pause_us: int) -> None:
    """A pause has a maximum, events of one moment are separated, and a time that ran backwards counts as no pause."""
    assert player.pause_us(*later(gap_us, count=2), speed) == pause_us


def test_it_waits_until_the_next_event_is_due() -> None:
    """Short intervals add up; no event is shown early or late."""
    now = player.after_time(BEGUN, SECOND - 1, RECORDS)
    assert (now.seq, player.due_us(now, RECORDS)) == (1, 1)
    now = player.after_time(now, 1, RECORDS)
    assert (now.seq, player.due_us(now, RECORDS)) == (2, SECOND)


def test_much_time_is_many_events() -> None:
    """The player advances by all due events, and the rest of the time counts for the next event."""
    now = player.after_time(BEGUN, 3 * SECOND + 400_000, RECORDS)
    assert (now.seq, now.waited_us) == (4, 400_000)


def test_it_stops_at_the_end() -> None:
    """The player stops at the last event; playing again begins at the first event."""
    now = player.after_time(BEGUN, 1000 * SECOND, RECORDS)
    assert (now.seq, now.playing) == (len(RECORDS), False)
    assert player.due_us(now, RECORDS) is None
    again = player.toggle_pause(now)
    assert (again.seq, again.playing) == (1, True)


def test_following_waits_at_the_end() -> None:
    """With `follow` the player waits at the end, and shows new events."""
    now = player.after_time(Playback(seq=1, first=1, last=3, follow=True), 1000 * SECOND, RECORDS)
    assert (now.seq, now.playing) == (3, True)
    now = player.after_time(player.with_more_records(now, 4), SECOND, RECORDS)
    assert now.seq == 4


def test_a_pause_lets_no_time_pass() -> None:
    """A paused player keeps its position however much time passes."""
    paused = player.toggle_pause(BEGUN)
    assert player.after_time(paused, 1000 * SECOND, RECORDS) == paused
    assert player.toggle_pause(paused) == BEGUN


def test_time_that_runs_back_is_no_time() -> None:
    """A clock that is set back changes nothing."""
    assert player.after_time(BEGUN, -SECOND, RECORDS) == BEGUN


def test_moves_stay_between_the_ends_and_pause() -> None:
    """A move never leaves the watched range, and pauses the player."""
    part = Playback(seq=5, first=3, last=9)
    assert [player.at_record(part, seq).seq for seq in (1, 3, 7, 9, 99)] == [3, 3, 7, 9, 9]
    assert not player.at_record(part, 7).playing


def test_speed_has_limits() -> None:
    """The speed is doubled and halved only within its limits."""
    now = BEGUN
    for _ in range(40):
        now = player.faster(now, 2)
    assert now.speed == SPEED_MAX
    for _ in range(40):
        now = player.faster(now, 0.5)
    assert now.speed == SPEED_MIN


def test_one_event_is_a_story_too() -> None:
    """A story of one record is at its end at once."""
    one = Playback(seq=1, first=1, last=1)
    assert not player.after_time(one, SECOND, RECORDS).playing
    assert not player.toggle_pause(player.after_time(one, SECOND, RECORDS)).playing
