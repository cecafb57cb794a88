"""Parse the moments of requests: a seq, or a time in ISO 8601 with a zone. Pure."""

import re
from datetime import datetime

from everlog.interfaces.http.core.refusals import Refusal

_SEQ = re.compile(r"\d{1,18}")


def moment_of(given: str | None) -> int | datetime | None:
    """Return the seq or the time of a parameter `as_of`; None if it was not given. Raises the refusal of others."""
    if given is None:
        return None
    if _SEQ.fullmatch(given):
        return int(given)
    when = time_of_parameter(given, "as_of")
    assert when is not None
    return when


def time_of_parameter(given: str | None, name: str) -> datetime | None:
    """Return the time of a parameter; None if it was not given. Raises the refusal of anything but a time with a zone.

    A `+` that a client did not encode has become a space: the zone +02:00 is understood all the same.
    """
    if given is None:
        return None
    try:
        when = datetime.fromisoformat(given.replace(" ", "+") if given.count(" ") == 1 and "T" in given else given)
    except ValueError:
        when = None
    if when is None or when.utcoffset() is None:
        raise Refusal(
            400, "bad-input",
            f"`{name}` is a seq or a time with a zone, such as 2026-01-31T12:00:00Z, not {given[:80]!r}.",
        )  # fmt: skip
    return when
