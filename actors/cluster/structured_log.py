"""Write the notes of hosts, the supervisor and the gateway for the people who run the cluster: one line of JSON each.

Used by the actors of this folder. Log collectors read the keys of a line, which docs/reference/cluster.md shows.

Ray stores what an actor prints to stderr, and any log collector reads JSON lines. A note says what happened, where and
when. It never contains text of people or models: code that writes a note names agents, counts and errors, and quotes no
message. Text that looks like a secret is removed all the same.
"""

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Literal

import msgspec

from everlog.actors.ports.effects import Clock
from everlog.events.times import iso

LogLevel = Literal["debug", "info", "warning", "error"]

WHAT_CHARS_MAX = 500
"""Longest note, in characters; a longer one is cut."""
SECRET_CHARS_MIN = 8
"""Shortest value of an environment variable that counts as a secret: a shorter one may be an ordinary word."""
GONE = "***"

_SECRETS = (
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),  # user:password in an address
    re.compile(r"(?i)(?<=bearer )\S+"),
    re.compile(r"\b(?:sk|pk|rk)-[\w-]{6,}"),
    re.compile(r"(?i)(?<=api_key=)[^\s&]+|(?<=apikey=)[^\s&]+|(?<=token=)[^\s&]+"),
)
_SECRET_NAME = re.compile(r"(?i)(KEY|TOKEN|SECRET|PASSWORD)$")


class _Line(msgspec.Struct):
    time: str
    level: LogLevel
    place: str
    node: str
    what: str


class StructuredLogger:
    """Writes the notes of one process."""

    def __init__(
        self,
        place: str,
        node: str,
        *,
        clock: Clock,
        environment: Mapping[str, str],
        out: Callable[[], IO[str]] = lambda: sys.stderr,
    ) -> None:
        """Create the logger. `place`: `supervisor`, `gateway`, or the name of the host. Values of `environment` whose
        names mark them as secret never appear in a note.
        """
        self._place = place
        self._node = node
        self._clock = clock
        self._out = out
        self._secrets = [
            value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= SECRET_CHARS_MIN
        ]

    def __call__(self, what: str, level: LogLevel = "warning") -> None:
        """Write a line: one JSON object with `time` (ISO 8601, UTC), `level`, `place`, `node` and `what`.

        A note that cannot be written, for example to a full disk, is dropped: its writer must not fail.
        """
        line = _Line(iso(self._clock.now()), level, self._place, self._node, self._clean(what))
        with suppress(OSError):
            print(msgspec.json.encode(line).decode(), file=self._out(), flush=True)

    def _clean(self, what: str) -> str:
        """Return the text on one line, cut to its limit, and without secrets."""
        for secret in self._secrets:
            what = what.replace(secret, GONE)
        for pattern in _SECRETS:
            what = pattern.sub(GONE, what)
        what = " ".join(what.split())
        return what if len(what) <= WHAT_CHARS_MAX else what[: WHAT_CHARS_MAX - 1] + "…"
