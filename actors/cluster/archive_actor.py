"""The archive of a cluster as a Ray actor: the one process that imports LanceDB and an embedder; and the way to it."""

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
    """A store that is opened when something is first asked of it: an actor's constructor must not fail."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._store: FileStore | None = None

    def opened(self) -> FileStore:
        """Raises StoreError."""
        if self._store is None:
            self._store = FileStore(self._root, RealClock().now)
        return self._store

    def partitions(self) -> list[str]:
        """See `FileStore.partitions`."""
        return self.opened().partitions()

    def route(self, agent_id: str) -> list[str]:
        """See `FileStore.route`."""
        return self.opened().route(agent_id)

    def parent_of(self, agent_id: str) -> tuple[str, int] | None:
        """See `FileStore.parent_of`."""
        return self.opened().parent_of(agent_id)


class ArchiveActor:
    """One for each store and cluster, made when something is first searched. Ray starts it again when it dies.

    Its constructor cannot fail, whatever its node sees of the store.
    """

    def __init__(self, root: str) -> None:
        os.nice(ARCHIVE_NICENESS)  # agents come first
        clock = RealClock()
        note = StructuredLogger("archive", ray_api.own_node(), clock=clock, environment=os.environ)

        store = _LazyStore(root)
        self._archivist = ArchiveService(lambda: index_of(store.opened()), store, note=note)
        self._archivist.begin()

    async def ready(self) -> int:
        """The process id."""
        return os.getpid()

    async def modules(self) -> list[str]:
        """What this process has imported."""
        return sorted(sys.modules)

    async def ask_many(self, questions: Sequence[ArchiveRequest]) -> Sequence[ArchiveResponse]:
        """`ArchiveService.ask_many`, with ArchiveDown as a value for all."""
        try:
            return await self._archivist.ask_many(questions)
        except ArchiveDown as error:
            return [error] * len(questions)

    async def status(self) -> ArchiveStatus | None:
        """How far the index is; None where it cannot be opened."""
        try:
            found = await self._archivist.status()
        except ArchiveDown:
            return None
        return ArchiveStatus(
            embedder=found.embedder, memories=found.memories, messages=found.messages, behind=found.behind,
            memory_bytes=own_memory_bytes(),
        )  # fmt: skip


def clerk_of(root: str) -> ClusterArchiveClient:
    """The way to the archive of the cluster that this process has joined."""

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
