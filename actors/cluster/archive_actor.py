"""Run the archive of a cluster as a Ray actor, the one process that imports LanceDB and an embedder; and its client.

Used by `ray_runtime` and by the host actors, through `archive_client_of`.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from everlog.actors.archive.archive_index import index_of
from everlog.actors.archive.archive_service import ArchiveRequest, ArchiveResponse, ArchiveService, ClusterArchiveClient
from everlog.actors.cluster import ray_api
from everlog.actors.cluster.cluster_errors import first_line
from everlog.actors.cluster.structured_log import StructuredLogger
from everlog.actors.hosting.cluster_status import ArchiveStatus
from everlog.actors.hosting.process_memory import own_memory_bytes
from everlog.actors.ports.agent_constants import ARCHIVE_NICENESS
from everlog.actors.ports.real_clock import RealClock
from everlog.events import ArchiveDown
from everlog.store import FileStore


class _LazyStore:
    """Store that is opened at its first use, because an actor's constructor must not fail."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._store: FileStore | None = None

    def opened(self) -> FileStore:
        """Return the store, opened. Raises StoreError."""
        if self._store is None:
            self._store = FileStore(self._root, RealClock().now)
        return self._store

    def partitions(self) -> list[str]:
        """Return the partitions; see `FileStore.partitions`."""
        return self.opened().partitions()

    def route(self, agent_id: str) -> list[str]:
        """Return the partitions of an agent; see `FileStore.route`."""
        return self.opened().route(agent_id)

    def parent_of(self, agent_id: str) -> tuple[str, int] | None:
        """Return the parent of an agent; see `FileStore.parent_of`."""
        return self.opened().parent_of(agent_id)


class ArchiveActor:
    """Ray actor of the archive, one for each store and cluster, made at the first search. Ray restarts it when it dies.

    The constructor cannot fail, whatever its node sees of the store.
    """

    def __init__(self, root: str) -> None:
        os.nice(ARCHIVE_NICENESS)  # hosts have priority over indexing
        clock = RealClock()
        note = StructuredLogger("archive", ray_api.own_node(), clock=clock, environment=os.environ)

        store = _LazyStore(root)
        self._archivist = ArchiveService(lambda: index_of(store.opened()), store, note=note)
        self._archivist.begin()

    async def ready(self) -> int:
        """Return the process id."""
        return os.getpid()

    async def modules(self) -> list[str]:
        """Return the names of the modules that this process has imported."""
        return sorted(sys.modules)

    async def ask_many(self, questions: Sequence[ArchiveRequest]) -> Sequence[ArchiveResponse]:
        """Answer questions with `ArchiveService.ask_many`; if it raises ArchiveDown, return that error for each."""
        try:
            return await self._archivist.ask_many(questions)
        except ArchiveDown as error:
            return [error] * len(questions)

    async def status(self) -> ArchiveStatus | None:
        """Return the figures of the index; None if it cannot be opened."""
        try:
            found = await self._archivist.status()
        except ArchiveDown:
            return None
        return ArchiveStatus(
            embedder=found.embedder, memories=found.memories, messages=found.messages, behind=found.behind,
            memory_bytes=own_memory_bytes(),
        )  # fmt: skip


def archive_client_of(root: str) -> ClusterArchiveClient:
    """Return the client of the archive in the cluster that this process has joined."""

    async def send(questions: Sequence[ArchiveRequest]) -> Sequence[ArchiveResponse]:
        try:
            actor = ray_api.make_actor(
                root, "archive", ArchiveActor, max_restarts=-1, max_task_retries=3, get_if_exists=True
            )
            answers: Sequence[ArchiveResponse] = await actor.ask_many.remote(questions)
        except ray_api.RayError as error:
            raise ArchiveDown(f"the archive is gone: {first_line(error)}") from error
        return answers

    return ClusterArchiveClient(send)
