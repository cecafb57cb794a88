"""Find out how an answer or a summary came about: its turn, its input, and where its words were in sight before.

Equal words are a trace and no proof. Used by `everlog blame` and by the console.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.prompt.context import ContextMessage
from everlog.events import (
    INPUTS,
    BadInput,
    FunctionResult,
    MessageSent,
    ModelReply,
    Record,
    Summary,
    SummaryExpanded,
    UserMessage,
    event_of,
    is_erased,
)
from everlog.interfaces.replay_console.word_blame import blamed, values_of
from everlog.interfaces.replay_console.word_sources import SeenKind, SeenText, SharedWords, WordRun, trace_words
from everlog.interfaces.show.show_commands import context_at

INPUT_RECORDS_MAX = 2000
"""Records before an event among which the input of its turn is looked for."""
TEXT_CHARS = 20_000
"""Characters of the text, and of each text in sight, that are compared."""
COVERED_MAX = 2000
"""Newest records of those that a summary covers whose words are compared."""
TRACED = (MessageSent.kind, ModelReply.kind, Summary.kind)
"""Types of records whose words are traced."""


class WordOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Words of a record, with what led to them."""

    record: Record
    model: str
    """Empty: no model of this log wrote it."""
    asked_at: int
    """Seq of the last record that the model could see; 0: no model call of this log wrote it."""
    input: Record | None
    near: Sequence[Record]
    """Records of the turn from its input on, up to the record."""
    runs: Sequence[WordRun]
    more: int
    """Characters of the text that are not compared."""
    shared: Mapping[int, SharedWords]
    seen: Mapping[str, int]
    """Number of texts in sight, by kind."""


def input_of(records: Iterable[Record]) -> Record | None:
    """Return the input of the turn of the last of some records, which are next to each other; None if it has none."""
    found = list(records)
    turn = found[-1].turn
    own = (record for record in found if record.turn == turn and record.type in INPUTS)
    return next(own, None) if turn else None


def origin_of(view: AgentView, seq: int) -> WordOrigin | None:
    """Return how the words of a record came about; None if it is no answer and no summary, or was erased. The seq is
    from 1 to that of the view.
    """
    near = list(view.reader.read(view.agent_id, max(1, seq - INPUT_RECORDS_MAX), seq))
    record = near[-1]
    if record.type not in TRACED or is_erased(record.payload):
        return None
    said = input_of(near)
    event = event_of(record)
    reply: Record | None = record
    if isinstance(event, Summary):
        model = event.model
        seen = list(_covered(view, event, record.seq))
    else:
        turn = (one for one in reversed(near) if one.turn == record.turn and one.type == ModelReply.kind)
        imported = isinstance(event, MessageSent) and event.imported
        found = None if imported else next(turn, None)
        answer = event_of(found) if found is not None else None
        reply, model = found, answer.model if isinstance(answer, ModelReply) else ""
        seen = list(_in_sight(view, found)) if found is not None else []
    text = record.text or ""
    runs, shared = trace_words(text[:TEXT_CHARS], seen)
    counts: dict[str, int] = {}
    for one in seen:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    return WordOrigin(
        record=record, model=model, asked_at=reply.seq - 1 if reply is not None else 0, input=said,
        near=[one for one in near if said and one.seq >= said.seq], runs=runs, more=max(0, len(text) - TEXT_CHARS),
        shared=shared, seen=counts,
    )  # fmt: skip


def _in_sight(view: AgentView, reply: Record) -> Iterator[SeenText]:
    """Return what the model had in sight when it wrote a reply, oldest first: memory by the edit of its words, the
    summary, and the messages. Without a configuration there is nothing to return.
    """
    before = view.at(reply.seq - 1)
    try:
        context = before.context(turn=reply.turn)
    except BadInput:  # its configuration was erased
        return iter(())
    history = before.rows("memory_history")
    texts: list[SeenText] = []
    for block in context.blocks:
        values = values_of(history, block.label)
        at = {one.seq: one.recorded_at for one in values}
        for part in blamed((one.seq, one.value) for one in values):
            texts.append(SeenText(part.seq, "memory", block.label, at[part.seq], part.text[:TEXT_CHARS]))
    messages = [*([context.summary] if context.summary else []), *context.messages]
    texts.extend(_message(one, view.agent_id) for one in messages)
    return iter(sorted((one for one in texts if one.text), key=lambda one: one.seq))


def _covered(view: AgentView, summary: Summary, seq: int) -> Iterator[SeenText]:
    """Yield what a summary was made of, oldest first: the summary before it, and the messages that it covers."""
    before = context_at(view.at(seq - 1))
    if before is not None and before.summary is not None:
        yield _message(before.summary, view.agent_id)
    first = max(summary.covers_from, summary.covers_to - COVERED_MAX + 1)
    for record in view.reader.read(view.agent_id, first, summary.covers_to):
        if record.type in _KINDS and record.text and not is_erased(record.payload):
            at = record.recorded_at if record.said_at is None else record.said_at
            yield _message(ContextMessage(record.seq, record.turn, record.step, at, event_of(record)), view.agent_id)


_KINDS: Mapping[str, SeenKind] = {
    UserMessage.kind: "user", MessageSent.kind: "agent", ModelReply.kind: "agent", FunctionResult.kind: "function",
    Summary.kind: "summary", SummaryExpanded.kind: "summary",
}  # fmt: skip


def _message(message: ContextMessage, agent: str) -> SeenText:
    event = message.event
    who = getattr(event, "name", "")
    texts: Iterable[str] = [event.text or ""]
    if isinstance(event, ModelReply):
        who, texts = agent, [*texts, *(_arguments(call.arguments) for call in event.calls)]
    text = "\n".join(one for one in texts if one)
    if message.shown_chars is not None:
        text = text[: message.shown_chars]
    return SeenText(message.seq, _KINDS.get(event.kind, "system"), who, message.at, text[:TEXT_CHARS])


def _arguments(text: str) -> str:
    """Return the words of a call: its arguments that are text; or the arguments as they are, if they are no object."""
    try:
        given = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return text
    return "\n".join(value for value in given.values() if isinstance(value, str))
