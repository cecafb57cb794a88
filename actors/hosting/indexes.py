"""The index of a store, with the embedder that its table was made with."""

from collections.abc import Callable

from actors.effects import Clock
from store import FileStore

from .archivist import Archivist, Index, LocalArchive, Patience


def index_of(store: FileStore, clock: Clock) -> Index:
    """The index. Imports LanceDB and an embedder: seconds, and a hundred megabytes. Raises ArchiveError."""
    from store.archive import Archive, recorded_embedder
    from store.archive.embedding import embedder_of

    index: Index = Archive(store, embedder_of(recorded_embedder(store)), clock.now)
    return index


def local_archive(store: FileStore, clock: Clock, patience: Patience, *, note: Callable[[str], None]) -> LocalArchive:
    """The archive of this process."""
    return LocalArchive(Archivist(lambda: index_of(store, clock), store.route, note=note), patience)
