"""Documents and shared memory blocks of a store, for asyncio programs: the services of `actors/memory`, in a thread.

Part of the public API: attributes of `AgentSystem`, wrapped by `sync_api`. Every method that reads the disk or runs SQL
does it in a thread, so that the event loop continues.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from everlog.actors.memory.document_load import Document, LoadReport, UnreadableDocument
from everlog.actors.memory.shared_block_rules import SharedBlock
from everlog.actors.memory.shared_block_service import BlockSubscription, BlockVersion, SharedBlockService
from everlog.actors.memory.source_service import Sources
from everlog.actors.ports.agent_constants import BLOCK_CHARS
from everlog.actors.ports.effects import ThreadRunner
from everlog.actors.short_tracebacks import short_tracebacks
from everlog.events.times import microseconds_of


@short_tracebacks
class DocumentSources:
    """Sources of one store: collections of documents that agents can search."""

    def __init__(self, sources: Sources, aside: ThreadRunner) -> None:
        """Wrap the sources of a store. `aside` runs work in a thread."""
        self._sources = sources
        self._aside = aside

    def signed(self, by: str) -> "DocumentSources":
        """Return these sources for a caller with a key, which the log names beside what is loaded. `by`: its id."""
        return DocumentSources(self._sources.signed(by), self._aside)

    async def names(self) -> list[str]:
        """Return the names of all sources into which anything was ever loaded, sorted."""
        names: list[str] = await self._aside(self._sources.names)
        return names

    async def documents(self, source: str, *, as_of: datetime | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the documents of a source, in the order of loading: rows of the projection `documents`, without text.

        `as_of`: as of that time, with a zone; None: now. Raises BadInput for an unknown source.
        """
        until = None if as_of is None else microseconds_of(as_of, "as_of")
        rows: Sequence[Mapping[str, Any]] = await self._aside(self._sources.documents, source, until)
        return rows

    async def attached(self, *, as_of: datetime | None = None) -> Mapping[str, Sequence[str]]:
        """Return the agents to which each source is attached, sorted. Deleted agents are left out.

        `as_of`: as of that time, with a zone; None: now. One query over the logs of all agents.
        """
        until = None if as_of is None else microseconds_of(as_of, "as_of")
        found: Mapping[str, Sequence[str]] = await self._aside(self._sources.attached, until)
        return found

    async def load(
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

        `documents` is iterated over in a thread. Documents that came from one of `origins` before, and do not now, have
        vanished: they stay in the source, unless `prune`. `remove`: names of documents that are removed. `dry_run`
        writes nothing. Documents that cannot be loaded are in the report, and the rest continues. Raises PartitionBusy
        while another process loads into the source, StoreError, and whatever `documents` raises: batches committed by
        then stay.
        """
        load = partial(
            self._sources.load, source, documents, origins=origins, prune=prune, dry_run=dry_run, remove=remove
        )
        report: LoadReport = await self._aside(load)
        return report

    def __repr__(self) -> str:
        return "<DocumentSources: names(), documents(source), attached(), load(source, documents)>"


@short_tracebacks
class SharedBlocks:
    """Shared blocks of one store: memory blocks that several agents have in their core memory."""

    def __init__(self, service: SharedBlockService, aside: ThreadRunner) -> None:
        """Wrap the shared blocks of a store. `aside` runs work in a thread."""
        self._service = service
        self._aside = aside

    def signed(self, by: str) -> "SharedBlocks":
        """Return these blocks for a caller with a key, which the log names beside each edit. `by`: its id."""
        return SharedBlocks(self._service.signed(by), self._aside)

    async def names(self) -> list[str]:
        """Return the names of all shared blocks, deleted ones too, sorted."""
        names: list[str] = await self._aside(self._service.names)
        return names

    async def show(self, name: str, *, as_of: int | datetime | None = None) -> SharedBlock:
        """Return a block, now or as of a version or a time. Raise BadInput if there was none."""
        block: SharedBlock = await self._aside(partial(self._service.show, name, as_of=as_of))
        return block

    async def history(self, name: str) -> list[BlockVersion]:
        """Return every edit of a block, in order. Raise BadInput for an unknown block."""
        versions: list[BlockVersion] = await self._aside(self._service.history, name)
        return versions

    async def attached_agents(self) -> Mapping[str, Sequence[BlockSubscription]]:
        """Return the agents that have each block attached, by block name. One query over the logs of all agents.

        Deleted agents are left out.
        """
        found: Mapping[str, Sequence[BlockSubscription]] = await self._aside(self._service.attached_agents)
        return found

    async def create(
        self, name: str, value: str = "", *, limit: int = BLOCK_CHARS, description: str = "", read_only: bool = False,
        event_id: str = "",
    ) -> SharedBlock:  # fmt: skip
        """Create a block, or one that was deleted again. Raise BadInput if the block exists, StoreError.

        `event_id` of this and of the next methods: UUIDv7 that makes the edit idempotent; empty: a new id.
        """
        return await self._service.create(
            name, value, limit=limit, description=description, read_only=read_only, event_id=event_id
        )

    async def set(self, name: str, value: str, *, base: int | None = None, event_id: str = "") -> SharedBlock:
        """Rewrite a block; `base`: only if it still has that version. Raise EditConflict, BadInput, StoreError."""
        return await self._service.set(name, value, base=base, event_id=event_id)

    async def append(self, name: str, content: str, *, event_id: str = "") -> SharedBlock:
        """Add a line to a block. Raises BadInput, StoreError."""
        return await self._service.append(name, content, event_id=event_id)

    async def change(
        self, name: str, *, limit: int | None = None, description: str | None = None, read_only: bool | None = None,
        event_id: str = "",
    ) -> SharedBlock:  # fmt: skip
        """Change the attributes of a block; None: unchanged. Raise BadInput, StoreError."""
        return await self._service.change(
            name, limit=limit, description=description, read_only=read_only, event_id=event_id
        )

    async def delete(self, name: str, *, event_id: str = "") -> SharedBlock:
        """Delete a block. Its log stays; agents keep their copy of it, and cannot edit it. Raise BadInput."""
        return await self._service.delete(name, event_id=event_id)

    def __repr__(self) -> str:
        return "<SharedBlocks: names(), show(name), history(name), create(name, value), set, append, change, delete>"
