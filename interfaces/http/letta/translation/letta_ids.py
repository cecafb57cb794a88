"""Make and read the ids of the Letta surface. Pure.

Letta's ids are a word and a UUID of version 4. Here an id says by itself which thing it means, so that every server
finds the thing, and no table of ids is kept:

- An agent has the digest of its stream, see `agent_digests`. A folder and a shared block have the digest of theirs.
- Something of an agent has the first half of the agent's digest, then a place in 62 bits. Its last 14 bits are 0.
  A run has the seq of its input, and a message the seq of its record. A step, and the messages of one reply of the
  model, have the numbers of turn and step: these are known before the reply is in the log, so that words that are
  streamed have the id that they will have for ever.
- A memory block of one agent has a hash of its label as its place; a function has a hash of its name.
- A text of the archive has the id of its memory, and a conversation a place that was drawn.
"""

from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from everlog.events import Record
from everlog.interfaces.http.runs.agent_digests import SHORT_DIGITS, digest_of

_LOW_BITS = 14
"""Bits at the end of a place that are 0: the last 7 of them count the parts of a message."""
_STEP = 1 << 61
"""Bit of a place that is a step."""
_STEP_BITS = 16
_PLACE_BITS = 62
_VARIANT = 0b10 << _PLACE_BITS


class LettaPlace(NamedTuple):
    """Agent and place that the id of something of an agent says."""

    digest: str
    """First SHORT_DIGITS digits of the agent's digest."""
    place: int

    @property
    def seq(self) -> int:
        """Seq of the record that is meant; 0: a step is meant."""
        return 0 if self.place & _STEP else self.place >> _LOW_BITS

    @property
    def step(self) -> tuple[int, int]:
        """Numbers of turn and step; (0, 0): a record is meant."""
        if not self.place & _STEP:
            return 0, 0
        numbers = (self.place ^ _STEP) >> _LOW_BITS
        return numbers >> _STEP_BITS, numbers & ((1 << _STEP_BITS) - 1)


class LettaIds:
    """Ids of one agent and of what belongs to it."""

    def __init__(self, stream: str) -> None:
        self._digest = digest_of(stream)

    @property
    def agent(self) -> str:
        """Id of the agent."""
        return uuid_id("agent", self._digest)

    def run(self, seq: int) -> str:
        """Return the id of the run whose input has this seq."""
        return self._placed("run", seq << _LOW_BITS)

    def step(self, turn: int, step: int, kind: str = "step") -> str:
        """Return the id of a step; `kind` is `message` for the messages of its reply."""
        return self._placed(kind, _STEP | (turn << _STEP_BITS | step) << _LOW_BITS)

    def message(self, record: Record) -> str:
        """Return the id of the messages of a record."""
        return self.message_of(record.type, record.seq, record.turn, record.step)

    def message_of(self, kind: str, seq: int, turn: int, step: int) -> str:
        """Return the id of the messages of a record of a kind at a place."""
        if kind in {"model_reply", "message_sent"} and step:
            return self.step(turn, step, "message")
        return self.message_at(seq)

    def message_at(self, seq: int) -> str:
        """Return the id of the messages of a record that is no reply."""
        return self._placed("message", seq << _LOW_BITS)

    def block(self, label: str) -> str:
        """Return the id of a memory block that is the agent's own."""
        return self._placed("block", int.from_bytes(sha256(label.encode()).digest()[:8]) >> 2)

    def conversation(self, place: int) -> str:
        """Return the id of a conversation. `place`: from 0 to 2**62, exclusive."""
        return self._placed("conv", place)

    def _placed(self, kind: str, place: int) -> str:
        return uuid_id(kind, f"{self._digest[:SHORT_DIGITS]}{_VARIANT | place:016x}")


def otid_of(message_id: str, part: int) -> str:
    """Return the id of one part of the messages that share an id. `part`: from 0 to 127."""
    return f"{message_id.removeprefix('message-')[:-2]}{part:02x}"


def uuid_id(kind: str, digits: str) -> str:
    """Return an id of a word and 32 hexadecimal digits."""
    return f"{kind}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def tool_id(name: str) -> str:
    """Return the id of a function, which is the same for all agents that have it."""
    return f"tool-{UUID(bytes=sha256(name.encode()).digest()[:16], version=4)}"


def digits_in(kind: str, given: str) -> str:
    """Return the 32 digits of an id; empty: it is no id of this kind."""
    word, _, text = given.partition("-")
    try:
        digits = UUID(text).hex
    except ValueError:
        return ""
    return digits if word == kind and uuid_id(kind, digits) == given else ""


def place_in(kind: str, given: str) -> LettaPlace | None:
    """Return what the id of something of an agent says; None: it is no id of this kind."""
    digits = digits_in(kind, given)
    second = int(digits[SHORT_DIGITS:] or "0", 16)
    if second >> _PLACE_BITS != 0b10:
        return None
    return LettaPlace(digits[:SHORT_DIGITS], second ^ _VARIANT)
