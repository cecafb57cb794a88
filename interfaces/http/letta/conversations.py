"""Conversations for clients of Letta: the messages of one agent that name one.

The agent is one: its conversations share its memory and its context, and it sees them all. A conversation is in the log
from its first message on; before that it is only its id, which says of which agent it is. A fork is another agent.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.events.times import moment
from everlog.interfaces.http.core.event_streams import EventStreamResponse
from everlog.interfaces.http.core.fleet_queries import over_fleet
from everlog.interfaces.http.core.idempotency import ids_of_key
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.letta.letta_calls import (
    LettaPageQuery,
    agent_stream,
    ordered,
    page_of,
    placed_in,
    refused,
    viewed,
)
from everlog.interfaces.http.letta.message_pages import seq_of_message
from everlog.interfaces.http.letta.messages import (
    LettaCancelBody,
    LettaCompaction,
    LettaMessageQuery,
    cancelled,
    compacted,
    messages_in,
)
from everlog.interfaces.http.letta.runs import LettaResumeBody, resumed
from everlog.interfaces.http.letta.sending import answered
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, place_in
from everlog.interfaces.http.letta.translation.letta_messages import LettaMessage
from everlog.interfaces.http.letta.translation.message_input import LettaMessageBody, input_of
from everlog.interfaces.http.runs.agent_digests import remember_stream

DEFAULT = "default"
_PLACES = 1 << 62
_CONVERSATIONS = """
SELECT coalesce(TRY(payload->>'$.conversation'), '') AS conversation, epoch_us(min(recorded_at)) AS began,
    epoch_us(max(recorded_at)) AS last
FROM records WHERE type = 'user_message' AND turn > 0 GROUP BY 1 HAVING conversation <> ''"""
FORKED = "Another agent, which continues from here with a memory of its own: everlog's forks do not share memory."


class LettaConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation."""

    id: str
    agent_id: str
    summary: str | None = None
    archived: bool = False
    created_at: datetime | None = None
    last_message_at: datetime | None = None
    in_context_message_ids: Sequence[str] = ()


