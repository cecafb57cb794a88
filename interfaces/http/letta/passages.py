"""Texts of archival memory for clients of Letta, which calls them passages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from everlog.actors.ports.effects import Filters, Hit
from everlog.events.times import moment, since_epoch
from everlog.interfaces.http.core.moments import time_of_parameter
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.letta.letta_calls import (
    LettaNotice,
    LettaPageQuery,
    agent_ref,
    agent_stream,
    page_of,
    refused,
    viewed,
)
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, digits_in, uuid_id

TOP_K_MAX = 100


class LettaPassage(msgspec.Struct, frozen=True, kw_only=True):
    """A text of archival memory."""

    id: str
    text: str
    tags: Sequence[str]
    created_at: datetime
    archive_id: str
    embedding: None = None
    embedding_config: None = None
    metadata: Mapping[str, Any] = {}


class LettaPassageBody(msgspec.Struct, frozen=True, kw_only=True):
    """A text to store."""

    text: str
    tags: list[str] | None = None
    created_at: str | None = None


class LettaPassageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selection of texts."""

    limit: int | None = None
    before: str | None = None
    after: str | None = None
    ascending: bool = True
    search: str | None = None


class LettaPassageSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Search in the texts of an agent."""

    query: str
    top_k: int | None = None
    tags: list[str] = []
    tag_match_mode: Literal["any", "all"] = "any"
    start_datetime: str | None = None
    end_datetime: str | None = None


class LettaPassagesBody(msgspec.Struct, frozen=True, kw_only=True):
    """Search in the texts of one agent, or of all."""

    query: str | None = None
    agent_id: str | None = None
    archive_id: str | None = None
    limit: int = 50
    tags: list[str] | None = None
    tag_match_mode: Literal["any", "all"] = "any"
    start_date: str | None = None
    end_date: str | None = None


class LettaFoundText(msgspec.Struct, frozen=True, kw_only=True):
    """A text that was found."""

    id: str
    content: str
    timestamp: str
    tags: Sequence[str]


class LettaFoundTexts(msgspec.Struct, frozen=True, kw_only=True):
    """Texts that were found, best match first."""

    count: int
    results: Sequence[LettaFoundText]


class LettaFoundPassage(msgspec.Struct, frozen=True, kw_only=True):
    """A text that was found, with its relevance from 0 to 1."""

    passage: LettaPassage
    score: float
    metadata: Mapping[str, Any] = {}


async def list_passages(call: HttpCall) -> Sequence[LettaPassage]:
    """List the texts of an agent's archival memory, the oldest first."""
    query: LettaPassageQuery = call.query
    stream = await agent_stream(call)
    rows = await viewed(call, stream, lambda view: view.rows("archival_memory"))
    sought = (query.search or "").casefold()
    rows = sorted((row for row in rows if sought in row["text"].casefold()), key=lambda row: row["seq"])
    passages = [_passage(stream, row["memory_id"], row["text"], row["tags"], row["time"]) for row in rows]
    order: Literal["asc", "desc"] = "asc" if query.ascending else "desc"
    page = LettaPageQuery(limit=query.limit, before=query.before, after=query.after, order=order)
    return page_of(passages if query.ascending else passages[::-1], page, lambda passage: passage.id, default=100)


async def create_passage(call: HttpCall) -> Sequence[LettaPassage]:
    """Store a text in archival memory. A text that is there already keeps its memory."""
    body: LettaPassageBody = call.body
    if body.created_at is not None:
        raise refused("`created_at`: a text has the time at which it is stored.")
    stream = await agent_stream(call)
    memory = await (await agent_ref(call, stream)).archive.insert(body.text, body.tags or ())
    rows = await viewed(call, stream, lambda view: view.rows("archival_memory"))
    row = next(row for row in rows if row["memory_id"] == memory)
    return [_passage(stream, memory, row["text"], row["tags"], row["time"])]


