"""Turn the idempotency key of a request into the id of the command that it sends. Pure.

A key that is a UUIDv7 is the id. Any other key gives an id that is made of the key, the agent and a period of twelve
hours, so that every server makes the same id without remembering anything. Each key has periods of its own. A request
that was sent just before the end of a period is looked for under the id of the period before, for an hour: a repeat
within an hour is always recognized.
"""

import hashlib
from typing import NamedTuple

from everlog.events import RANDOM_BITS, BadInput, time_of, uuid7
from everlog.events.times import MICROSECONDS

PERIOD_US = 12 * 3600 * MICROSECONDS
"""Length of a period, microseconds: less than a log remembers ids."""
REPEATED_US = 3600 * MICROSECONDS
"""Time after the beginning of a period in which the one before counts too, microseconds."""
KEY_CHARS_MAX = 255


class CommandIds(NamedTuple):
    """Ids that a request may have."""

    id: str
    earlier: str = ""
    """Id that an earlier try of the request may have; empty: there can be none."""


def ids_of_key(key: str, stream: str, now: int) -> CommandIds:
    """Return the ids for an idempotency key and the stream of an agent. `now`: microseconds UTC.

    Raises BadInput for a key that is empty or too long.
    """
    if not 1 <= len(key) <= KEY_CHARS_MAX:
        raise BadInput(f"An Idempotency-Key has 1 to {KEY_CHARS_MAX} characters, not {len(key)}. Nothing was sent.")
    if len(key) == 36 and time_of(key.lower()) is not None:
        return CommandIds(key.lower())
    digest = int.from_bytes(hashlib.sha256(f"{stream}\0{key}".encode("utf-8", "surrogateescape")).digest())
    shift = digest % PERIOD_US
    begun = (now - shift) // PERIOD_US * PERIOD_US + shift
    chance = (digest // PERIOD_US) % 2**RANDOM_BITS
    earlier = uuid7(begun - PERIOD_US, chance) if now - begun < REPEATED_US else ""
    return CommandIds(uuid7(begun, chance), earlier)
