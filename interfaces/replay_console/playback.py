"""Position and speed of the player. Pure: elapsed time is an argument.

Used by the files of the console; `cli.args_show` takes the limits of the speed from here.

The recorded time between two events is divided by the speed. No pause is longer than PAUSE_US_MAX, and events less than
PACE_US apart are shown PACE_US apart at speed 1, so that people can follow.
"""

from collections.abc import Sequence

import msgspec

from everlog.events import Record

PAUSE_US_MAX = 2_000_000
"""Longest pause before the next event at any speed, microseconds."""
PACE_US = 500_000
"""Shortest pause between two events at speed 1, microseconds."""
SPEED_MIN, SPEED_MAX = 0.125, 1024.0

_replace = msgspec.structs.replace


class Playback(msgspec.Struct, frozen=True, kw_only=True):
    """State of the player: its position, the range that it plays, whether it runs, and how fast."""

    seq: int
    """Current record."""
    first: int
    last: int
    speed: float = 1.0
    playing: bool = True
    follow: bool = False
    """True if records may follow the last one."""
    waited_us: int = 0
    """Time that the player has already waited for the next event."""

    @property
    def at_end(self) -> bool:
        """True if no event follows for now."""
        return self.seq >= self.last


def pause_us(then: Record, following: Record, speed: float) -> int:
    """Return the pause between two records, microseconds."""
    gap = max(following.recorded_at - then.recorded_at, PACE_US)
    return min(int(gap / speed), PAUSE_US_MAX)


def due_us(playback: Playback, records: Sequence[Record]) -> int | None:
    """Return the microseconds until the next event; None if the player is paused or at the end. `records` begin at seq
    1.
    """
    if not playback.playing or playback.at_end:
        return None
    then, following = records[playback.seq - 1], records[playback.seq]
    return max(pause_us(then, following, playback.speed) - playback.waited_us, 0)


def after_time(playback: Playback, elapsed_us: int, records: Sequence[Record]) -> Playback:
    """Return the player after some time, as many events further as were due. Without `follow` it stops at the end."""
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
    """Return the player paused at another record; a seq outside of the range becomes the nearest end."""
    return _replace(playback, seq=_clamped(playback, seq), playing=False, waited_us=0)


def _clamped(playback: Playback, seq: int) -> int:
    return max(playback.first, min(seq, playback.last))


def toggle_pause(playback: Playback) -> Playback:
    """Return the player paused, or running again; at the end of the range it starts from the beginning."""
    if playback.at_end and not playback.follow:
        return _replace(playback, seq=playback.first, playing=playback.first < playback.last, waited_us=0)
    return _replace(playback, playing=not playback.playing)


def faster(playback: Playback, times: float) -> Playback:
    """Return the player with `times` its speed, between SPEED_MIN and SPEED_MAX."""
    return _replace(playback, speed=max(SPEED_MIN, min(playback.speed * times, SPEED_MAX)))


def with_more_records(playback: Playback, last: int) -> Playback:
    """Return the player with a later end of its range."""
    return _replace(playback, last=last)
