"""Write times for people and programs. Pure: the present is an argument, and times are microseconds UTC.

`clock` is the one format of a time for people, with its zone; JSON has `iso`.

Used by all commands that read or print times.
"""

import re
from datetime import UTC, datetime, tzinfo

from everlog.events.times import MICROSECONDS, iso, moment, since_epoch
from everlog.interfaces.common.plural import plural

__all__ = ["clock", "clock_of_prompt", "day", "iso", "microseconds", "moment", "relative", "since_epoch", "span"]

_UNITS = ((365 * 86400, "year"), (30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))
_PROMPT_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d):(\d\d:\d\d) ([AP])M (.*)([+-]\d\d)(\d\d)")
"""A time as `prompt.message_format.format_time` writes it for models: 2026-11-22 08:26:36 PM UTC+0000."""


def microseconds(text: str) -> int:
    """Return the time of an ISO 8601 text, UTC if it has no zone. Raises ValueError."""
    return since_epoch(datetime.fromisoformat(text))


def day(at: int) -> str:
    """Return the date in UTC: 2026-11-22."""
    return moment(at).strftime("%Y-%m-%d")


def clock(at: int, zone: str = "UTC") -> str:
    """Return date, time to the second and zone, for people: 2026-11-22 08:26:36 UTC. `zone` is an IANA name."""
    try:
        when = moment(at).astimezone(_zone(zone))
    except OverflowError:  # in the years 1 and 9999 a time may have no date in another zone
        when = moment(at)
    offset = when.strftime("%z")
    return f"{when:%Y-%m-%d %H:%M:%S} {_zone_label(when.tzname() or '', offset[:3], offset[3:5])}"


def clock_of_prompt(text: str) -> str:
    """Return a time of a prompt in the format of `clock`, in its own zone; any other text is returned unchanged."""
    found = _PROMPT_TIME.fullmatch(text)
    if found is None:
        return text
    date, hour, rest, half, *zone = found.groups()
    return f"{date} {int(hour) % 12 + 12 * (half == 'P'):02}:{rest} {_zone_label(*zone)}"


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    from everlog.projections.time_zones import zone_of  # loads DuckDB, which few times need

    return zone_of(name)


def _zone_label(name: str, hours: str, minutes: str) -> str:
    """Return the abbreviation of a zone, or its offset: zones without an abbreviation have names such as "-03"."""
    return name if name.isalpha() else f"UTC{hours}:{minutes}"


def span(seconds: int) -> str:
    """Return a length of time in the form in which arguments take it: 1h30m."""
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def relative(at: int, now: int) -> str:
    """Return the time since `at` in the largest unit that fits: "3 minutes ago"; a time after `now` as `clock` does."""
    seconds = (now - at) // MICROSECONDS
    if seconds < 0:
        return f"at {clock(at)}"
    for size, unit in _UNITS:
        count = seconds // size
        if count:
            return f"{plural(count, unit)} ago"
    return "just now" if seconds < 10 else f"{seconds} seconds ago"
