"""Read, search and cancel what was said, and summarize it, for clients of Letta."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.ports.effects import Filters, Hit
from everlog.events import Record
from everlog.events.times import moment
from everlog.interfaces.http.core.fleet_queries import over_fleet
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.letta.letta_calls import (
    LettaPageQuery,
    agent_ref,
    agent_stream,
    placed_in,
    refused,
    viewed,
)
from everlog.interfaces.http.letta.message_pages import read_messages, seq_of_place
from everlog.interfaces.http.letta.runs import found_run
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds
from everlog.interfaces.http.letta.translation.letta_messages import LettaMessage, messages_of

SEARCH_MAX = 100
_CONVERSATION = """
SELECT turn FROM records WHERE type = 'user_message' AND turn > 0
    AND coalesce(TRY(payload->>'$.conversation'), '') = '{}'"""


class LettaMessageQuery(LettaPageQuery, frozen=True, kw_only=True):
    """Selection of messages."""

    include_return_message_types: tuple[str, ...] = ()
    conversation_id: str | None = None
    group_id: str | None = None
    agent_id: str | None = None
    """Agent of the conversation `default`."""


class LettaMessageSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Search in what was said."""

    query: str
    agent_id: str | None = None
    conversation_id: str | None = None
    start_date: str | None = None
    end_date: str | None = None
    limit: int = 50
    search_mode: str = "hybrid"


class LettaCancelBody(msgspec.Struct, frozen=True, kw_only=True):
    """Runs to cancel; none: the one that is at work."""

    run_ids: list[str] | None = None


class LettaCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a summary."""

    num_messages_before: int
    num_messages_after: int
    summary: str


class LettaFoundMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was found."""

    message_type: str
    message_id: str
    content: str
    created_at: datetime
    agent_id: str


async def list_messages(call: HttpCall) -> Sequence[LettaMessage]:
    """List the messages of an agent, the newest first."""
    query: LettaMessageQuery = call.query
    if query.group_id:
        raise refused("`group_id`: there are no groups of agents.")
    stream = await agent_stream(call)
    if query.conversation_id is not None:
        await check_conversation(call, query.conversation_id, stream)
    return await messages_in(call, stream, query, query.conversation_id)


async def check_conversation(call: HttpCall, conversation: str, stream: str) -> None:
    """Raise the refusal of an id that is of no conversation with an agent. `default` is the agent's own history."""
    if conversation != "default" and (await placed_in(call, "conv", conversation))[0] != stream:
        raise not_found(f"conversation {conversation[:80]!r} with this agent")


async def messages_in(
    call: HttpCall, stream: str, query: LettaMessageQuery, conversation: str | None
) -> Sequence[LettaMessage]:
    """Return a page of the messages of an agent, or of one conversation with it (`default`: those of none)."""
    types, service = query.include_return_message_types, call.service
    turns: Collection[int] | None = None
    if conversation is not None:
        turns = await _turns(call, stream, "" if conversation == "default" else conversation)

    def is_wanted(record: Record, message: LettaMessage) -> bool:
        within = turns is None or record.turn in turns
        return within and (not types or message.__struct_config__.tag in types)

    def born(view: AgentView) -> int:
        return min((row["seq"] for row in view.rows("configurations") if row["living"]), default=1)

    first = await viewed(call, stream, born) if query.order == "asc" and not query.after else 1

    def read() -> Sequence[LettaMessage]:
        return read_messages(service.system.store.reader(stream), stream, query, is_wanted, first)

    page: Sequence[LettaMessage] = await service.ports.aside(read)
    return page


async def _turns(call: HttpCall, stream: str, conversation: str) -> Collection[int]:
    """Return the turns of a conversation, whose id has no quotation marks; empty: those of no conversation."""
    query = _CONVERSATION.format(conversation)
    rows = await over_fleet(
        call, lambda views, _position, _run: views.table(query).to_pylist(), agent=call.shown(stream)
    )
    return {row["turn"] for row in rows}


