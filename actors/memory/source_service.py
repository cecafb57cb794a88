"""Manage the sources of a store: list them, show their documents, and load documents.

A load owns the log of its source while it runs, as an agent's host owns the agent's. Each committed batch stays,
whatever happens afterwards; running the load again continues from there. Used by `AgentSystem`, by the synchronous API,
and by the commands for documents.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Self

import msgspec

from everlog.actors.memory.document_load import (
    Document,
    LoadReport,
    SourceLoad,
    UnreadableDocument,
)
from everlog.actors.memory.fleet_sql import LIVING, fleet_rows
from everlog.actors.ports.effects import Clock, Ids
from everlog.actors.ports.log_warnings import note_opening
from everlog.actors.ports.ports import discard_note
from everlog.events import AgentCreated, BadInput, DocumentLoaded, DocumentRemoved, UnknownAgent, draft
from everlog.projections import DERIVER, HEAD, Projections
from everlog.store import Log, LogReader, Store, seal_if_due, source_of, stream_of

BATCH_BYTES = 8 * 1024 * 1024
"""Approximate bytes of text in a batch: a batch is committed once it has as many, or more."""
BATCH_DOCUMENTS = 256
"""Most documents in a batch."""
ROWS = 4096
"""Number of records that are read at a time to list the documents of a source."""
_ATTACHED = f"""SELECT payload->>'$.source' AS source, agent_id FROM current_records
WHERE type IN ('source_attached', 'source_detached') AND {LIVING}
GROUP BY ALL HAVING arg_max(type, seq) = 'source_attached' ORDER BY ALL"""


class Sources:
    """Sources of one store. Methods block until they are done; they can be called from another thread."""

    def __init__(self, store: Store, *, clock: Clock, ids: Ids, note: Callable[[str], None] = discard_note) -> None:
        """Open the sources of `store`. `note` is called with warnings about a log that a load opened."""
        self._store = store
        self._note = note
        self._clock = clock
        self._ids = ids
        self._by = ""

    def signed(self, by: str) -> Self:
        """Return these sources with documents that name a key in the log. `by`: id of the key; empty: none."""
        other = copy(self)
        other._by = by  # noqa: SLF001 - its own class
        return other

    def names(self) -> list[str]:
        """Return the names of all sources into which anything was ever loaded, sorted."""
        return self._store.sources()

    def documents(self, source: str, until: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the documents of a source, in the order of loading: rows of the projection `documents`, without text.

        `until`: as of that time, microseconds UTC; None: now. Raises BadInput for an unknown source.
        """
        stream = stream_of(source)
        try:
            reader = self._store.reader(stream)
            return rows_of(reader, stream, HEAD if until is None else reader.seq_at(stream, until))
        except UnknownAgent:
            known = ", ".join(map(repr, self.names())) or "none"
            raise BadInput(f"There is no source {source!r} in this store; its sources: {known}.") from None

    def attached(self, until: int | None = None) -> Mapping[str, Sequence[str]]:
        """Return the agents to which each source is attached, sorted, without deleted agents.

        `until`: as of that time, microseconds UTC; None: now. One query over the logs of all agents.
        """
        found: dict[str, list[str]] = defaultdict(list)
        for row in fleet_rows(self._store, _ATTACHED, until=until):
            found[row["source"]].append(row["agent_id"])
        return found

    def load(
        self,
        source: str,
        documents: Iterable[Document | UnreadableDocument],
        *,
        origins: Sequence[str] = (),
        prune: bool = False,
        dry_run: bool = False,
        remove: Sequence[str] = (),
    ) -> LoadReport:
        """Load documents into a source, which is created if needed; documents that it has already leave nothing.

        Documents that came from one of `origins` before, and do not now, have vanished: they stay in the source, unless
        `prune`. `remove`: names of documents that are removed. `dry_run` writes nothing. Documents that cannot be
        loaded are in the report, and the rest continues. Raises PartitionBusy while another process loads into the
        source, StoreError, and whatever `documents` raises: batches committed by then stay.
        """
        stream = stream_of(source)
        source = source_of(stream)
        if dry_run:
            return SourceLoad(source, self._documents_or_none(stream)).run(
                documents, origins, prune=prune, remove=remove
            )
        self._store.register(stream)
        log = self._store.open(stream, "everlog load")
        try:
            note_opening(self._note, stream, log)
            seal_if_due(log, DERIVER)  # a killed load may have left frames to seal
            load = _Writing(source, rows_of(log, stream), log, self._clock, self._ids, self._by)
            return load.run(documents, origins, prune=prune, remove=remove)
        finally:
            try:
                seal_if_due(log, DERIVER)
            finally:
                log.close()

    def _documents_or_none(self, stream: str) -> Sequence[Mapping[str, Any]]:
        try:
            return rows_of(self._store.reader(stream), stream)
        except UnknownAgent:
            return []


class _Writing(SourceLoad):
    """A load that writes to a log."""

    def __init__(
        self, source: str, rows: Sequence[Mapping[str, Any]], log: Log, clock: Clock, ids: Ids, by: str
    ) -> None:
        super().__init__(source, rows)
        self._log = log
        self._stream = stream_of(source)
        self._head = log.head(self._stream).seq
        self._clock = clock
        self._ids = ids
        self._by = by
        self._batch: list[DocumentLoaded | DocumentRemoved] = []
        self._bytes = 0

    def write(self, event: DocumentLoaded | DocumentRemoved) -> None:
        """Add an event to the batch; a batch that is large enough is committed."""
        self._batch.append(msgspec.structs.replace(event, by=self._by) if self._by else event)
        self._bytes += len(event.text.encode())
        if self._bytes >= BATCH_BYTES or len(self._batch) >= BATCH_DOCUMENTS:
            self.commit()

    def commit(self) -> None:
        """Append the batch as one commit."""
        if not self._batch:
            return
        now = self._clock.now()
        drafts = [draft(event, event_id=self._ids.new(now), recorded_at=now, turn=0, step=0) for event in self._batch]
        self._log.append(self._stream, self._head, drafts)
        self._head += len(drafts)
        self._batch, self._bytes = [], 0


def rows_of(reader: LogReader, stream: str, as_of: int = HEAD) -> list[dict[str, Any]]:
    """Return the documents of the source with that stream. Raise BadInput if it is the log of an agent.

    The records are read without their texts, so that a large source needs little memory.
    """
    with Projections() as engine:
        for records in _bare(reader, stream):
            engine.add(records)
        return engine.rows("documents", stream, as_of)


def _bare(reader: LogReader, stream: str) -> Iterator[list[Any]]:
    batch = []
    for record in reader.read(stream):
        if record.type == AgentCreated.kind:
            raise BadInput(
                f"{stream!r} is an agent, created before such names were reserved for sources. Load into a source of "
                "another name (--source)."
            )
        batch.append(msgspec.structs.replace(record, text=None))
        if len(batch) >= ROWS:
            yield batch
            batch = []
    yield batch
