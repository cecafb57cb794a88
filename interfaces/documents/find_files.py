"""Find the files that a load reads: the given files, and all files in the given folders.

Used by `everlog load` through the package. A document is recognized by its name: a name that is made in another way is
another document.
"""

import stat
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from everlog.actors.memory.document_load import UnreadableDocument
from everlog.events import BadInput
from everlog.interfaces.documents.file_kinds import KINDS, kind_of

LINK_OUT = "it is a link that leads out of the folder; name it in the command to load it"


class DocumentFile(NamedTuple):
    """A file that becomes a document."""

    name: str
    """Name of the document: the path relative to the given folder, or the name of the given file; NFC, with slashes."""
    path: Path
    origin: str
    """Absolute path of the given folder or file."""
    bytes: int


class FileSelection(msgspec.Struct):
    """The files that a load reads, and those that it cannot read."""

    files: list[DocumentFile] = []
    """Files in the order of their names, each file once."""
    origins: list[str] = []
    """The given folders and files that could be read."""
    failed: list[UnreadableDocument] = []
    skipped: list[str] = []
    """Names of files in folders whose type is not supported, sorted."""

    @property
    def bytes(self) -> int:
        """Total size of all files."""
        return sum(file.bytes for file in self.files)


def find(paths: Sequence[str]) -> FileSelection:
    """Find the given files, and all files in the given folders at any depth. Names with a leading dot are skipped.

    A link that the user gives is followed. A link in a folder is followed only inside that folder: a folder that came
    from elsewhere must not choose which files of this machine are read. Raises BadInput for a path that does not exist.
    """
    found = FileSelection()
    for given in paths:
        try:
            path = Path(given).expanduser()
            real = path.resolve(strict=True)
            is_folder = real.is_dir()
        except (OSError, RuntimeError, ValueError) as error:
            raise BadInput(f"{given!r}: there is no such file or folder ({error}). Nothing was loaded.") from error
        if is_folder:
            _Folder(real, found).search()
        else:
            _add(found, _name(path.name), real, str(real), named=True)
    once = {file.path.resolve(): file for file in reversed(found.files)}
    found.files = sorted(once.values())
    found.skipped.sort()
    return found


def _add(found: FileSelection, name: str, path: Path, origin: str, *, named: bool = False) -> None:
    """Add a file to `found`: to its files, or to those that cannot be read or are skipped."""
    try:
        name.encode()
        status = path.stat()
    except UnicodeEncodeError:
        found.failed.append(UnreadableDocument(ascii(name)[1:-1], "its name is not UTF-8; rename it"))
        return
    except OSError as error:
        found.failed.append(UnreadableDocument(name, f"it cannot be read ({error.strerror})"))
        return
    if not stat.S_ISREG(status.st_mode):
        found.failed.append(UnreadableDocument(name, "it is a device, a pipe or a socket, not a file"))
    elif kind_of(path) is not None or (named and kind_of(Path(name)) is not None):
        found.files.append(DocumentFile(name, path, origin, status.st_size))
        if named:
            found.origins.append(origin)
    elif named:
        known = ", ".join(ending.removeprefix(".") for ending in KINDS)
        found.failed.append(UnreadableDocument(name, f"its type is not supported; supported types: {known}"))
    else:
        found.skipped.append(name)


def _name(path: str) -> str:
    return unicodedata.normalize("NFC", path)


class _Folder:
    """A given folder, and the folders in it."""

    def __init__(self, root: Path, found: FileSelection) -> None:
        self._root = root
        self._found = found

    def search(self) -> None:
        """Add all files of the folder to the selection."""
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            try:
                entries = sorted(folder.iterdir())
            except OSError as error:
                self._found.failed.append(
                    UnreadableDocument(self._name_of(folder), f"the folder cannot be read ({error.strerror})")
                )
                continue
            if folder == self._root:
                self._found.origins.append(str(self._root))
            for path in entries:
                if path.name.startswith("."):
                    continue
                if self._leads_out(path):
                    self._found.failed.append(UnreadableDocument(self._name_of(path), LINK_OUT))
                elif self._is_folder(path):
                    waiting.append(path)
                elif not path.is_dir():
                    _add(self._found, self._name_of(path), path, str(self._root))

    def _name_of(self, path: Path) -> str:
        return _name(path.relative_to(self._root).as_posix())

    def _leads_out(self, path: Path) -> bool:
        """Return True for a link to a file or folder outside of the given folder. A link to nothing is no such link."""
        if not path.is_symlink():
            return False
        try:
            return not path.resolve(strict=True).is_relative_to(self._root)
        except (OSError, RuntimeError):  # RuntimeError: a cycle of links
            return False

    def _is_folder(self, path: Path) -> bool:
        """Return True if the path is a folder to search. A link is none: the search reaches its folder anyway."""
        return path.is_dir() and not path.is_symlink()
