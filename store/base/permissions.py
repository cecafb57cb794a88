"""Decide which users may read the files of a store: its owner, or with EVERLOG_STORE_MODE=group the owner's group too.

Used by every file that creates files or folders of a store, by the command line and the hosts at their start, and by
`everlog log check`. A new file of a store is created with `file_mode` or below a folder of `make_folder`: a file that
another library creates with the umask's mode is readable by every user of the machine.
"""

import os
from pathlib import Path
from typing import IO

from everlog.events import BadInput, StoreError

MODE_VARIABLE = "EVERLOG_STORE_MODE"
"""Environment variable that says who may read new files: `private` (default) or `group`."""
_PRIVATE, _GROUP = "private", "group"
_DENIED = {_PRIVATE: 0o077, _GROUP: 0o007}
"""Permission bits that no path of a store has, for each value of the variable."""


def denied_bits() -> int:
    """Return the permission bits that new files and folders must not have. Raises BadInput for an unknown
    EVERLOG_STORE_MODE.
    """
    named = os.environ.get(MODE_VARIABLE, "").strip() or _PRIVATE
    if named not in _DENIED:
        raise BadInput(
            f"{MODE_VARIABLE} is {named!r}; expected `private` (only you may read the store) or `group` (your group "
            "may, too). Nothing was written."
        )
    return _DENIED[named]


def file_mode() -> int:
    """Return the mode of a new file: 0600, or 0660. Raises BadInput as `denied_bits` does."""
    return 0o666 & ~denied_bits()


def folder_mode() -> int:
    """Return the mode of a new folder: 0700, or 0770. Raises BadInput as `denied_bits` does."""
    return 0o777 & ~denied_bits()


def create_file(path: Path, flags: int) -> int:
    """Open `path` with `flags` and O_CREAT, as a file of a store if it is new, and return the descriptor. Raises
    OSError, BadInput.

    An existing file keeps its mode.
    """
    mode = file_mode()
    flags |= os.O_CLOEXEC
    if mode == 0o600:  # the umask can only take the owner's own bits away, which is the owner's wish
        return os.open(path, flags | os.O_CREAT, mode)
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return os.open(path, flags | os.O_CREAT, mode)
    os.fchmod(fd, mode)  # the usual umask 022 would take the group's right to write away
    return fd


def open_private(path: Path, how: str) -> IO[bytes]:
    """Open `path` for writing as `open` does with `how` (`wb`, `xb` or `ab`), with the mode of a store's file if it is
    new. Raises OSError, BadInput.
    """
    return open(path, how, opener=lambda name, flags: create_file(Path(name), flags))


def open_appending(path: Path) -> IO[bytes]:
    """Open `path` for appending, without a buffer, with the mode of a store's file if it is new. Raises OSError,
    BadInput.
    """
    return open(path, "ab", buffering=0, opener=lambda name, flags: create_file(Path(name), flags))


def make_folder(path: Path) -> None:
    """Create one folder with the mode of a store's folder. Raises FileExistsError, OSError, BadInput."""
    mode = folder_mode()
    os.mkdir(path, mode)
    if mode != 0o700:
        os.chmod(path, mode)


def make_folders(path: Path) -> None:
    """Create a folder and its missing parents with the mode of a store's folder. Raises OSError, BadInput."""
    if path.is_dir():
        return
    make_folders(path.parent)
    try:
        make_folder(path)
    except FileExistsError:  # another process was faster
        if not path.is_dir():
            raise


def restrict_process() -> None:
    """Set the umask of this process, so that files of other libraries are private too.

    For processes that belong to everlog only, once at their start: the umask of a program that imports everlog is that
    program's own. Nothing is raised here, because constructors of actors call this: an unknown EVERLOG_STORE_MODE
    counts as `private`, and is refused where the first file is created.
    """
    denied = _DENIED.get(os.environ.get(MODE_VARIABLE, "").strip(), _DENIED[_PRIVATE])
    before = os.umask(denied)
    if denied == _DENIED[_PRIVATE]:
        os.umask(before | denied)


def exposure(root: Path) -> str:
    """Return a sentence that names a store which other users may enter, with the cure; empty if none may. Raises
    StoreError, BadInput.

    The folder's own mode decides: no user gets past a closed folder.
    """
    try:
        mode = os.stat(root).st_mode & 0o777
    except OSError as error:
        raise StoreError(
            f"could not look at {root}: {error.strerror or error}. Remove the cause, then run the command again."
        ) from error
    wide = mode & denied_bits()
    if not wide:
        return ""
    cure = "chmod -R go=" if denied_bits() == _DENIED[_PRIVATE] else "chmod -R o="
    return (
        f"Other users of this machine may enter the store {root}: its mode is {mode:04o}, expected "
        f"{folder_mode():04o}. Close it with `{cure} {root}`, or set {MODE_VARIABLE}=group if your group shall read it."
    )
