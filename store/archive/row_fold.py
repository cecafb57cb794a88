"""From records to rows: what an agent kept and said, each row with the time in which it holds. Pure.

The same fold makes a row in three places, and must make the same one: following the log bit by bit, a rebuild, and the
check of the one against the other. A row never changes but in when it ends.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from everlog.events import Record, is_erased
from everlog.store.archive.chunks import chunks
from everlog.store.archive.embedder import message_text
from everlog.store.base.source_streams import is_source

MEMORY = "memory"
DOCUMENT = "document"
MESSAGE = "message"
ENDED = "ended"
"""The kind of a row by which a fork has no more of what an ancestor kept: of one memory, or of all if it names none."""
INSERTED, UPDATED, DELETED = "archival_inserted", "archival_updated", "archival_deleted"
LOADED, REMOVED = "document_loaded", "document_removed"
USER, SENT = "user_message", "message_sent"
CREATED = "agent_created"
MOVED, ERASED = "agent_moved", "records_erased"
NOTHING = bytes(32)
"""The digest of no text."""
AGENT_CHARS = 16
"""Of the digest of a name, in hexadecimal, in what a row is called."""
KINDS = (INSERTED, UPDATED, DELETED, LOADED, REMOVED, USER, SENT, CREATED, MOVED, ERASED)
"""The kinds of events that matter here."""


class ArchiveRow(msgspec.Struct, kw_only=True, gc=False):
    """A part of a memory or of a document, or a message. All times are microseconds UTC."""

    memory_id: str
    """Unique: the event that made it and a digest of whose it is, and `/` and the part from the second on."""
    kind: str
    memory: str
    """The id that agents use."""
    agent_id: str
    """Whose it is; of a document, the stream of its source."""
    seq: int
    """Where the memory began: the seq of its first record."""
    part: int = 1
    parts: int = 1
    text: str
    """What is embedded, and searched; of a message only its vector is kept."""
    tags: list[str] = []
    source: str = ""
    document: str = ""
    created_at: int
    seq_from: int
    """The row holds from this seq on, inclusive."""
    seq_to: int | None = None
    """And up to this one, exclusive; None while it holds."""
    from_at: int
    to_at: int | None = None
    digest: bytes
    """SHA-256 of the whole text, of all parts together."""

    def held(self, seq: int) -> bool:
        """Whether it held right before the record `seq` of its stream."""
        return self.seq_from < seq and (self.seq_to is None or self.seq_to >= seq)


class NeededRows(msgspec.Struct):
    """Rows made by earlier records that the records of a batch may end."""

    memories: set[str] = msgspec.field(default_factory=set)
    documents: dict[str, set[str]] = msgspec.field(default_factory=dict)
    """By the stream of their source."""
    agents: set[str] = msgspec.field(default_factory=set)
    """All their rows."""

    def of(self, record: Record) -> None:
        """Note what a record may end."""
        if is_erased(record.payload):
            return
        if record.type in {UPDATED, DELETED}:
            self.memories.add(_fields(record).get("memory_id", ""))
        elif record.type in {LOADED, REMOVED}:
            self.documents.setdefault(record.agent_id, set()).add(_fields(record).get("document", ""))
        elif record.type == CREATED and record.seq > 1:
            self.agents.add(record.agent_id)


class RowFold:
    """Rows, and what records make of them. Records of one stream come in the order of their seqs."""

    def __init__(self, rows: Iterable[ArchiveRow] = (), is_fork: Callable[[str], bool] = lambda _: False) -> None:
        """`rows`: those that earlier records made, as far as the coming ones may end them; `is_fork`: whether an agent
        has ancestors, whose memories it may end, too.
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
        """Take a record in. Tombstones, and events of other kinds, mean nothing; in a source, all but documents."""
        if is_erased(record.payload) or (is_source(record.agent_id) and record.type not in {LOADED, REMOVED}):
            return
        if record.type in {USER, SENT}:
            self._add(record, MESSAGE, record.event_id, embedded_text(record))
        elif record.type == INSERTED:
            self._add(record, MEMORY, record.event_id, record.text or "", _fields(record))
        elif record.type == UPDATED:
            self._changed(record)
        elif record.type == DELETED:
            self._deleted(record)
        elif record.type in {LOADED, REMOVED}:
            self._document(record)
        elif record.type == CREATED and record.seq > 1:  # until then it reads as it was when it was deleted
            self._end(self._agents.get(record.agent_id, ()), record)
            self._end_before(record, "")

    def _changed(self, record: Record) -> None:
        """A memory reads otherwise; its source stays. One that was deleted stays so, whatever is said of it later."""
        fields = _fields(record)
        memory = fields.get("memory_id", "")
        known = self._known(memory, record)
        first = self._end(known, record)
        if first is not None or not known:
            fields["source"] = first.source if first else ""
            self._add(record, MEMORY, memory, record.text or "", fields, first)
        if not known and memory:
            self._end_before(record, memory)

    def _deleted(self, record: Record) -> None:
        memory = _fields(record).get("memory_id", "")
        known = self._known(memory, record)
        self._end(known, record)
        if not known and memory:
            self._end_before(record, memory)

    def _known(self, memory: str, record: Record) -> list[ArchiveRow]:
        """The agent's own rows of a memory."""
        return [row for row in self._memories.get(memory, ()) if row.agent_id == record.agent_id]

    def _end_before(self, record: Record, memory: str) -> None:
        """In a fork: what an ancestor kept holds no longer. Whether there was anything, whoever asks finds out."""
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
        """The rows that held do so no longer; gives one of them."""
        last = None
        for row in rows:
            if row.agent_id == record.agent_id and row.held(record.seq):
                row.seq_to, row.to_at = record.seq, record.recorded_at
                self.touched[row.memory_id] = last = row
        return last

    def _add(self, record: Record, kind: str, memory: str, text: str, fields: dict[str, Any] | None = None,
             first: ArchiveRow | None = None) -> None:  # fmt: skip
        fields = fields or {}
        texts = [text] if kind == MESSAGE else chunks(text)
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
    """What rows of a record are called. The ids of two agents' events may be the same: callers choose them."""
    return f"{record.event_id}:{hashlib.sha256(record.agent_id.encode()).hexdigest()[:AGENT_CHARS]}"


def digest_of(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).digest()


def embedded_text(record: Record) -> str:
    """What of a message is embedded."""
    role = "user" if record.type == USER else "assistant"
    return message_text(role, _fields(record).get("name", ""), record.text or "")


def spans_in(records: Iterable[Record]) -> list[tuple[int, int]]:
    """The seqs that `records_erased` among the records of one stream name: both ends inclusive."""
    found = []
    for record in records:
        if record.type == ERASED and not is_erased(record.payload):  # else it was carried out, and then erased itself
            fields = _fields(record)
            found.append((fields["from_seq"], min(fields["to_seq"], record.seq - 1)))
    return found


def fold_stream(records: Iterable[Record], is_fork: Callable[[str], bool]) -> dict[str, ArchiveRow]:
    """All rows of one stream, from all its own records in order: what was erased made none."""
    records = list(records)
    spans = spans_in(records)
    fold = RowFold(is_fork=is_fork)
    for record in records:
        if not any(start <= record.seq <= end for start, end in spans):
            fold.apply(record)
    return fold.rows


def _fields(record: Record) -> dict[str, Any]:
    """The fields of an event; those at their default are not there."""
    return msgspec.json.decode(record.payload)
