"""Fold records into rows: memories and documents, each with the range in which it is current. Pure.

Three callers must get the same rows from the same records: following the log in batches, a rebuild, and the check that
compares both. A row never changes except when it ends.

Used by `write_batch` and `rebuild_table`; `log_source` reads the `KINDS` of events that are named here.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from everlog.events import Record, is_erased
from everlog.store.base.source_streams import is_source
from everlog.store.embedding.chunks import chunks

MEMORY = "memory"
DOCUMENT = "document"
ENDED = "ended"
"""Kind of a row by which a fork ends what an ancestor stored: one memory, or all memories if it names none."""
INSERTED, UPDATED, DELETED = "archival_inserted", "archival_updated", "archival_deleted"
LOADED, REMOVED = "document_loaded", "document_removed"
CREATED = "agent_created"
MOVED, ERASED = "agent_moved", "records_erased"
NOTHING = bytes(32)
"""Digest of a row without text."""
AGENT_CHARS = 16
"""Hexadecimal digits of the digest of an agent's name in the id of a row."""
KINDS = (INSERTED, UPDATED, DELETED, LOADED, REMOVED, CREATED, MOVED, ERASED)
"""Types of events that the archive needs."""


class ArchiveRow(msgspec.Struct, kw_only=True, gc=False):
    """Part of a memory or a document. All times are microseconds UTC."""

    memory_id: str
    """Unique id: the event that made the row and a digest of its owner, and `/` and the part from the second part
    on.
    """
    kind: str
    memory: str
    """Id of the memory, as agents use it."""
    agent_id: str
    """Owner of the row; of a document, the stream of its source."""
    seq: int
    """Seq of the first record of the memory."""
    part: int = 1
    parts: int = 1
    text: str
    """Text that is embedded and searched."""
    tags: list[str] = []
    source: str = ""
    document: str = ""
    created_at: int
    seq_from: int
    """First seq at which the row is current, inclusive."""
    seq_to: int | None = None
    """Seq at which the row ends, exclusive; None while it is current."""
    from_at: int
    to_at: int | None = None
    digest: bytes
    """SHA-256 of the whole text, all parts together."""

    def held(self, seq: int) -> bool:
        """Return True if the row was current right before the record `seq` of its stream."""
        return self.seq_from < seq and (self.seq_to is None or self.seq_to >= seq)


class NeededRows(msgspec.Struct):
    """Rows of earlier records that the records of a batch may end."""

    memories: set[str] = msgspec.field(default_factory=set)
    documents: dict[str, set[str]] = msgspec.field(default_factory=dict)
    """Names of documents by the stream of their source."""
    agents: set[str] = msgspec.field(default_factory=set)
    """Agents of which all rows may end."""

    def of(self, record: Record) -> None:
        """Note the rows that a record may end."""
        if is_erased(record.payload):
            return
        if record.type in {UPDATED, DELETED}:
            self.memories.add(_fields(record).get("memory_id", ""))
        elif record.type in {LOADED, REMOVED}:
            self.documents.setdefault(record.agent_id, set()).add(_fields(record).get("document", ""))
        elif record.type == CREATED and record.seq > 1:
            self.agents.add(record.agent_id)


