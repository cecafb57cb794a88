"""Read a long text whole, page by page: a message, a memory or a document that a search showed in part.

Used by `memgpt_functions.py`. Errors are written for the model.
"""

import re

import msgspec

from everlog.actors.memory.archival_rules import ArchivalChanges, id_of
from everlog.actors.ports.agent_constants import READ_CHARS
from everlog.actors.ports.effects import Hit, Page, Searcher
from everlog.events import FunctionError
from everlog.store.embedding.chunks import CHUNK_CHARS, chunks

PARTS = READ_CHARS // CHUNK_CHARS
"""Parts of a document on one page."""
_MESSAGE = re.compile(r"(?:message |seq |m)?(\d{1,18})", re.IGNORECASE)


def message_id(seq: int) -> str:
    """Return the id under which a search shows a message, and `read` finds it."""
    return f"m{seq}"


async def read(searcher: Searcher, changes: ArchivalChanges, given: str, page: int) -> Page:
    """Return one page of a text, counted from 0: a page of results whose only hit has that part of the text.

    `given`: id of a message, of a memory as `changes` left it, or of a document. An id of a part ("ID/4") without a
    page begins at that part. Raise FunctionError for an unknown id, and for a page that does not exist.
    """
    wanted = given.strip()
    number = _MESSAGE.fullmatch(wanted)
    if number is not None:
        found = await searcher.message(int(number[1]))
    else:
        known = await searcher.memory(id_of(wanted))
        found = None if known is None else changes.applied(known)
        part = wanted.partition("/")[2]
        page = page or max(int(part) - 1 if part.isdecimal() else 0, 0) // PARTS
    if found is not None:
        texts = chunks(found.text, READ_CHARS)
        return _page(found, texts[page] if page < len(texts) else "", page, len(texts))
    document = Page(0, 0, 0, ()) if number else await searcher.document(id_of(wanted), page * PARTS, PARTS)
    if not document.total:
        raise FunctionError(
            f"There is nothing with the id {wanted[:80]!r} to read. A search shows the id of each text that it shows "
            f"in part, such as {message_id(12)}; copy it exactly."
        )
    first = document.results[0] if document.results else None
    text = "\n".join(hit.text for hit in document.results)
    return _page(first, text, page, -(-document.total // PARTS))


def _page(hit: Hit | None, text: str, page: int, pages: int) -> Page:
    if hit is None or page >= pages:
        raise FunctionError(f"The text has {pages} pages, 0 to {pages - 1}, so there is no page {page}.")
    return Page(1, page, pages, [msgspec.structs.replace(hit, text=text)])