async def delete_passage(call: HttpCall) -> LettaNotice:
    """Delete a text from archival memory. It stays in the log until it is erased."""
    stream, given = await agent_stream(call), call.params["memory_id"]
    memory = uuid_id("", digits_in("passage", given)).removeprefix("-")
    rows = await viewed(call, stream, lambda view: view.rows("archival_memory"))
    if memory not in {row["memory_id"] for row in rows}:
        raise not_found(f"passage {given[:80]!r} of this agent")
    await (await agent_ref(call, stream)).archive.delete(memory)
    return LettaNotice(message=f"{given} was deleted.")


async def search_passages(call: HttpCall) -> LettaFoundTexts:
    """Search the texts of an agent, best match first."""
    query: LettaPassageSearch = call.query
    span = _span(query.start_datetime, query.end_datetime)
    hits = await _search(
        call, await agent_stream(call), query.query, query.top_k or 10, query.tags, query.tag_match_mode, span
    )
    results = [
        LettaFoundText(id=_id(hit.ref), content=hit.text, timestamp=moment(hit.at).isoformat(), tags=hit.tags)
        for hit in hits
    ]
    return LettaFoundTexts(count=len(results), results=results)


async def search_all_passages(call: HttpCall) -> Sequence[LettaFoundPassage]:
    """Search the texts of one agent, or of all, best match first."""
    body: LettaPassagesBody = call.body
    if body.archive_id and digits_in("archive", body.archive_id) == "":
        raise not_found(f"archive {body.archive_id[:80]!r}")
    if not (body.query or "").strip():
        raise refused("`query` is empty: agents.passages.list has all texts of an agent.")
    agent = body.agent_id or (body.archive_id or "").replace("archive-", "agent-")
    stream = await agent_stream(call, agent) if agent else ""
    span = _span(body.start_date, body.end_date)
    hits = await _search(call, stream, body.query or "", body.limit, body.tags or [], body.tag_match_mode, span)
    return [
        LettaFoundPassage(
            passage=_passage(stream or hit.agent, hit.ref, hit.text, hit.tags, hit.at), score=hit.score,
        )
        for hit in hits
    ]  # fmt: skip


async def _search(
    call: HttpCall, stream: str, query: str, count: int, tags: Sequence[str], mode: str, span: tuple[int, int]
) -> Sequence[Hit]:
    if not 1 <= count <= TOP_K_MAX:
        raise refused(f"A search has 1 to {TOP_K_MAX} results, not {count}.")
    found: dict[str, Hit] = {}
    wanted = [tuple(tags)] if mode == "all" or not tags else [(tag,) for tag in tags]
    for each in wanted:
        filters = Filters(tags=each, places=("archive",))
        for hit in await _hits(call, stream, query, TOP_K_MAX if span != _EVER else count, filters):
            found.setdefault(hit.ref, hit)
    chosen = [hit for hit in found.values() if span[0] <= hit.at <= span[1]]
    return sorted(chosen, key=lambda hit: -hit.score)[:count]


async def _hits(call: HttpCall, stream: str, query: str, count: int, filters: Filters) -> Sequence[Hit]:
    system = call.service.system
    if stream:
        async with await system.view(stream) as view:
            return (await view.search(query, 0, count, filters)).results
    living = [agent for agent in await system.agents() if call.names.owns(agent)]
    return (await system.search(query, 0, count, filters, agents=living)).results


_EVER = (0, 1 << 62)


def _span(start: str | None, end: str | None) -> tuple[int, int]:
    """Return the first and the last time that are wanted, microseconds UTC."""
    first, last = time_of_parameter(start, "start"), time_of_parameter(end, "end")
    return since_epoch(first) if first else _EVER[0], since_epoch(last) if last else _EVER[1]


def _id(memory: str) -> str:
    return f"passage-{memory}"


def _passage(stream: str, memory: str, text: str, tags: Sequence[str], at: Any) -> LettaPassage:
    return LettaPassage(
        id=_id(memory), text=text, tags=list(tags), created_at=at if isinstance(at, datetime) else moment(at),
        archive_id=LettaIds(stream).agent.replace("agent-", "archive-"),
    )  # fmt: skip
