"""Which embedder's vectors the archive of a store holds: what must be known before it is opened."""

from typing import NamedTuple

from everlog.store.archive.archive import FOLDER
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata
from everlog.store.stores.file_store import FileStore


class EmbedderIdentity(NamedTuple):
    """Whose vectors a table holds."""

    embedder: str
    dimension: int


def recorded_embedder(store: FileStore) -> EmbedderIdentity | None:
    """The embedder; None where nothing was searched yet. Raises ArchiveError."""
    path = store.root / FOLDER / NOTES
    if not path.exists():
        return None
    notes = ArchiveMetadata(path)
    try:
        serving = notes.serving()
    finally:
        notes.close()
    return None if serving is None else EmbedderIdentity(serving.embedder, serving.dimension)
