"""Which embedder's vectors the archive of a store holds: what must be known before it is opened."""

from store.filestore import FileStore

from .archive import FOLDER
from .notes import NOTES, Notes


def recorded_embedder(store: FileStore) -> str:
    """Name of the embedder; empty where nothing was searched yet. Raises ArchiveError."""
    path = store.root / FOLDER / NOTES
    if not path.exists():
        return ""
    notes = Notes(path)
    try:
        serving = notes.serving()
    finally:
        notes.close()
    return serving.embedder if serving is not None else ""
