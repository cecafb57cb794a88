"""Where the player is in a story, and how it goes on as time passes. Pure: time that has passed is an argument.

The time between two events of then is divided by the speed. Nothing waits longer than PAUSE_US_MAX, however long the
agent rested; and events of one moment come PACE_US apart at speed 1, so that people can follow.
"""

from collections.abc import Sequence

import msgspec

from everlog.events import Record

PAUSE_US_MAX = 2_000_000
"""Longest wait for the next event, at any speed, microseconds."""
PACE_US = 500_000
"""Shortest time between two events that is counted at speed 1, microseconds."""
SPEED_MIN, SPEED_MAX = 0.125, 1024.0

_replace = msgspec.structs.replace


class Playback(msgspec.Struct, frozen=True, kw_only=True):
    """A player: where it is, between which ends, whether it goes on and how fast."""

    seq: int
    """The record that is shown."""
    first: int
    last: int
    speed: float = 1.0
    playing: bool = True
    follow: bool = False
    """Whether more may come after the last."""
    waited_us: int = 0
    """How long the next event was waited for already."""

    @property
    def at_end(self) -> bool:
        """Whether nothing comes next, for now."""
        return self.seq >= self.last


def pause_us(then: Record, following: Record, speed: float) -> int:
    """How long to wait between two records."""
    gap = max(following.recorded_at - then.recorded_at, PACE_US)
    return min(int(gap / speed), PAUSE_US_MAX)


def due_us(playback: Playback, records: Sequence[Record]) -> int | None:
    """How long until the next event; None where nothing goes on. `records` begin at seq 1."""
    if not playback.playing or playback.at_end:
        return None
    then, following = records[playback.seq - 1], records[playback.seq]
    return max(pause_us(then, following, playback.speed) - playback.waited_us, 0)


def after_time(playback: Playback, elapsed_us: int, records: Sequence[Record]) -> Playback:
    """After some time: as many events on as were due. Without `follow` it stops at the end."""
    left = max(elapsed_us, 0)
    while (due := due_us(playback, records)) is not None:
        if due > left:
            return _replace(playback, waited_us=playback.waited_us + left)
        left -= due
        playback = _replace(playback, seq=playback.seq + 1, waited_us=0)
    if playback.at_end and not playback.follow:
        return _replace(playback, playing=False, waited_us=0)
    return playback


def at_record(playback: Playback, seq: int) -> Playback:
    """At another record, and paused there: who goes somewhere wants to look."""
    return _replace(playback, seq=_clamped(playback, seq), playing=False, waited_us=0)


def _clamped(playback: Playback, seq: int) -> int:
    return max(playback.first, min(seq, playback.last))


def toggle_pause(playback: Playback) -> Playback:
    """Paused, or going on; from the beginning where it had come to the end."""
    if playback.at_end and not playback.follow:
        return _replace(playback, seq=playback.first, playing=playback.first < playback.last, waited_us=0)
    return _replace(playback, playing=not playback.playing)


def faster(playback: Playback, times: float) -> Playback:
    """At so many times the speed, within the limits."""
    return _replace(playback, speed=max(SPEED_MIN, min(playback.speed * times, SPEED_MAX)))


def with_more_records(playback: Playback, last: int) -> Playback:
    """After more records came."""
    return _replace(playback, last=last)
