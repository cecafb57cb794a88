"""The index of a store, with the embedder that its table was made with."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from actors.effects import Clock
from store import FileStore

from .archivist import Archivist, LocalArchive, Patience

if TYPE_CHECKING:
    from store.archive import Archive


def index_of(store: FileStore, clock: Clock) -> "Archive":
    """The index. Imports LanceDB and an embedder: seconds, and a hundred megabytes. Raises ArchiveError."""
    from store.archive import Archive
    from store.archive.embedding import embedder_of

    return Archive(store, embedder_of(), clock.now)


def local_archive(store: FileStore, clock: Clock, patience: Patience, *, note: Callable[[str], None]) -> LocalArchive:
    """The archive of this process."""
    return LocalArchive(Archivist(lambda: index_of(store, clock), store, note=note), patience)
