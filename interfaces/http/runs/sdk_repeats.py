"""Recognize a request that a client's library sent again by itself, without any id. Pure.

The libraries that Stainless makes, those of Letta and OpenAI among them, send a POST again after a timeout or a lost
connection, and say with `x-stainless-retry-count` that they do. They say with `x-stainless-read-timeout` how long they
wait for an answer. The rule:

1. A request whose retry count is 0, or not given, is new.
2. A request with a retry count above 0 is the same as a message with the same words, name, note and conversation that
   was written within the time in which the first try can have been sent. That time is the retry count, times the read
   timeout (60 seconds, if it is not given) and 10 seconds for the pause between two tries. Of several such messages it
   is the newest.
3. Without such a message the first try did not arrive, and the request is new.

A user who says the same words twice within that time, and whose second message was cut off before it arrived, is
understood as having said them once. A client that cannot accept this sends an id with each message.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

import msgspec

from everlog.events import INPUTS, Event, Record, event_of, is_erased
from everlog.events.times import MICROSECONDS

TIMEOUT_S = 60.0
"""Read timeout of a library that does not say its own."""
TIMEOUT_S_MAX = 3600.0
PAUSE_S = 10.0
"""Longest pause between two tries, and some time on the way."""
TRIES_MAX = 10


class SdkRepeat(NamedTuple):
    """Claim of a request that it was sent before."""

    tries: int
    """Number of tries before this one, from 1."""
    timeout_s: float

    @property
    def span_us(self) -> int:
        """Time before now in which the first try can have been sent, microseconds."""
        return int(self.tries * (self.timeout_s + PAUSE_S) * MICROSECONDS)


def repeat_of(headers: Mapping[str, str]) -> SdkRepeat | None:
    """Return the claim in the headers of a request; None: it is the first try, or says nothing that can be read."""
    given = headers.get("x-stainless-retry-count", "")
    if not given.isdecimal() or len(given) > 4 or not int(given):
        return None
    try:
        timeout_s = float(headers.get("x-stainless-read-timeout", ""))
    except ValueError:
        timeout_s = TIMEOUT_S
    if not 0 < timeout_s <= TIMEOUT_S_MAX:
        timeout_s = TIMEOUT_S_MAX if timeout_s > TIMEOUT_S_MAX else TIMEOUT_S
    return SdkRepeat(min(int(given), TRIES_MAX), timeout_s)


def repeated_input(records: Iterable[Record], said: Event, repeat: SdkRepeat, now: int) -> Record | None:
    """Return the input that a repeated request has sent before; None: its first try did not arrive.

    `records`: newest records of the agent, in any order. `now`: microseconds UTC.
    """
    since = now - repeat.span_us
    found = [
        record
        for record in records
        if record.type in INPUTS and record.step == 0 and record.recorded_at >= since and is_same(record, said)
    ]
    return max(found, key=lambda record: record.seq, default=None)


def is_same(record: Record, said: Event) -> bool:
    """Return True if a record is an input that was sent with the same words, with any key."""
    if record.type != said.kind or record.text != (said.text or None) or is_erased(record.payload):
        return False
    written = event_of(record)
    return isinstance(written, Event) and msgspec.structs.replace(written, by=said.by) == said


def digest_of_input(stream: str, said: Event) -> str:
    """Return a digest that is the same for requests that say the same to an agent, for those that are in flight."""
    return sha256(msgspec.json.encode((stream, said.kind, said))).hexdigest()
