"""Points in time as people and machines read them. Pure: the present is an argument, times are microseconds UTC."""

from datetime import datetime

from everlog.events.times import MICROSECONDS, iso, moment, since_epoch

__all__ = ["clock", "day", "iso", "microseconds", "moment", "relative", "since_epoch", "span"]

_UNITS = ((365 * 86400, "year"), (30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))


def microseconds(text: str) -> int:
    """The time that an ISO 8601 text names; without a zone it is UTC. Raises ValueError."""
    return since_epoch(datetime.fromisoformat(text))


def day(at: int) -> str:
    """The date alone."""
    return moment(at).strftime("%Y-%m-%d")


def clock(at: int) -> str:
    """Date and time to the second, for people."""
    return moment(at).strftime("%Y-%m-%d %H:%M:%S")


def span(seconds: int) -> str:
    """A length of time as it is typed: 1h30m."""
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def relative(at: int, now: int) -> str:
    """How long ago, in the largest unit that fits: "3 minutes ago"."""
    seconds = (now - at) // MICROSECONDS
    if seconds < 0:
        return f"at {clock(at)}"
    for size, unit in _UNITS:
        count = seconds // size
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now" if seconds < 10 else f"{seconds} seconds ago"
