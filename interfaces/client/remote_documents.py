"""Sources of documents and shared blocks of a server, with the interfaces of the services of a store.

Reading blocks, as it does on a disk. Used by `RemoteSystem`, which wraps both for asyncio, and by the commands.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from everlog.actors.memory.document_load import Document, LoadReport, SourceLoad, UnreadableDocument
from everlog.actors.memory.shared_block_rules import SharedBlock
from everlog.actors.memory.shared_block_service import BlockSubscription, BlockVersion
from everlog.actors.ports.agent_constants import BLOCK_CHARS
from everlog.actors.ports.ports import Ports
from everlog.events import BadInput, DocumentLoaded, DocumentRemoved, EverlogError
from everlog.events.times import moment, since_epoch
from everlog.interfaces.client.server_address import WireRequest, is_missing, path_of
from everlog.interfaces.client.server_channel import BlockingChannel
from everlog.interfaces.wire import shared as shapes
from everlog.store import source_of, stream_of

BATCH_BYTES = 4 * 1024 * 1024
"""Approximate bytes of text of one request; a single document may have more."""
BATCH_DOCUMENTS = 256
"""Most documents of one request."""


class RemoteBlockService:
    """Shared blocks of a server; see `SharedBlockService`."""

    def __init__(self, channel: BlockingChannel, ports: Ports) -> None:
        self._channel, self._ports = channel, ports

    def names(self) -> list[str]:
        """Return the names of all shared blocks, deleted ones too, sorted."""
        return [row.block.block for row in self._rows()]

    def show(self, name: str, *, as_of: int | datetime | None = None) -> SharedBlock:
        """Return a block, now or as of a version or a time. Raise BadInput if there was none."""
        request = WireRequest("GET", f"/blocks{path_of(name)}", query=_moment(as_of))
        return _block(self._known(name, request, shapes.SharedBlockShape))

    def history(self, name: str) -> list[BlockVersion]:
        """Return every edit of a block, in order. Raise BadInput for an unknown block."""
        request = WireRequest("GET", f"/blocks{path_of(name)}/history")
        return [
            BlockVersion(
                one.version, since_epoch(one.edited), one.operation, one.author or "", one.value, one.limit,
                one.description, one.read_only,
            )
            for one in self._known(name, request, shapes.BlockHistoryShape).versions
        ]  # fmt: skip

    def attached_agents(self) -> Mapping[str, Sequence[BlockSubscription]]:
        """Return the agents that have each block attached, by block name."""
        return {
            row.block.block: [BlockSubscription(one.agent, one.label) for one in row.followers]
            for row in self._rows()
            if row.followers
        }

    async def create(
        self, name: str, value: str = "", *, limit: int = BLOCK_CHARS, description: str = "", read_only: bool = False,
        event_id: str = "",
    ) -> SharedBlock:  # fmt: skip
        """Create a block, or one that was deleted again. Raise BadInput if the block exists."""
        body = shapes.CreateSharedBlock(
            block=name, value=value, limit=limit, description=description, read_only=read_only
        )
        return await self._edited("POST", "/blocks", body, event_id)

    async def set(self, name: str, value: str, *, base: int | None = None, event_id: str = "") -> SharedBlock:
        """Rewrite a block; `base`: only if it still has that version. Raise BadInput."""
        return await self._edited(
            "PATCH", f"/blocks{path_of(name)}", shapes.EditSharedBlock(value=value, base=base), event_id
        )

    async def append(self, name: str, content: str, *, event_id: str = "") -> SharedBlock:
        """Add a line to a block. Raises BadInput."""
        return await self._edited(
            "POST", f"/blocks{path_of(name)}/append", shapes.AppendToBlock(text=content), event_id
        )

    async def change(
        self, name: str, *, limit: int | None = None, description: str | None = None, read_only: bool | None = None,
        event_id: str = "",
    ) -> SharedBlock:  # fmt: skip
        """Change the attributes of a block; None: unchanged. Raise BadInput."""
        body = shapes.EditSharedBlock(limit=limit, description=description, read_only=read_only)
        return await self._edited("PATCH", f"/blocks{path_of(name)}", body, event_id)

    async def delete(self, name: str, *, event_id: str = "") -> SharedBlock:
        """Delete a block. Raise BadInput."""
        return await self._edited("DELETE", f"/blocks{path_of(name)}", None, event_id)

    def _rows(self) -> Sequence[shapes.SharedBlockRow]:
        return self._channel.call(WireRequest("GET", "/blocks"), shapes.SharedBlocksShape).blocks

    def _known(self, name: str, request: WireRequest, kind: Any) -> Any:
        try:
            return self._channel.call(request, kind)
        except EverlogError as error:
            if not is_missing(error):
                raise
            known = ", ".join(map(repr, self.names())) or "none"
            raise BadInput(f"There is no shared block {name!r} in this store; its shared blocks: {known}.") from error

    async def _edited(self, method: str, path: str, body: Any, event_id: str) -> SharedBlock:
        edit_id = event_id or self._ports.ids.new(self._ports.clock.now())
        request = WireRequest(method, path, body, edit_id)
        return _block(await self._ports.aside(self._channel.call, request, shapes.SharedBlockShape))


class RemoteSources:
    """Sources of a server; see `Sources`."""

    def __init__(self, channel: BlockingChannel) -> None:
        self._channel = channel

    def names(self) -> list[str]:
        """Return the names of all sources into which anything was ever loaded, sorted."""
        return [row.source for row in self._rows(None) if row.documents]

    def documents(self, source: str, until: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the documents of a source, in the order of loading. Raises BadInput for an unknown source."""
        query = _moment(None if until is None else moment(until))
        try:
            found = self._channel.call(
                WireRequest("GET", f"/sources{path_of(source)}/documents", query=query), shapes.DocumentsShape
            )
        except EverlogError as error:
            if not is_missing(error):
                raise
            known = ", ".join(map(repr, self.names())) or "none"
            raise BadInput(f"There is no source {source!r} in this store; its sources: {known}.") from error
        return [
            {
                "source": source, "document": row.document, "title": row.title, "chars": row.characters,
                "bytes": row.bytes, "media_type": row.media_type, "sha256": row.sha256, "origin": row.origin,
                "seq": row.seq, "time": since_epoch(row.loaded),
            }
            for row in found.documents
        ]  # fmt: skip

    def attached(self, until: int | None = None) -> Mapping[str, Sequence[str]]:
        """Return the agents to which each source is attached, sorted, as of a time; see `Sources.attached`."""
        return {row.source: list(row.agents) for row in self._rows(until) if row.agents}

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
        """Upload what a load changes in a source, which is created if needed; see `Sources.load`."""
        source = source_of(stream_of(source))
        rows = self.documents(source) if source in self.names() else ()
        load = SourceLoad(source, rows) if dry_run else _Upload(self._channel, source, rows)
        return load.run(documents, origins, prune=prune, remove=remove)

    def _rows(self, until: int | None) -> Sequence[shapes.SourceRow]:
        query = _moment(None if until is None else moment(until))
        return self._channel.call(WireRequest("GET", "/sources", query=query), shapes.SourcesShape).sources