async def show_message(call: HttpCall) -> Sequence[LettaMessage]:
    """Return the messages of an id."""
    stream, place = await placed_in(call, "message", call.params["message_id"])

    def read() -> Sequence[LettaMessage]:
        reader = call.service.system.store.reader(stream)
        seq = seq_of_place(reader, stream, place)
        record = next(iter(reader.read(stream, seq, seq)), None) if seq else None
        return () if record is None else messages_of(record, LettaIds(stream))

    found: Sequence[LettaMessage] = await call.service.ports.aside(read)
    if not found or found[0].id != call.params["message_id"]:
        raise not_found(f"message {call.params['message_id'][:80]!r}")
    return found


async def search_messages(call: HttpCall) -> Sequence[LettaFoundMessage]:
    """Search what users and agents said, best match first."""
    body: LettaMessageSearch = call.body
    if body.conversation_id or body.start_date or body.end_date:
        raise refused("A search of messages has no `conversation_id`, `start_date` or `end_date`.")
    if not 1 <= body.limit <= SEARCH_MAX:
        raise refused(f"A search has 1 to {SEARCH_MAX} results, not {body.limit}.")
    system, filters = call.service.system, Filters(places=("messages",))
    if body.agent_id:
        stream = await agent_stream(call, body.agent_id)
        async with await system.view(stream) as view:
            hits = (await view.search(body.query, 0, body.limit, filters)).results
    else:
        stream = ""
        living = [agent for agent in await system.agents() if call.names.owns(agent)]
        hits = (await system.search(body.query, 0, body.limit, filters, agents=living)).results
    shapes: Sequence[LettaFoundMessage] = await call.service.ports.aside(
        lambda: [_found_message(call, hit.agent or stream, hit) for hit in hits]
    )
    return shapes


def _found_message(call: HttpCall, stream: str, hit: Hit) -> LettaFoundMessage:
    record = next(iter(call.service.system.store.reader(stream).read(stream, hit.seq, hit.seq)))
    return LettaFoundMessage(
        message_type="user_message" if hit.role == "user" else "assistant_message", content=hit.text,
        message_id=LettaIds(stream).message(record), created_at=moment(hit.at), agent_id=LettaIds(stream).agent,
    )  # fmt: skip


async def cancel_runs(call: HttpCall) -> Mapping[str, str]:
    """Cancel runs of an agent, or the one that is at work. What they have committed stays."""
    return await cancelled(call, await agent_stream(call), call.body.run_ids)


async def cancelled(call: HttpCall, stream: str, run_ids: Sequence[str] | None) -> Mapping[str, str]:
    """Cancel runs, and return what became of each. Raises the refusal of a request that finds none at work."""
    agent = await agent_ref(call, stream)
    if run_ids:
        outcome = {}
        for run_id in run_ids:
            of, _, found = await found_run(call, run_id)
            if of != stream:
                raise not_found(f"run {run_id[:80]!r} of this agent")
            ended = await agent.cancel(turn=found.input.turn) if found.status == "running" else ()
            outcome[run_id] = "cancelled" if ended else "failed"
        return outcome
    opened = await viewed(
        call, stream, lambda view: {row["turn"]: row["opened_seq"] for row in view.rows("open_turns")}
    )
    ended = await agent.cancel()
    if not ended:
        raise Refusal(409, "nothing-to-cancel", "The agent runs nothing that could be cancelled. Nothing was done.")
    return {LettaIds(stream).run(opened[turn]): "cancelled" for turn in ended if turn in opened}


async def compact(call: HttpCall) -> LettaCompaction:
    """Summarize the oldest part of the context now."""
    return await compacted(call, await agent_stream(call))


async def compacted(call: HttpCall, stream: str) -> LettaCompaction:
    """Summarize the oldest part of the context of an agent."""

    def counted(view: AgentView) -> tuple[int, str]:
        context = view.context()
        summary = "" if context.summary is None else getattr(context.summary.event, "text", "")
        return len(context.messages), summary

    before, _ = await viewed(call, stream, counted)
    await (await agent_ref(call, stream)).summarize()
    after, summary = await viewed(call, stream, counted)
    return LettaCompaction(num_messages_before=before, num_messages_after=after, summary=summary)
