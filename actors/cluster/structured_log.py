"""What hosts, the supervisor and the gateway have to say to whoever runs the cluster: a line of JSON for each note.

Ray keeps what an actor prints to stderr, and any collector reads JSON lines. A note has what happened, where and when.
It never has what people or models said, so whoever writes one names agents, counts and errors, and quotes nobody; what
looks like a secret is taken out all the same.
"""

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Literal

import msgspec

from everlog.actors.ports.effects import Clock
from everlog.events.times import iso

LogLevel = Literal["info", "warning", "error"]

WHAT_CHARS_MAX = 500
"""Longest note; the rest of a longer one is left out."""
SECRET_CHARS_MIN = 8
"""A shorter value of the environment is no secret, but a word that may stand anywhere."""
GONE = "***"

_SECRETS = (
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),  # who:what in an address
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
        """`place`: `supervisor`, `gateway`, or what the host is called. The values of `environment` whose names say
        that they are secret never appear in a note.
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

        One that cannot be written is left out: whoever has something to say goes on, on a full disk too.
        """
        line = _Line(iso(self._clock.now()), level, self._place, self._node, self._clean(what))
        with suppress(OSError):
            print(msgspec.json.encode(line).decode(), file=self._out(), flush=True)

    def _clean(self, what: str) -> str:
        """On one line, not too long, and without secrets."""
        for secret in self._secrets:
            what = what.replace(secret, GONE)
        for pattern in _SECRETS:
            what = pattern.sub(GONE, what)
        what = " ".join(what.split())
        return what if len(what) <= WHAT_CHARS_MAX else what[: WHAT_CHARS_MAX - 1] + "…"