class LettaConversationBody(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation to begin."""

    summary: str | None = None
    description: str | None = None
    model: str | None = None
    model_settings: dict[str, Any] | None = None
    context_window_limit: int | None = None


class LettaAgentOfConversation(msgspec.Struct, frozen=True, kw_only=True):
    """Agent of a conversation."""

    agent_id: str | None = None
    message_id: str | None = None
    """Message up to which a fork knows what was said."""


class LettaConversationQuery(LettaPageQuery, frozen=True, kw_only=True):
    """Selection of conversations."""

    agent_id: str | None = None
    archive_status: str = "unarchived"
    summary_search: str | None = None


async def create_conversation(call: HttpCall) -> LettaConversation:
    """Begin a conversation with an agent."""
    query, body = call.query, call.body
    if query.agent_id is None:
        raise refused("`agent_id` is missing.")
    for field in LettaConversationBody.__struct_fields__:
        if getattr(body, field):
            raise refused(
                f"`{field}`: a conversation has the model and the settings of its agent, and no words of its own."
            )
    stream = await agent_stream(call, query.agent_id)
    ids = LettaIds(stream)
    place = int(call.service.ports.ids.new(call.service.ports.clock.now()).replace("-", ""), 16) % _PLACES
    return LettaConversation(id=ids.conversation(place), agent_id=ids.agent)


async def list_conversations(call: HttpCall) -> Sequence[LettaConversation]:
    """List the conversations with an agent that have messages, the newest first."""
    query: LettaConversationQuery = call.query
    if query.agent_id is None:
        raise refused("`agent_id` is missing.")
    if query.archive_status == "archived" or query.summary_search:
        return []
    stream = await agent_stream(call, query.agent_id)
    rows = ordered(await _rows(call, stream), query, lambda row: (row["began"], row["conversation"]))
    return [_shape(stream, row) for row in page_of(rows, query, lambda row: row["conversation"])]


async def show_conversation(call: HttpCall) -> LettaConversation:
    """Return a conversation."""
    stream, conversation = await _conversation(call, call.query.agent_id)
    if not conversation:
        return LettaConversation(id=DEFAULT, agent_id=LettaIds(stream).agent)
    rows = await _rows(call, stream)
    row = next((row for row in rows if row["conversation"] == conversation), None)
    return _shape(stream, row or {"conversation": conversation, "began": None, "last": None})


async def fork_conversation(call: HttpCall) -> LettaConversation:
    """Fork the agent of a conversation, at a message or now. The answer is the own history of the new agent."""
    query: LettaAgentOfConversation = call.query
    stream, _ = await _conversation(call, query.agent_id)
    system, at = call.service.system, None
    if query.message_id:
        wanted = query.message_id

        def sought() -> int:
            return seq_of_message(system.store.reader(stream), stream, wanted)

        at = await call.service.ports.aside(sought)
    taken = set(await system.agents())
    name = next(free for number in range(2, 10_000) if (free := f"{stream}-fork-{number}") not in taken)
    made = await system.fork(stream, name, at=at)
    remember_stream(call.service, made.agent_id)
    return LettaConversation(id=DEFAULT, agent_id=LettaIds(made.agent_id).agent, summary=FORKED)


async def send_in_conversation(call: HttpCall) -> Any:
    """Send messages in a conversation. The answer is streamed, unless `streaming` is false."""
    body: LettaMessageBody = call.body
    given = call.params["conversation_id"]
    sent = input_of(body, given if place_in("conv", given) else "")

    async def found() -> str:
        return (await _conversation(call, body.agent_id))[0]

    return await answered(call, found, body, sent, streamed=body.streaming is not False)


async def list_conversation_messages(call: HttpCall) -> Sequence[LettaMessage]:
    """List the messages of a conversation, the newest first."""
    query: LettaMessageQuery = call.query
    stream, conversation = await _conversation(call, query.agent_id)
    return await messages_in(call, stream, query, conversation or DEFAULT)


async def stream_conversation(call: HttpCall) -> EventStreamResponse:
    """Stream a run of a conversation again: the one of a run id, of a message's `otid`, or the one at work."""
    body: LettaResumeBody = call.body
    stream, _ = await _conversation(call, body.agent_id)
    if body.run_id:
        return await resumed(call, body.run_id, body)
    ids = LettaIds(stream)
    if body.otid:
        now = call.service.ports.clock.now()
        for event_id in filter(None, ids_of_key(body.otid, stream, now)):
            found = await call.service.run_of(stream, event_id)
            if found is not None:
                return await resumed(call, ids.run(found.input.seq), body)
        raise not_found(f"message of the otid {body.otid[:80]!r}")
    opened = await viewed(call, stream, lambda view: [row["opened_seq"] for row in view.rows("open_turns")])
    if not opened:
        raise not_found("run at work in this conversation")
    return await resumed(call, ids.run(min(opened)), body)


async def cancel_conversation(call: HttpCall) -> Mapping[str, str]:
    """Cancel what the agent of a conversation does."""
    stream, _ = await _conversation(call, call.query.agent_id)
    body: LettaCancelBody = call.body
    return await cancelled(call, stream, body.run_ids)


async def compact_conversation(call: HttpCall) -> LettaCompaction:
    """Summarize the oldest part of the context of a conversation's agent."""
    stream, _ = await _conversation(call, call.query.agent_id)
    return await compacted(call, stream)


async def _conversation(call: HttpCall, agent_id: str | None) -> tuple[str, str]:
    """Return the stream of the agent of a conversation, and the conversation; empty: the agent's own history."""
    given = call.params["conversation_id"]
    if given.startswith("agent-"):  # as older clients say it
        return await agent_stream(call, given), ""
    if given != DEFAULT:
        return (await placed_in(call, "conv", given))[0], given
    if agent_id is None:
        raise refused("`agent_id` is missing: the conversation `default` is the one of an agent.")
    return await agent_stream(call, agent_id), ""


async def _rows(call: HttpCall, stream: str) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = await over_fleet(
        call, lambda views, _position, _run: views.table(_CONVERSATIONS).to_pylist(), agent=call.shown(stream)
    )
    return rows


def _shape(stream: str, row: Mapping[str, Any]) -> LettaConversation:
    began, last = row["began"], row["last"]
    return LettaConversation(
        id=row["conversation"], agent_id=LettaIds(stream).agent,
        created_at=None if began is None else moment(began), last_message_at=None if last is None else moment(last),
    )  # fmt: skip
