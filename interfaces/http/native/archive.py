"""Archival memory of an agent, and searches in one agent and in many."""

import asyncio
from functools import partial
from typing import Any

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent_state import AgentState
from everlog.actors.memory.archival_rules import id_of
from everlog.actors.ports.effects import Filters, Hit, Page
from everlog.events.times import microseconds_of, moment
from everlog.interfaces.http.core.moments import moment_of, time_of_parameter
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, not_found
from everlog.interfaces.http.native.memory import read_view
from everlog.interfaces.wire.agents import Done
from everlog.interfaces.wire.archive import (
    FleetSearchQuery,
    HitPage,
    HitShape,
    InsertText,
    InsertTexts,
    SearchQuery,
    StoredText,
    StoredTexts,
    TextsQuery,
    UpdateText,
)


async def list_texts(call: HttpCall) -> HitPage:
    """List what archival memory holds at a moment, the newest first."""
    query: TextsQuery = call.query
    filters = Filters(tags=tuple(query.tag), start=query.since, end=query.until)

    def read(view: AgentView) -> Page:
        return view.searcher().listed(query.page - 1, query.count, filters)

    return _page(call, await read_view(call, read), call.stream)


async def show_text(call: HttpCall) -> HitShape:
    """Return one text of archival memory at a moment."""
    memory = id_of(call.params["memory"])

    def read(view: AgentView) -> Hit | None:
        return asyncio.run(view.searcher().memory(memory))  # in a thread, as the engine wants it

    found = await read_view(call, read)
    if found is None:
        raise not_found(f"memory {memory[:80]!r} of the agent {call.params['agent']!r}")
    return _hit(call, found, call.stream)


async def insert_text(call: HttpCall) -> Any:
    """Insert a text into archival memory. A text that is there already keeps its memory."""
    body: InsertText = call.body
    memory = await (await call.agent()).archive.insert(body.text, body.tags)
    return JsonResponse(StoredText(memory=memory), 201)


async def insert_texts(call: HttpCall) -> Any:
    """Insert many texts into archival memory in one commit, all or none."""
    body: InsertTexts = call.body
    memories = await (await call.agent()).archive.insert_many(body.texts, body.tags)
    return JsonResponse(StoredTexts(memories=memories), 201)


async def update_text(call: HttpCall) -> Done:
    """Replace a text of archival memory. The text before stays in the log."""
    body: UpdateText = call.body
    await (await call.agent()).archive.update(id_of(call.params["memory"]), body.text, body.tags)
    return Done()


async def delete_text(call: HttpCall) -> Done:
    """Delete a text from archival memory. It stays in the log until it is erased."""
    await (await call.agent()).archive.delete(id_of(call.params["memory"]))
    return Done()


async def search_agent(call: HttpCall) -> HitPage:
    """Search messages, stored texts, documents and derived memories of an agent at a moment, best match first."""
    query: SearchQuery = call.query
    async with await call.service.system.view(call.stream, as_of=moment_of(query.as_of)) as view:
        search = partial(_search_of(view, query), query.query, query.page - 1, query.count)
        return _page(call, await search(_filters(call, query)), view.agent_id)


async def search_agents(call: HttpCall) -> HitPage:
    """Search all agents, and rank what is found together. Refuses a search that takes too long."""
    query: FleetSearchQuery = call.query
    system, names = call.service.system, call.names
    when = time_of_parameter(query.as_of, "as_of")
    wanted = [names.inner(name) for name in query.agent] or None
    if wanted is None and names.tenant:
        from everlog.actors.reports.fleet_search import searched_agents  # loads what searches need

        until = None if when is None else microseconds_of(when, "as_of")
        living, _ = await call.service.ports.aside(searched_agents, system.store, until)
        wanted = [stream for stream in living if names.owns(stream)]
    search = system.search(query.query, query.page - 1, query.count, _filters(call, query), agents=wanted, as_of=when)
    limit_s = call.service.options.limits.query_s
    try:
        async with asyncio.timeout(limit_s):
            return _page(call, await search)
    except TimeoutError as error:
        raise Refusal(
            400, "query-too-slow",
            f"The search took longer than {limit_s:g} seconds, and was stopped. It keeps the vectors that it made: the "
            "next one takes less. Or name the agents (`agent`), or ask for rarer words.",
        ) from error  # fmt: skip


def _search_of(view: AgentState, query: SearchQuery) -> Any:
    """Return the search of the places that a query names. What is asked of the archive alone has its own ranking."""
    return view.search_archive if sorted(query.place) == ["archive", "documents"] else view.search


def _filters(call: HttpCall, query: SearchQuery | FleetSearchQuery) -> Filters:
    return Filters(
        roles=tuple(query.role),
        start=query.since,
        end=query.until,
        tags=tuple(query.tag),
        source=call.names.inner(query.source) if query.source else "",
        places=tuple(query.place),
        kinds=tuple(query.kind),
        ended=query.ended,
    )


def _page(call: HttpCall, found: Page, stream: str = "") -> HitPage:
    """Return a page for HTTP. `stream`: of the agent of results that do not say it."""
    return HitPage(
        total=found.total, page=found.page + 1, pages=found.pages, by_meaning=found.by_meaning,
        archive_down=found.archive_down, reranked=found.reranked, reranker_down=found.reranker_down,
        results=[_hit(call, hit, stream) for hit in found.results], unread=() if call.names.tenant else found.unread,
    )  # fmt: skip


def _hit(call: HttpCall, hit: Hit, stream: str) -> HitShape:
    given = {name: value for name, value in msgspec.structs.asdict(hit).items() if name != "at"}
    shown = {
        "agent": call.shown(hit.agent or stream), "source": call.shown(hit.source), "place": hit.place,
        "time": hit.time, "until": None if hit.until is None else moment(hit.until),
    }  # fmt: skip
    return HitShape(**{**given, **shown})
