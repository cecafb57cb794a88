"""Choose what an undo excludes (turns, messages, replies), and how an open turn is ended. Pure.

Nothing is deleted: the events change what the context shows from then on. Used by `Agent` (undo, retry, rethink),
`event_writer.py` (cancel) and `fork_agent.py`.
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

_ACTING = (ModelReply.kind, FunctionStarted.kind)
"""Kinds of records of a step. A call that a person approved is a step without a reply."""

INTERRUPTED = "The call was interrupted: its effect may or may not have happened. Find out before you call it again."
CANCELLED = "The turn was taken back before it had ended."


class PositionedEvent(msgspec.Struct, frozen=True):
    """An event of another turn and step than the rest of its commit."""

    event: Event
    turn: int
    step: int


def in_view(context: Context) -> list[ContextMessage]:
    """Return the messages of turns that the context shows: no boot messages, nothing imported, nothing erased."""
    return [
        m for m in context.messages if m.turn and not is_imported(m.event) and not isinstance(m.event, UnknownEvent)
    ]


def newest_turns(context: Context, count: int) -> list[int]:
    """Return the newest `count` turns (1 or more) in the context, rising; fewer if the context shows fewer.

    Raises BadInput if the context shows no turn.
    """
    if count < 1:
        raise BadInput(f"{count} turns cannot be undone; give 1 or more.")
    turns = sorted({message.turn for message in in_view(context)})
    if not turns:
        raise BadInput(
            f"There is nothing to undo: the context of {context.agent_id!r} shows no turn. Turns that a summary "
            "replaced are excluded already; expanding the summary shows them again."
        )
    return turns[-count:]


def last_said(context: Context) -> tuple[UserMessage, list[int]]:
    """Return the last user message and the turns from its turn on. Raise BadInput if the context shows none."""
    shown = in_view(context)
    for message in reversed(shown):
        if isinstance(message.event, UserMessage):
            return message.event, sorted({m.turn for m in shown if m.turn >= message.turn})
    raise BadInput(
        f"There is nothing to retry: the context of {context.agent_id!r} shows no message of a user. A message that "
        "a summary replaced can be retried after the summary is expanded."
    )


def last_reply(context: Context) -> int:
    """Return the seq of the newest reply in a turn that the context shows. Raise BadInput if there is none."""
    seqs = [message.seq for message in in_view(context) if isinstance(message.event, ModelReply)]
    if not seqs:
        raise BadInput(
            f"There is no thought to replace: the context of {context.agent_id!r} shows no reply of the model."
        )
    return seqs[-1]


def endings_of(
    records: Sequence[Mapping[str, Any]], turns: Sequence[int], how: Event | None = None
) -> list[PositionedEvent]:
    """Return the events that end the open ones among `turns`, from the rows of `turn_records`.

    A call that had started gets its result. `how`: the event that ends a turn; None: a person cancelled it.
    """
    how = how or TurnCancelled(text=CANCELLED)
    left: list[PositionedEvent] = []
    for turn in turns:
        mine = [row for row in records if row["turn"] == turn]
        if mine:
            step = max((row["step"] for row in mine if row["type"] in _ACTING), default=0)
            calls = unanswered([row for row in mine if row["step"] == step])
            left += [PositionedEvent(interrupted_result(intent), turn, step) for intent in calls]
            left.append(PositionedEvent(how, turn, step if calls else step + 1))
    return left


def unanswered(records: Sequence[Mapping[str, Any]]) -> list[FunctionStarted]:
    """Return the calls of one step that started outside and have no result."""
    said = [(row["type"], row["payload"]) for row in records if not is_erased(row["payload"])]
    results = {msgspec.json.decode(p)["call_id"] for kind, p in said if kind == FunctionResult.kind}
    begun = [msgspec.json.decode(p, type=FunctionStarted) for kind, p in said if kind == FunctionStarted.kind]
    return [intent for intent in begun if intent.call_id not in results]


def interrupted_result(intent: FunctionStarted) -> FunctionResult:
    """Return the result of a call whose outcome is unknown."""
    return FunctionResult(
        text=INTERRUPTED, call_id=intent.call_id, name=intent.name, ok=False, unknown=True, approval=intent.approval
    )


def cancelled(records: Iterable[Record], event_id: str | None) -> list[int]:
    """Return the turns that the command of that id cancelled, from its commit in `records`; empty without one."""
    found = commit_of(records, event_id) if event_id else []
    return [record.turn for record in found if record.type == TurnCancelled.kind]


def commit_of(records: Iterable[Record], event_id: str) -> Sequence[Record]:
    """Return the commit among `records`, in log order, whose first event has that id; empty if there is none."""
    for _, commit in groupby(records, key=attrgetter("commit")):
        first, *others = commit
        if first.event_id == event_id:
            return [first, *others]
    return []