class RowFold:
    """Rows, updated by records. The records of one stream must come in the order of their seqs."""

    def __init__(self, rows: Iterable[ArchiveRow] = (), is_fork: Callable[[str], bool] = lambda _: False) -> None:
        """Start with `rows` of earlier records: at least all that the coming records may end.

        `is_fork` returns True for an agent with ancestors, whose memories it may end too.
        """
        self._is_fork = is_fork
        self.rows: dict[str, ArchiveRow] = {}
        self._memories: dict[str, list[ArchiveRow]] = defaultdict(list)
        self._documents: dict[tuple[str, str], list[ArchiveRow]] = defaultdict(list)
        self._agents: dict[str, list[ArchiveRow]] = defaultdict(list)
        self.touched: dict[str, ArchiveRow] = {}
        """Rows that records made or ended, by `memory_id`."""
        for row in rows:
            self._keep(row)

    def _keep(self, row: ArchiveRow) -> None:
        groups = [] if row.kind == ENDED else [self._agents[row.agent_id]]
        if row.kind == MEMORY:
            groups.append(self._memories[row.memory])
        elif row.kind == DOCUMENT:
            groups.append(self._documents[row.agent_id, row.document])
        again = row.memory_id in self.rows
        self.rows[row.memory_id] = row
        for group in groups:
            if again:
                group[:] = [other for other in group if other.memory_id != row.memory_id]
            group.append(row)

    def apply(self, record: Record) -> None:
        """Update the rows by a record. Tombstones and other types of events are ignored; in a source, all but
        documents.
        """
        if is_erased(record.payload) or (is_source(record.agent_id) and record.type not in {LOADED, REMOVED}):
            return
        if record.type == INSERTED:
            self._add(record, MEMORY, record.event_id, record.text or "", _fields(record))
        elif record.type == UPDATED:
            self._changed(record)
        elif record.type == DELETED:
            self._deleted(record)
        elif record.type in {LOADED, REMOVED}:
            self._document(record)
        elif record.type == CREATED and record.seq > 1:  # until then it reads as at its deletion
            self._end(self._agents.get(record.agent_id, ()), record)
            self._end_inherited(record, "")

    def _changed(self, record: Record) -> None:
        """Replace the text of a memory; its source stays. A deleted memory stays deleted, even if a later record
        changes it.
        """
        fields = _fields(record)
        memory = fields.get("memory_id", "")
        known = self._known(memory, record)
        first = self._end(known, record)
        if first is not None or not known:
            fields["source"] = first.source if first else ""
            self._add(record, MEMORY, memory, record.text or "", fields, first)
        if not known and memory:
            self._end_inherited(record, memory)

    def _deleted(self, record: Record) -> None:
        memory = _fields(record).get("memory_id", "")
        known = self._known(memory, record)
        self._end(known, record)
        if not known and memory:
            self._end_inherited(record, memory)

    def _known(self, memory: str, record: Record) -> list[ArchiveRow]:
        """Return the agent's own rows of a memory."""
        return [row for row in self._memories.get(memory, ()) if row.agent_id == record.agent_id]

    def _end_inherited(self, record: Record, memory: str) -> None:
        """In a fork, end a memory of an ancestor, or all. Whether the ancestor had it is determined at search time."""
        if self._is_fork(record.agent_id):
            row = ArchiveRow(
                memory_id=f"{row_of(record)}/{ENDED}", kind=ENDED, memory=memory, agent_id=record.agent_id,
                seq=record.seq, text="", created_at=record.recorded_at, seq_from=record.seq, from_at=record.recorded_at,
                digest=NOTHING,
            )  # fmt: skip
            self._keep(row)
            self.touched[row.memory_id] = row

    def _document(self, record: Record) -> None:
        fields = _fields(record)
        self._end(self._documents.get((record.agent_id, fields.get("document", "")), ()), record)
        if record.type == LOADED:
            self._add(record, DOCUMENT, record.event_id, record.text or "", fields)

    def _end(self, rows: Iterable[ArchiveRow], record: Record) -> ArchiveRow | None:
        """End the current rows among `rows`; return one of them, or None."""
        last = None
        for row in rows:
            if row.agent_id == record.agent_id and row.held(record.seq):
                row.seq_to, row.to_at = record.seq, record.recorded_at
                self.touched[row.memory_id] = last = row
        return last

    def _add(self, record: Record, kind: str, memory: str, text: str, fields: dict[str, Any] | None = None,
             first: ArchiveRow | None = None) -> None:  # fmt: skip
        fields = fields or {}
        texts = chunks(text)
        digest = digest_of(text)
        own = row_of(record)
        for part, piece in enumerate(texts, 1):
            row = ArchiveRow(
                memory_id=own if part == 1 else f"{own}/{part}", kind=kind, memory=memory,
                agent_id=record.agent_id, seq=first.seq if first else record.seq, part=part, parts=len(texts),
                text=piece, tags=list(fields.get("tags", ())), source=fields.get("source", ""),
                document=fields.get("document", ""), created_at=first.created_at if first else record.recorded_at,
                seq_from=record.seq, from_at=record.recorded_at, digest=digest,
            )  # fmt: skip
            self._keep(row)
            self.touched[row.memory_id] = row


def row_of(record: Record) -> str:
    """Return the id of the rows of a record. It includes the agent, because callers choose event ids and two agents may
    share one.
    """
    return f"{record.event_id}:{hashlib.sha256(record.agent_id.encode()).hexdigest()[:AGENT_CHARS]}"


def digest_of(text: str) -> bytes:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).digest()


def spans_in(records: Iterable[Record]) -> list[tuple[int, int]]:
    """Return the ranges of seqs that `records_erased` among the records of one stream name: both ends inclusive."""
    found = []
    for record in records:
        if record.type == ERASED and not is_erased(record.payload):  # a tombstone was carried out before
            fields = _fields(record)
            found.append((fields["from_seq"], min(fields["to_seq"], record.seq - 1)))
    return found


def fold_stream(records: Iterable[Record], is_fork: Callable[[str], bool]) -> dict[str, ArchiveRow]:
    """Return all rows of one stream from all its own records in order; records that are to be erased make no rows."""
    records = list(records)
    spans = spans_in(records)
    fold = RowFold(is_fork=is_fork)
    for record in records:
        if not any(start <= record.seq <= end for start, end in spans):
            fold.apply(record)
    return fold.rows


def _fields(record: Record) -> dict[str, Any]:
    """Return the fields of an event; fields with their default value are absent."""
    return msgspec.json.decode(record.payload)
