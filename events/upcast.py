"""Upcast old shapes of events: pure functions, one for each change, chained until the shape is the current one.

To change a released shape:

    1. change the class, and raise its `version`;
    2. write the step from the version before it here, and name it in `STEPS`;
    3. run `python -m everlog.events.schema`, and record a golden log with the new shape.

Existing golden logs keep the old shape, and show that it can still be read. If the new version only has more fields,
each with a default, the step returns the payload unchanged. Never edit or delete a step: some log still needs it. SQL
sees upcast records only.

`heartbeats_paused` is the example: `tests/golden/make.py` leaves a record of its version 1.

Used by `codec`.
"""

from collections.abc import Callable
from typing import Any

MICROSECONDS_PER_MINUTE = 60_000_000

Payload = dict[str, Any]
Upcaster = Callable[[Payload, int], Payload]
"""(payload of version v, the record's recorded_at) -> payload of version v + 1"""


def _heartbeats_paused_1(payload: Payload, recorded_at: int) -> Payload:
    """Add `until`: version 1 had only `minutes`, so that every reader had to add these to the record's time."""
    return {**payload, "until": recorded_at + payload["minutes"] * MICROSECONDS_PER_MINUTE}


def _timer_set_1(payload: Payload, _recorded_at: int) -> Payload:
    """Add nothing: `cron` and `zone` are empty in a timer of version 1."""
    return payload


STEPS: dict[tuple[str, int], Upcaster] = {
    ("heartbeats_paused", 1): _heartbeats_paused_1,
    ("timer_set", 1): _timer_set_1,
}
"""(kind, version it comes from) -> the step to the next version"""


def upcast(kind: str, version: int, target: int, payload: Payload, recorded_at: int) -> Payload:
    """Bring `payload` from `version` to `target` (inclusive). A missing step is a bug of everlog: KeyError."""
    for step in range(version, target):
        payload = STEPS[kind, step](payload, recorded_at)
    return payload
