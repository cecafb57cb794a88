"""Run the archive of a cluster as a Ray actor, the one process that imports LanceDB; and its client.

Used by `ray_runtime` and by the host actors, through `archive_client_of`.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from everlog.actors.archive.archive_index import index_of, message_meanings
from everlog.actors.archive.archive_service import ArchiveResponse, ArchiveService, ClusterArchiveClient
from everlog.actors.archive.reranker import Reranker
from everlog.actors.cluster import ray_api
from everlog.actors.cluster.cluster_errors import first_line
from everlog.actors.cluster.structured_log import StructuredLogger
from everlog.actors.hosting.cluster_status import ArchiveStatus
from everlog.actors.hosting.metrics import ProcessMetrics
from everlog.actors.hosting.process_memory import minimize_reserves, own_memory_bytes
from everlog.actors.ports.agent_constants import ARCHIVE_NICENESS, EMBED_AHEAD_RECORDS
from everlog.actors.ports.real_clock import RealClock
from everlog.events import ArchiveDown
from everlog.store import ArchiveQuery, FileStore, restrict_process, store_folder

METRICS_S = 10.0
"""Seconds between two updates of the metrics: each counts the files of the archive."""
ONE_HEAP = {"MALLOC_ARENA_MAX": "1"}
"""Environment of the archive's process. `minimize_reserves` comes too late for the heaps that Ray's threads have made:
LanceDB's threads would use those too, and each grows.
"""
STATUS_S = 1.0
"""Seconds that a question for the status waits for new figures: less than its caller waits for the answer."""


class _LazyStore:
    """Store that is opened at its first use, because an actor's constructor must not fail."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._store: FileStore | None = None

    def opened(self) -> FileStore:
        """Return the store, opened. Raises StoreError."""
        if self._store is None:
            self._store = FileStore(store_folder(self._root), RealClock().now)
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
        restrict_process()  # LanceDB creates its files with the mode of the umask
        os.nice(ARCHIVE_NICENESS)  # hosts have priority over indexing
        # LanceDB allocates in a few dozen threads. With a heap for each, this process grows for as long as it works.
        # ONE_HEAP is not enough: it says nothing of Arrow's pool, nor of the size from which blocks are returned.
        minimize_reserves()
        clock = RealClock()
        note = StructuredLogger("archive", ray_api.own_node(), clock=clock, environment=os.environ)

        store = _LazyStore(root)
        self._archivist = ArchiveService(lambda: index_of(store.opened()), store, note=note)
        self._archivist.begin()
        self._metrics = ProcessMetrics(ray_api.MAKERS, placement="archive", node=ray_api.own_node())
        self._looking: asyncio.Task[None] | None = None
        self._seen: tuple[ArchiveStatus, float] | None = None
        """Figures that were measured last, and the time of that."""
        self._measuring = asyncio.get_running_loop().create_task(self._measure())

    async def ready(self) -> int:
        """Return the process id."""
        return os.getpid()

    async def _measure(self) -> None:
        """Update the metrics of the archive, for ever."""
        while True:
            await asyncio.sleep(METRICS_S)
            with suppress(ArchiveDown):
                found = await self._archivist.sizes()
                if found is not None:
                    self._metrics.archive(_status_of(found))

    async def modules(self) -> list[str]:
        """Return the names of the modules that this process has imported."""
        return sorted(sys.modules)

    async def ask_many(self, questions: Sequence[ArchiveQuery]) -> Sequence[ArchiveResponse]:
        """Answer questions with `ArchiveService.ask_many`; if it raises ArchiveDown, return that error for each."""
        try:
            return await self._archivist.ask_many(questions)
        except ArchiveDown as error:
            return [error] * len(questions)

    async def status(self) -> ArchiveStatus | None:
        """Return the figures of the index; None if it cannot be opened. While the index is busy, return the figures
        that were measured last, with their age: a caller that shows status does not wait for long.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())
        await asyncio.wait([self._looking], timeout=STATUS_S)
        if self._seen is None:
            return None
        seen, at = self._seen
        return msgspec.structs.replace(
            seen, memory_bytes=own_memory_bytes(), age_s=round(asyncio.get_running_loop().time() - at, 1)
        )

    async def _look(self) -> None:
        """Measure the figures of the index."""
        try:
            found = await self._archivist.status()
        except ArchiveDown:
            self._seen = None
            return
        status = msgspec.structs.replace(
            _status_of(found.sizes), embedder=found.embedder, memories=found.memories, messages=found.messages,
            behind=found.behind,
        )  # fmt: skip
        self._seen = (status, asyncio.get_running_loop().time())


def _status_of(sizes: Any) -> ArchiveStatus:
    """Return the status with the sizes of the index, and of this process."""
    return ArchiveStatus(
        memory_bytes=own_memory_bytes(), versions=sizes.versions, files=sizes.files, disk_bytes=sizes.bytes,
        row_cache_bytes=sizes.row_cache_bytes, row_cache_bytes_max=sizes.row_cache_bytes_max,
        table_cache_bytes=sizes.table_cache_bytes, table_cache_bytes_max=sizes.table_cache_bytes_max,
    )  # fmt: skip


def archive_client_of(root: str, note: Callable[[str], None]) -> ClusterArchiveClient:
    """Return the client of the archive in the cluster that this process has joined. Messages are compared by meaning in
    this process.
    """

    async def send(questions: Sequence[ArchiveQuery]) -> Sequence[ArchiveResponse]:
        try:
            actor = ray_api.make_actor(
                root,
                "archive",
                ArchiveActor,
                max_restarts=-1,
                max_task_retries=3,
                get_if_exists=True,
                runtime_env={"env_vars": ONE_HEAP},
            )
            answers: Sequence[ArchiveResponse] = await actor.ask_many.remote(questions)
        except ray_api.RayError as error:
            raise ArchiveDown(f"the archive is gone: {first_line(error)}") from error
        return answers

    meant = message_meanings(_LazyStore(root).opened, note=note, ahead_from=EMBED_AHEAD_RECORDS)
    return ClusterArchiveClient(send, meant, Reranker(store_folder(root), note=note))
