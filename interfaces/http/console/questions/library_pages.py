"""Show what agents share, blocks of memory with their edits and sources with their documents, and search all agents."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from starlette.responses import Response

from everlog.events import Record, UnknownAgent
from everlog.events.times import since_epoch
from everlog.interfaces.http.console.page_response import page
from everlog.interfaces.http.console.questions.search_page import QUERY_CHARS_MAX, TEXT_CHARS, marked
from everlog.interfaces.http.console.tilde_names import name_in, written
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.native import archive, shared, sources
from everlog.interfaces.http.native.memory import read_view
from everlog.interfaces.replay_console.shared_blame import author_records
from everlog.interfaces.wire.agents import MomentQuery
from everlog.interfaces.wire.archive import FleetSearchQuery
from everlog.interfaces.wire.shared import BlockVersionShape, TimeQuery

RESULTS = 20
PAGES_MAX = 500
EDITS_SHOWN = 200
DOCUMENTS_SHOWN = 1000


class FleetFindParameters(msgspec.Struct, frozen=True):
    """Parameters of the search over all agents."""

    q: str = ""
    page: int = 1


async def show_library(call: HttpCall) -> Response:
    """List shared blocks and sources, with the agents that have them."""
    native = HttpCall(call.service, call.caller, call.request, params=call.params, query=TimeQuery())
    blocks = (await shared.list_shared_blocks(native)).blocks
    found = (await sources.list_sources(native)).sources
    values = {
        "blocks": [row for row in blocks if not row.block.deleted], "sources": found,
        "deleted": sum(row.block.deleted for row in blocks),
    }  # fmt: skip
    return page(call.request, "library.html", values)


async def show_shared_block(call: HttpCall) -> Response:
    """Show the edits of a shared block, the newest first, with the records of their authors."""
    call.params = {**call.params, "block": name_in(call.params["block"])}
    found = await shared.show_block_history(call)
    shown = found.versions[-EDITS_SHOWN:]
    records = await _records_of_authors(call, found.block, shown)
    edits = [
        {"version": one, "at": since_epoch(one.edited), "record": records.get(one.version)} for one in reversed(shown)
    ]
    values = {"block": found.block, "edits": edits, "left": max(0, len(found.versions) - EDITS_SHOWN)}
    return page(call.request, "shared.html", values)


async def _records_of_authors(
    call: HttpCall, block: str, versions: Sequence[BlockVersionShape]
) -> Mapping[int, Record]:
    """Return the record of each version in the log of the agent that made it. An author that is gone has none."""
    stream, made = call.names.inner(block), defaultdict(list)
    for one in versions:
        if one.author is not None:
            made[one.author].append(one.version)
    found: dict[int, Record] = {}
    for author, numbers in made.items():
        own = HttpCall(call.service, call.caller, call.request, params={"agent": author}, query=MomentQuery())
        with suppress(UnknownAgent):
            found |= await read_view(own, partial(author_records, block=stream, versions=numbers))
    return found


async def show_source(call: HttpCall) -> Response:
    """Show the documents of a source."""
    call.params = {**call.params, "source": name_in(call.params["source"])}
    call.query = TimeQuery()
    found = await sources.list_documents(call)
    rows = [{"document": one, "at": since_epoch(one.loaded)} for one in found.documents[:DOCUMENTS_SHOWN]]
    values = {"source": found.source, "rows": rows, "left": max(0, len(found.documents) - DOCUMENTS_SHOWN)}
    return page(call.request, "source.html", values)


async def search_fleet(call: HttpCall) -> Response:
    """Search what all agents said, stored, loaded and derived, and show a page of results with the moment of each."""
    query: FleetFindParameters = call.query
    words = query.q.strip()
    if len(words) > QUERY_CHARS_MAX:
        raise Refusal(400, "bad-input", f"A search has at most {QUERY_CHARS_MAX:,} characters.")
    if not 1 <= query.page <= PAGES_MAX:
        raise Refusal(400, "bad-input", f"`page` is from 1 to {PAGES_MAX}, not {query.page}.")
    values: dict[str, Any] = {"words": words, "found": None, "results": ()}
    if words:
        native = HttpCall(
            call.service, call.caller, call.request, params=call.params,
            query=FleetSearchQuery(query=words, page=query.page, count=RESULTS),
        )  # fmt: skip
        found = await archive.search_agents(native)
        results = [
            {
                "hit": hit, "path": f"/console/a/{written(hit.agent)}", "at": since_epoch(hit.time),
                "pieces": marked((hit.passage or hit.text)[:TEXT_CHARS], words),
                "more": max(0, len(hit.text) - min(len(hit.passage or hit.text), TEXT_CHARS)),
            }
            for hit in found.results
        ]  # fmt: skip
        values |= {"found": found, "results": results}
    return page(call.request, "find.html", values)
