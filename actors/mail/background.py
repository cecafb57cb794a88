"""Make the messages in which a background agent is told what was said to another agent and by it. Pure.

Each is an `agent_message_sent` of the watched agent, delivered as every message to another agent, and its `to_seq` is
the background agent's cursor: told and moved in one commit, so nothing is told twice or left out, wherever a host dies.
Used by the postbox, with rows of the projection `background`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from everlog.actors.mail.letters import names_in
from everlog.actors.mail.mail_functions import TEXT_CHARS_MAX
from everlog.actors.mail.names import spoken
from everlog.events import AgentMessageSent, MessageSent, Record, UserMessage, event_of, is_erased
from everlog.events.kinds import INPUTS

LINE_CHARS_MAX = 10_000
"""Most characters of one record that are told."""
PARTS_MAX = 10
"""Most messages that are sent at one time."""
_HEAD_CHARS = 200
"""Characters that are kept free for the words before the lines."""

ToldLine = tuple[int, str]
"""Seq of a record, and how it is told."""


def to_tell(agent_id: str, row: Mapping[str, Any], records: Iterable[Record]) -> list[AgentMessageSent]:
    """Return the messages for a row of `background`, oldest first. `records`: those after its cursor, in order.

    What is longer than PARTS_MAX messages is left out at the beginning, and a line says so.
    """
    own = spoken(agent_id)
    lines = list(_lines(own, records, row["upto"]))
    parts = list(_parts(lines))
    left_out, parts = parts[:-PARTS_MAX], parts[-PARTS_MAX:]
    hops = [*names_in(row["hops"]), own]
    sent = []
    for number, part in enumerate(parts):
        head = f"What was said to {own} and by it, by the numbers of its records:"
        if left_out and not number:
            first, last = left_out[0][0][0], left_out[-1][-1][0]
            head = f"Left out, as too long: records {first} to {last}, which `everlog events` shows. {head}"
        text = "\n".join([head, *(line for _, line in part)])
        sent.append(
            AgentMessageSent(text=text, to=row["other"], call_id="", hops=hops, from_seq=part[0][0], to_seq=part[-1][0])
        )
    return sent


def _lines(own: str, records: Iterable[Record], upto: int) -> Iterator[ToldLine]:
    """Yield each record that says something, up to a seq (inclusive), but for what a rerun did."""
    repeated: set[int] = set()
    for record in records:
        if record.seq > upto:
            return
        if record.turn and not record.step and record.cause is not None and record.type in INPUTS:
            repeated.add(record.turn)
        if record.type not in (UserMessage.kind, MessageSent.kind) or record.turn in repeated:
            continue
        if is_erased(record.payload) or not record.text:
            continue
        event = event_of(record)
        if isinstance(event, UserMessage):
            yield record.seq, _line(record.seq, event.name or spoken(event.agent) or "user", record.text)
        elif isinstance(event, MessageSent):
            yield record.seq, _line(record.seq, event.name or own, record.text)


def _line(seq: int, name: str, text: str) -> str:
    more = len(text) - LINE_CHARS_MAX
    if more > 0:
        text = f"{text[:LINE_CHARS_MAX]}... ({more:,} more characters, which `everlog events` shows)"
    return f"[{seq}] {name}: {text}"


def _parts(lines: Sequence[ToldLine]) -> Iterator[list[ToldLine]]:
    """Yield the lines of one message at a time."""
    part: list[ToldLine] = []
    chars = 0
    for line in lines:
        if part and chars + len(line[1]) + 1 > TEXT_CHARS_MAX - _HEAD_CHARS:
            yield part
            part, chars = [], 0
        part.append(line)
        chars += len(line[1]) + 1
    if part:
        yield part
