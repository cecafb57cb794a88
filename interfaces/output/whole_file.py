"""Write a file that appears whole or not at all, readable by its owner alone. Used by commands that export."""

from collections.abc import Iterable
from pathlib import Path

from everlog.events import BadInput, StoreError
from everlog.store import open_private


def check_free(path: Path, *, force: bool) -> None:
    """Raise BadInput if a file exists and --force was not given."""
    if path.exists() and not force:
        raise BadInput(f"{path} exists already. Choose another file, or --force to overwrite it. Nothing was written.")


def write_whole(path: Path, parts: Iterable[bytes]) -> int:
    """Write the parts of a file one after the other. Return their number. Raises StoreError.

    They are written to a file beside it, which gets its name when all are there. An error of `parts` leaves nothing.
    """
    beside, count = path.with_name(f"{path.name}.part"), 0
    try:
        with open_private(beside, "wb") as file:
            for part in parts:
                file.write(part)
                count += 1
        beside.replace(path)
    except OSError as error:
        raise StoreError(f"could not write {path}: {error.strerror}. Nothing was written.") from error
    finally:
        beside.unlink(missing_ok=True)
    return count
