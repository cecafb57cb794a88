"""Taking back what is in view: which turns, whose words, which reply, and how an open turn is ended. Pure.

Nothing is deleted: the events that come of it change what the context shows from then on.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from everlog.actors.prompt.context import Context, ContextMessage, is_imported
from everlog.events import (
    BadInput,
    Event,
    FunctionResult,
    FunctionStarted,
    ModelReply,
    Record,
    TurnCancelled,
    UnknownEvent,
    UserMessage,
    is_erased,
)

INTERRUPTED = "The call was interrupted: its effect may or may not have happened. Find out before you call it again."
CANCELLED = "The turn was taken back before it had ended."


class PositionedEvent(msgspec.Struct, frozen=True):
    """An event of another turn and step than the rest of its commit."""

    event: Event
    turn: int
    step: int


def in_view(context: Context) -> list[ContextMessage]:
    """What the context shows of turns: not the boot messages, not what was imported, not what was erased."""
    return [
        m for m in context.messages if m.turn and not is_imported(m.event) and not isinstance(m.event, UnknownEvent)
    ]


def newest_turns(context: Context, count: int) -> list[int]:
    """The newest `count` turns that the context shows, rising; fewer if it shows fewer. `count` is 1 or more.

    Raises BadInput where it shows none.
    """
    if count < 1:
        raise BadInput(f"{count} turns cannot be taken back; say 1 or more.")
    turns = sorted({message.turn for message in in_view(context)})
    if not turns:
        raise BadInput(
            f"There is nothing to take back: the context of {context.agent_id!r} shows no turn. What a summary stands "
            "for is hidden already; expanding the summary shows it again."
        )
    return turns[-count:]


def last_said(context: Context) -> tuple[UserMessage, list[int]]:
    """What a user said last, and the turns from that one on. Raises BadInput where the context shows no such words."""
    shown = in_view(context)
    for message in reversed(shown):
        if isinstance(message.event, UserMessage):
            return message.event, sorted({m.turn for m in shown if m.turn >= message.turn})
    raise BadInput(
        f"There is nothing to retry: the context of {context.agent_id!r} shows no message of a user. One that a "
        "summary stands for can be retried after the summary is expanded."
    )


def last_reply(context: Context) -> int:
    """Seq of the newest reply of a turn that the context shows. Raises BadInput where it shows none."""
    seqs = [message.seq for message in in_view(context) if isinstance(message.event, ModelReply)]
    if not seqs:
        raise BadInput(
            f"There is no thought to replace: the context of {context.agent_id!r} shows no reply of the model."
        )
    return seqs[-1]


def endings_of(
    records: Sequence[Mapping[str, Any]], turns: Sequence[int], how: Event | None = None
) -> list[PositionedEvent]:
    """How the open ones among `turns` end, from the rows of `turn_records`; a call that had started gets its result.

    `how` is what ends them; None: a person cancelled them.
    """
    how = how or TurnCancelled(text=CANCELLED)
    left: list[PositionedEvent] = []
    for turn in turns:
        mine = [row for row in records if row["turn"] == turn]
        if mine:
            step = max((row["step"] for row in mine if row["type"] == ModelReply.kind), default=0)
            calls = unanswered([row for row in mine if row["step"] == step])
            left += [PositionedEvent(interrupted_result(intent), turn, step) for intent in calls]
            left.append(PositionedEvent(how, turn, step if calls else step + 1))
    return left


def unanswered(records: Sequence[Mapping[str, Any]]) -> list[FunctionStarted]:
    """The calls of one step that started outside and have no result."""
    said = [(row["type"], row["payload"]) for row in records if not is_erased(row["payload"])]
    results = {msgspec.json.decode(p)["call_id"] for kind, p in said if kind == FunctionResult.kind}
    begun = [msgspec.json.decode(p, type=FunctionStarted) for kind, p in said if kind == FunctionStarted.kind]
    return [intent for intent in begun if intent.call_id not in results]


def interrupted_result(intent: FunctionStarted) -> FunctionResult:
    """The result of a call of which nobody knows how it ended."""
    return FunctionResult(text=INTERRUPTED, call_id=intent.call_id, name=intent.name, ok=False, unknown=True)


def cancelled(records: Iterable[Record], event_id: str | None) -> list[int]:
    """The turns that the command of that id cancelled, by what it left among `records`; none if it left nothing."""
    found = commit_of(records, event_id) if event_id else []
    return [record.turn for record in found if record.type == TurnCancelled.kind]


def commit_of(records: Iterable[Record], event_id: str) -> Sequence[Record]:
    """The commit among `records`, in their order, whose first event has that id; none if there is none."""
    for _, commit in groupby(records, key=attrgetter("commit")):
        first, *others = commit
        if first.event_id == event_id:
            return [first, *others]
    return []
