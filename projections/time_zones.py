"""Find the time zone of an agent by its IANA name.

Used by recall's search by date, by the prompt, and by times that are shown to people. The zone of an agent is in its
log, and the machine that reads the log may not have it: every caller must go through `zone_of`, which says so in words.
"""

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from everlog.events import BadInput


@lru_cache(maxsize=256)
def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of that IANA name. Raise BadInput if this machine has none of that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadInput(
            f"There is no time zone {name!r} on this machine. Use an IANA name such as Europe/Oslo or UTC "
            "(`everlog chat NAME --zone UTC`), or install the time zones (package tzdata)."
        ) from error
