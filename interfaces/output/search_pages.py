"""Pages of search results for people, made from the shapes that programs get.

Used by `everlog search`, the commands of `everlog archive`, and `/search` in a chat.
"""

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from everlog.interfaces.common import time_text
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output.json_shapes import JsonObject
from everlog.interfaces.output.show_pages import ROLES
from everlog.interfaces.output.terminal_output import console, indented, one_line
from everlog.store.base.stemming import WORD, query_stems, stems
from everlog.store.embedding.best_passage import MARK

_NOUNS = {"archive": "memory", "documents": "document"}
"""Words for results of a place that are no messages."""


class Look(msgspec.Struct, frozen=True):
    """Options of a page of results."""

    zone: str = "UTC"
    """IANA zone of the times."""
    command: str = ""
    """Text before "--page N" and "--full" in the lines that say how to get more."""
    scores: bool = False
    full: bool = False
    """True: long texts are shown whole, and not the best passage."""
    with_agent: bool = False
    """True: each result names its agent."""


PLAIN = Look()


def results(query: str, found: JsonObject, now: int, look: Look = PLAIN) -> RenderableType:
    """Return one page of results, the best first."""
    page, pages = found["page"], found["pages"]
    if not found["results"]:
        what = f"no page {page:,}, only {plural(pages, 'page')} of results" if found["total"] else "nothing found"
        return Text(f"{what} for “{sanitize(query)}”" if query else what, "dim italic")
    total = plural(found["total"], "result")
    shown = f"Showing {len(found['results'])} of {total} (page {page:,} of {pages:,})"
    parts: list[RenderableType] = [Text(shown, "dim"), Text("")]
    for result in found["results"]:
        parts += [one(result, now, query, look), Text("")]
    if page < pages:
        parts.append(Text(f"Next page: {sanitize(look.command)}--page {page + 1}", "dim"))
    if not look.full and any(result["passage"] for result in found["results"]):
        parts.append(Text(f"{MARK} is left out: {sanitize(look.command)}--full shows all of it", "dim"))
    return Group(*parts)


def one(result: JsonObject, now: int, query: str = "", look: Look = PLAIN) -> RenderableType:
    """Return one result of a search; words of the query are highlighted in any form."""
    at = time_text.microseconds(result["time"])
    known = [
        time_text.clock(at, look.zone),
        time_text.relative(at, now),
        f"seq {result['seq']}",
        f"ref {one_line(result['ref'], 40)}" if result["ref"] and not result["kind"] else "",
        f"tags {one_line(', '.join(result['tags']), 60)}" if result["tags"] else "",
        f"source {one_line(result['source'], 40)}" if result["source"] else "",
        f"document {one_line(result['document'], 60)}" if result["document"] else "",
        f"part {result['part']} of {result['parts']}" if result["parts"] > 1 else "",
        f"rests on {', '.join(f'seq {seq}' for seq in result['sources'])}" if result["sources"] else "",
        f"until {time_text.clock(time_text.microseconds(result['until']), look.zone)}" if result["until"] else "",
        "outdated" if result["outdated"] else "",
        f"score {result['score']:.2f}" if look.scores else "",
    ]
    who = result["kind"] or _NOUNS.get(result["place"]) or result["name"] or result["role"]
    return Group(
        Text.assemble(
            (one_line(who), ROLES.get(result["role"], "bold")),
            (f" in {one_line(result['agent'], 40)}" if look.with_agent else "", "bold"),
            (f" · {' · '.join(part for part in known if part)}", "dim"),
        ),
        indented(_highlighted(result["text"] if look.full else result["passage"] or result["text"], query), console()),
    )


def _highlighted(shown: str, query: str) -> Text:
    """Return a text in which the words of the query are bold, in any form that the search takes for the same."""
    text = Text(sanitize(shown))
    wanted = set(query_stems(query))
    for word in WORD.finditer(text.plain) if wanted else ():
        if wanted.intersection(stems(word[0])):
            text.stylize("bold yellow", *word.span())
    return text
