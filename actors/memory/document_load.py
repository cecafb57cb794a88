"""Documents: what a load changes in a source. Pure.

A source is what was loaded under each name last (the projection `documents`). A load brings documents one after the
other; those that the source has already, word for word, leave nothing in its log.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.events import BadInput, DocumentLoaded, DocumentRemoved

DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
"""Longest text of a document, in UTF-8, inclusive: more than any book."""
NAME_CHARS_MAX = 1000
"""Longest name of a document, inclusive."""

DocumentStatus = Literal["new", "changed", "unchanged"]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A text to be loaded."""

    name: str
    """Tells it from all others of the source, and is the same when it is loaded again."""
    text: str
    title: str = ""
    media_type: str = ""
    bytes: int = 0
    """Of the file that the text is from."""
    origin: str = ""
    """The folder or file that was named, or `sql`."""


class UnreadableDocument(msgspec.Struct, frozen=True):
    """What could not be read; the rest of the load goes on."""

    name: str
    """As a document would be called; of a folder: it, and all that is in it."""
    reason: str


class LoadReport(msgspec.Struct):
    """What a load did; names in the order in which they came."""

    source: str
    new: list[str] = []
    changed: list[str] = []
    unchanged: list[str] = []
    removed: list[str] = []
    vanished: list[str] = []
    """In the source still, though no longer where they were loaded from."""
    failed: list[UnreadableDocument] = []

    @property
    def documents(self) -> int:
        """How many the load brought that could be read."""
        return len(self.new) + len(self.changed) + len(self.unchanged)

    def names(self) -> set[str]:
        """All that the load brought, readable or not."""
        return {*self.new, *self.changed, *self.unchanged, *(one.name for one in self.failed)}


def event_of(source: str, document: Document) -> DocumentLoaded:
    """What the log says of a document. Raises BadInput for one that no source can hold."""
    if not document.name.strip() or len(document.name) > NAME_CHARS_MAX:
        raise BadInput(f"its name has {len(document.name)} characters; a document's has 1 to {NAME_CHARS_MAX}")
    if not document.text.strip():
        raise BadInput("it has no text")
    try:
        document.name.encode()
        text = document.text.encode()
    except UnicodeEncodeError as error:
        raise BadInput("it holds half of a character (a lone surrogate)") from error
    if len(text) > DOCUMENT_BYTES_MAX:
        raise BadInput(
            f"its text has {len(text):,} bytes, and a document has at most {DOCUMENT_BYTES_MAX:,}; divide it"
        )
    return DocumentLoaded(
        text=document.text,
        source=source,
        document=document.name,
        title=document.title,
        media_type=document.media_type,
        bytes=document.bytes,
        chars=len(document.text),
        sha256=hashlib.sha256(text).hexdigest(),
        origin=document.origin,
    )


def verdict(known: Mapping[str, str], event: DocumentLoaded) -> DocumentStatus:
    """What a document is to a source; `known`: the sha256 of the text by name."""
    before = known.get(event.document)
    if before is None:
        return "new"
    return "unchanged" if before == event.sha256 else "changed"


def vanished(rows: Iterable[Mapping[str, Any]], loaded: LoadReport, origins: Sequence[str]) -> list[str]:
    """Names of the documents (`rows` of the projection) that came from one of `origins` and were not brought now.

    What could not be read has not vanished, nor has what is in a folder that could not be read.
    """
    seen = loaded.names()
    unread = tuple(f"{one.name}/" for one in loaded.failed)
    return [
        row["document"]
        for row in rows
        if row["origin"] in origins and row["document"] not in seen and not row["document"].startswith(unread)
    ]


def removal(source: str, name: str) -> DocumentRemoved:
    """What the log says of a document that is taken out."""
    return DocumentRemoved(source=source, document=name)
