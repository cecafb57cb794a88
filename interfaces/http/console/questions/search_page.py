"""Search what an agent knew at a moment: messages, archival memory, documents and derived memories.

Each result leads to the moment at which it was said or stored. A search that comes with a link reads only.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.ports.effects import Filters, Hit
from everlog.interfaces.http.console.agent_frame import AgentFrame, MomentParameters, framed, page_of_agent
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall

RESULTS = 20
"""Results of a page."""
PAGES_MAX = 500
QUERY_CHARS_MAX = 2000
TEXT_CHARS = 700
"""Characters of a result that the page shows."""
PLACES = {
    "": "Everything", "messages": "Messages", "archive": "Archival memory", "documents": "Documents",
    "derived": "Derived memories",
}  # fmt: skip
"""Places that can be searched alone, each with its label."""
_WORD = re.compile(r"\w{2,}")


class FindParameters(MomentParameters, frozen=True):
    """Parameters of the search in one agent."""

    q: str = ""
    """Words, or a question; empty: nothing is searched yet."""
    place: Literal["", "messages", "archive", "documents", "derived"] = ""
    page: int = 1


class FoundText(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a search for a page."""

    seq: int
    at: int
    place: str
    who: str
    pieces: Sequence[tuple[bool, str]]
    """Its words in pieces, each with True for a word of the query."""
    more: int
    """Characters that are left out."""
    tags: Sequence[str]
    document: str
    """Name of the document; empty for anything else."""
    leads: bool
    """True: its seq is a moment of the agent. False: it was loaded into a source."""


async def show_search(call: HttpCall) -> Response:
    """Search one agent at a moment, and show a page of results with the moment of each."""
    query: FindParameters = call.query
    words = query.q.strip()
    if len(words) > QUERY_CHARS_MAX:
        raise Refusal(400, "bad-input", f"A search has at most {QUERY_CHARS_MAX:,} characters.")
    if not 1 <= query.page <= PAGES_MAX:
        raise Refusal(400, "bad-input", f"`page` is from 1 to {PAGES_MAX}, not {query.page}.")

    def read(view: AgentView, _: AgentFrame) -> Mapping[str, Any]:
        recall, archival = view.counts()
        return {"recall": recall, "archival": archival}

    values = await framed(call, read)
    common = {**values, "query": query, "words": words, "places": PLACES, "found": None, "results": ()}
    if not words:
        return page_of_agent(call, "search", "search.html", common)
    frame: AgentFrame = values["frame"]
    filters = Filters(places=(query.place,) if query.place else ())
    async with await call.service.system.view(call.stream, as_of=frame.seq) as view:
        alone = query.place in {"archive", "documents"}
        found = await (view.search_archive if alone else view.search)(words, query.page - 1, RESULTS, filters)
    results = [_shown(call, hit, frame, words) for hit in found.results]
    return page_of_agent(call, "search", "search.html", {**common, "found": found, "results": results})


def marked(text: str, query: str) -> list[tuple[bool, str]]:
    """Return a text in pieces, each with True if it is a word of the query, in any case."""
    wanted = {word.casefold() for word in _WORD.findall(query)}
    return list(_pieces(text, wanted))


def _pieces(text: str, wanted: set[str]) -> Iterator[tuple[bool, str]]:
    place = 0
    for word in _WORD.finditer(text):
        if word[0].casefold() in wanted:
            if word.start() > place:
                yield False, text[place : word.start()]
            yield True, word[0]
            place = word.end()
    if place < len(text):
        yield False, text[place:]


def _shown(call: HttpCall, hit: Hit, frame: AgentFrame, query: str) -> FoundText:
    text = hit.passage or hit.text
    return FoundText(
        seq=hit.seq, at=hit.at, place=PLACES[hit.place],
        who=frame.agent if hit.role == "assistant" else hit.name or ("user" if hit.role == "user" else ""),
        pieces=marked(text[:TEXT_CHARS], query), more=max(0, len(hit.text) - min(len(text), TEXT_CHARS)),
        tags=hit.tags, document=f"{call.shown(hit.source)}: {hit.document}" if hit.document else "",
        leads=not hit.source and 1 <= hit.seq <= frame.seq,
    )  # fmt: skip
