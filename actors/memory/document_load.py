"""Decide what a load of documents changes in a source. Pure.

A source is the text last loaded under each name (the projection `documents`). A load brings documents one after the
other; a document that the source has already, word for word, leaves nothing in its log. Used by `source_service.py`,
and by the readers of files in `interfaces/documents`. The sha256 of a text is in the log, and decides if the document
is unchanged.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from everlog.events import BadInput, DocumentLoaded, DocumentRemoved

DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
"""Longest text of a document, in bytes of UTF-8, inclusive: more than any book."""
NAME_CHARS_MAX = 1000
"""Longest name of a document, in characters, inclusive."""

DocumentStatus = Literal["new", "changed", "unchanged"]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document to load."""

    name: str
    """Name that is unique in the source, and the same when the document is loaded again."""
    text: str
    title: str = ""
    media_type: str = ""
    bytes: int = 0
    """Size in bytes of the file that the text is from."""
    origin: str = ""
    """Folder or file that the user named, or `sql`."""


class UnreadableDocument(msgspec.Struct, frozen=True):
    """A document that could not be read; the rest of the load continues."""

    name: str
    """Name that the document would have; of a folder: its own name, which stands for all documents in it."""
    reason: str


class LoadReport(msgspec.Struct):
    """Result of a load; names are in the order of loading."""

    source: str
    new: list[str] = []
    changed: list[str] = []
    unchanged: list[str] = []
    removed: list[str] = []
    vanished: list[str] = []
    """Documents still in the source, though no longer where they were loaded from."""
    failed: list[UnreadableDocument] = []

    @property
    def documents(self) -> int:
        """Number of documents in the load that could be read."""
        return len(self.new) + len(self.changed) + len(self.unchanged)

    def names(self) -> set[str]:
        """Return all names in the load, readable or not."""
        return {*self.new, *self.changed, *self.unchanged, *(one.name for one in self.failed)}


def event_of(source: str, document: Document) -> DocumentLoaded:
    """Return the event of a document. Raise BadInput for a document that no source can hold."""
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
    """Compare a document with a source; `known`: the sha256 of each text by name."""
    before = known.get(event.document)
    if before is None:
        return "new"
    return "unchanged" if before == event.sha256 else "changed"


def vanished(rows: Iterable[Mapping[str, Any]], loaded: LoadReport, origins: Sequence[str]) -> list[str]:
    """Return the names of documents (`rows` of the projection) from one of `origins` that this load did not bring.

    A document that could not be read has not vanished, nor has one in a folder that could not be read.
    """
    seen = loaded.names()
    unread = tuple(f"{one.name}/" for one in loaded.failed)
    return [
        row["document"]
        for row in rows
        if row["origin"] in origins and row["document"] not in seen and not row["document"].startswith(unread)
    ]


def removal(source: str, name: str) -> DocumentRemoved:
    """Return the event that removes a document."""
    return DocumentRemoved(source=source, document=name)


class SourceLoad:
    """A load that only determines the changes; a subclass makes them.

    Used on the store by `Sources`, and by the client of a server, which sends what changes.
    """

    def __init__(self, source: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """`rows`: documents that the source has, with `document`, `sha256` and `origin`."""
        self._source = source
        self._rows = rows
        self._known = {row["document"]: row["sha256"] for row in rows}
        self._loaded = LoadReport(source)
        self._seen: set[str] = set()

    def run(
        self,
        documents: Iterable[Document | UnreadableDocument],
        origins: Sequence[str],
        *,
        prune: bool,
        remove: Sequence[str] = (),
    ) -> LoadReport:
        """Process the documents one by one, then those that vanished, and those to remove."""
        for document in documents:
            if isinstance(document, UnreadableDocument):
                self._loaded.failed.append(document)
            else:
                self._take(document)
        gone = vanished(self._rows, self._loaded, origins)
        if not prune:
            self._loaded.vanished = gone
        wanted = {*remove, *(gone if prune else ())}
        self._loaded.removed = [name for name in self._known if name in wanted and name not in self._seen]
        for name in self._loaded.removed:
            self.write(removal(self._source, name))
        self.commit()
        return self._loaded

    def _take(self, document: Document) -> None:
        try:
            if document.name in self._seen:
                raise BadInput("another document of this load has the same name; load it into another source")
            event = event_of(self._source, document)
        except BadInput as error:
            self._loaded.failed.append(UnreadableDocument(document.name, str(error)))
            return
        self._seen.add(document.name)
        found = verdict(self._known, event)
        getattr(self._loaded, found).append(document.name)
        if found != "unchanged":
            self.write(event)

    def write(self, event: DocumentLoaded | DocumentRemoved) -> None:
        """Add an event to the batch."""

    def commit(self) -> None:
        """Make the batch durable."""