class _Upload(SourceLoad):
    """A load that sends its changes to a server, some at a time."""

    def __init__(self, channel: BlockingChannel, source: str, rows: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(source, rows)
        self._channel = channel
        self._changed: list[shapes.LoadedDocument] = []
        self._removed: list[str] = []
        self._bytes = 0
        self._exists = bool(rows)
        """False: a load without documents creates the source."""

    def write(self, event: DocumentLoaded | DocumentRemoved) -> None:
        """Add an event to the batch; a batch that is large enough is sent."""
        if isinstance(event, DocumentRemoved):
            self._removed.append(event.document)
        else:
            self._changed.append(shapes.LoadedDocument(
                document=event.document, text=event.text, title=event.title, media_type=event.media_type,
                bytes=event.bytes, origin=event.origin,
            ))  # fmt: skip
            self._bytes += len(event.text.encode())
        if self._bytes >= BATCH_BYTES or len(self._changed) + len(self._removed) >= BATCH_DOCUMENTS:
            self.commit()

    def commit(self) -> None:
        """Send the batch, which the server commits at once."""
        if self._exists and not (self._changed or self._removed):
            return
        body = shapes.LoadBody(documents=self._changed, remove=self._removed)
        path = f"/sources{path_of(self._source)}/documents"
        for one in self._channel.call(WireRequest("POST", path, body), shapes.LoadShape).failed:
            self._loaded.failed.append(UnreadableDocument(one.document, one.reason))
            for names in (self._loaded.new, self._loaded.changed):
                names[:] = [name for name in names if name != one.document]
        self._changed, self._removed, self._bytes, self._exists = [], [], 0, True


def _moment(as_of: int | datetime | None) -> Sequence[tuple[str, str]]:
    if as_of is None:
        return ()
    return [("as_of", as_of.isoformat() if isinstance(as_of, datetime) else str(as_of))]


def _block(shape: shapes.SharedBlockShape) -> SharedBlock:
    return SharedBlock(
        shape.block, shape.version, shape.value, shape.limit, shape.description, shape.read_only, shape.author or "",
        since_epoch(shape.edited), shape.deleted,
    )  # fmt: skip
