"""Old shapes to new ones: pure functions, one for each change, chained until the shape is today's.

To change a released shape: raise the class's `version`, write the step from the version before it here, and add the
old shape to the golden logs. Never edit or delete a step: some log still needs it. SQL sees upcast records only.
"""

from collections.abc import Callable
from typing import Any

MICROSECONDS_PER_MINUTE = 60_000_000

Payload = dict[str, Any]
Step = Callable[[Payload, int], Payload]
"""(payload of version v, the record's recorded_at) -> payload of version v + 1"""


def _heartbeats_paused_1(payload: Payload, recorded_at: int) -> Payload:
    """Version 1 had only `minutes`, so every reader had to add them to the record's time; version 2 says `until`."""
    return {**payload, "until": recorded_at + payload["minutes"] * MICROSECONDS_PER_MINUTE}


def as_it_is(payload: Payload, _recorded_at: int) -> Payload:
    """The next version only added fields that have a default."""
    return payload


STEPS: dict[tuple[str, int], Step] = {
    ("heartbeats_paused", 1): _heartbeats_paused_1,
    ("model_reply", 1): as_it_is,
    ("model_failed", 1): as_it_is,
    ("reply_rejected", 1): as_it_is,
    ("summary", 1): as_it_is,
    ("model_reply", 2): as_it_is,
    ("model_failed", 2): as_it_is,
    ("reply_rejected", 2): as_it_is,
    ("summary", 2): as_it_is,
    ("agent_configured", 1): as_it_is,
    ("memory_edited", 1): as_it_is,
}
"""(kind, version it comes from) -> the step to the next version"""


def reads_as_today(kind: str, version: int, target: int) -> bool:
    """Whether a payload of `version` has today's shape already, because each step since then leaves it as it is."""
    return all(STEPS[kind, step] is as_it_is for step in range(version, target))


def upcast(kind: str, version: int, target: int, payload: Payload, recorded_at: int) -> Payload:
    """Bring `payload` from `version` to `target` (inclusive). A missing step is our bug: KeyError."""
    for step in range(version, target):
        payload = STEPS[kind, step](payload, recorded_at)
    return payload
