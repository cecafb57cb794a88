"""Open the index of a store with the embedder that its table was made with.

Used by `open_system`, by the archive's Ray actor, and by the commands `archive` and `erase`. LanceDB and embedders are
imported inside the functions, so that commands without a search start fast.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from everlog.actors.archive.archive_service import ArchiveService, LocalArchiveClient, WaitPolicy
from everlog.store import FileStore

if TYPE_CHECKING:
    from everlog.store.archive import Archive


def index_of(store: FileStore) -> "Archive":
    """Return the index. Imports LanceDB and an embedder, which takes seconds and 100 MB. Raises ArchiveError."""
    from everlog.actors.archive.embedder_choice import embedder_by_recorded_name, embedder_for
    from everlog.store.archive import Archive, recorded_embedder

    found = recorded_embedder(store)
    embedder = embedder_for() if found is None else embedder_by_recorded_name(found.embedder, found.dimension)
    return Archive(store, embedder)


def catch_up(store: FileStore, agents: Iterable[str]) -> None:
    """Bring the archive, if there is one, up to date with the logs of these agents, erasures included. Raises
    ArchiveError.
    """
    if (store.root / "archive").exists():
        index = index_of(store)
        try:
            index.wait_for_rebuild()
            index.follow({partition for agent_id in agents for partition in store.route(agent_id)})
        finally:
            index.close()


def local_archive(store: FileStore, patience: WaitPolicy, *, note: Callable[[str], None]) -> LocalArchiveClient:
    """Return the archive client of this process."""
    return LocalArchiveClient(ArchiveService(lambda: index_of(store), store, note=note), patience)
