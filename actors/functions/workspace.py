"""Read and append to text files of one folder, the workspace. Nothing outside of the folder is accessed.

A path is opened part by part, each relative to the folder before it (`dir_fd`) and never through a symbolic link: even
a link that replaces a file after the check is refused, by the open itself. Links that stay inside the workspace are
refused too, and so is everything that is not a regular file. No file is ever read whole. Used by `extras.py`.
"""

import codecs
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from everlog.events import FunctionError

READ_CHARS_MAX = 500
"""Most characters of a file that one call returns (as in MemGPT)."""

SEARCHED_BYTES_MAX = 64 << 20
"""Most bytes of a file that are searched for a line."""

LIMIT_REACHED = f"[The limit of {READ_CHARS_MAX} characters for one reading was reached; there is more.]"

_CHUNK_BYTES = 1 << 16
_ENOUGH_BYTES = 4 * (READ_CHARS_MAX + 1)
"""A character of UTF-8 has at most 4 bytes; one character more than is shown proves that there is more."""

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Workspace:
    """The folder, given by its path; an empty path: no workspace."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def read_from_text_file(self, filename: str, line_start: int, num_lines: int = 1) -> str:
        """Read lines of a text file in your workspace, up to 500 characters at a time.

        Args:
            filename: Path of the file inside the workspace, such as notes/plan.txt.
            line_start: The first line to read; lines count from 1.
            num_lines: How many lines to read, 1 or more.
        """
        if line_start < 1 or num_lines < 1:
            raise FunctionError(f"Lines count from 1, and 1 or more are read: not {num_lines} from line {line_start}.")
        with self._opened(filename, os.O_RDONLY) as file:
            lines = _first_lines(_after(_chunks(file, filename), line_start - 1), num_lines)
        if lines is None:
            raise FunctionError(f"{filename!r} has no line {line_start}: it ends before.")
        text = _decode(lines[: _ENOUGH_BYTES + 1], filename, whole=len(lines) <= _ENOUGH_BYTES)
        return text if len(text) <= READ_CHARS_MAX else f"{text[:READ_CHARS_MAX]}\n{LIMIT_REACHED}"

    def append_to_text_file(self, filename: str, content: str) -> None:
        """Add a text and a line break at the end of a text file in your workspace. The file must exist already.

        Args:
            filename: Path of the file inside the workspace, such as notes/plan.txt.
            content: What to add.
        """
        with self._opened(filename, os.O_RDWR | os.O_APPEND) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # one agent at a time; closing the file unlocks it
            size = os.fstat(file).st_size
            _check_end(file, size, filename)
            _append(file, size, f"{content}\n".encode(), filename)

    @contextmanager
    def _opened(self, filename: str, how: int) -> Iterator[int]:
        """Open a regular file of the workspace; an OSError, then or inside the block, becomes a FunctionError."""
        if not self._folder:
            raise FunctionError("You were given no workspace. The user can give you one: --workspace DIR.")
        parts = _parts(filename)
        try:
            file = _open_path(self._folder, parts, filename, how)
            try:
                yield file
            finally:
                os.close(file)
        except FileNotFoundError as error:
            raise FunctionError(f"There is no file {filename!r} in the workspace; nobody made it yet.") from error
        except OSError as error:
            raise FunctionError(
                f"{filename!r} cannot be used: {error.strerror or error}. Nothing was changed."
            ) from error


def _parts(filename: str) -> Sequence[str]:
    """Split a path into its folders and its file. Raise FunctionError for a path that could lead outside."""
    parts = [part for part in filename.split("/") if part not in ("", ".")]
    if filename.startswith("/") or ".." in parts or not parts or "\0" in filename:
        raise FunctionError(
            f"{filename[:100]!r} is no file of the workspace: give its path from there, such as notes/plan.txt, "
            "without a / at the beginning and without `..`."
        )
    return parts


def _open_path(folder: str, parts: Sequence[str], filename: str, how: int) -> int:
    """Open the file, each part from the folder before it. Raise OSError; FunctionError if it is not a regular file."""
    at = os.open(folder, _FOLDER_FLAGS)
    try:
        for part in parts[:-1]:
            below = os.open(part, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        _check_kind(os.stat(parts[-1], dir_fd=at, follow_symlinks=False), filename)  # before: opening a device may act
        file = os.open(parts[-1], how | _FILE_FLAGS, dir_fd=at)
    finally:
        os.close(at)
    try:
        _check_kind(os.fstat(file), filename)  # after: the name may lead elsewhere by now
    except FunctionError:
        os.close(file)
        raise
    return file


def _check_kind(found: os.stat_result, filename: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise FunctionError(f"{filename!r} is a symbolic link, and links are not followed. Name the file itself.")
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "no plain file"
        raise FunctionError(f"{filename!r} is {what}; only text files can be read and added to.")


def _chunks(file: int, filename: str) -> Iterator[bytes]:
    """Yield the file from its beginning. Raise FunctionError at SEARCHED_BYTES_MAX."""
    looked = 0
    while chunk := os.read(file, _CHUNK_BYTES):
        yield chunk
        looked += len(chunk)
        if looked >= SEARCHED_BYTES_MAX:
            raise FunctionError(
                f"The line is further into {filename!r} than the {SEARCHED_BYTES_MAX >> 20} MiB looked at."
            )


def _after(chunks: Iterable[bytes], skip: int) -> Iterator[bytes]:
    """Yield the bytes after the first `skip` line breaks."""
    for chunk in chunks:
        here = chunk.count(b"\n") if skip else 0
        if here < skip:
            skip -= here
            continue
        begin = 0
        for _ in range(skip):
            begin = chunk.index(b"\n", begin) + 1
        skip = 0
        yield chunk[begin:]


def _first_lines(pieces: Iterable[bytes], count: int) -> bytes | None:
    """Return the first `count` lines without the last line break, or over _ENOUGH_BYTES of them; None without any."""
    found = b""
    for piece in pieces:
        found += piece
        if len(found) > _ENOUGH_BYTES or found.count(b"\n") >= count:
            break
    if not found:
        return None
    lines = found.split(b"\n")
    return b"\n".join(lines[:count]) if len(lines) > count else found.removesuffix(b"\n")


def _decode(data: bytes, filename: str, *, whole: bool) -> str:
    """Decode UTF-8; unless `whole`, the last character may be cut off. Raise FunctionError."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError as error:
        raise FunctionError(f"{filename!r} is not text in UTF-8 ({error.reason}). Nothing was changed.") from error


def _check_end(file: int, size: int, filename: str) -> None:
    """Check that the end of a file, its last _CHUNK_BYTES, is text. Raise FunctionError."""
    begin = max(0, size - _CHUNK_BYTES)
    end = os.pread(file, _CHUNK_BYTES, begin)
    first = next((n for n, byte in enumerate(end[:4]) if byte & 0xC0 != 0x80), 4) if begin else 0
    _decode(end[first:], filename, whole=True)


def _append(file: int, size: int, data: bytes, filename: str) -> None:
    """Append all of `data` to a file of `size` bytes, durably.

    Raises OSError if nothing was added, FunctionError if some of it was added and cannot be removed.
    """
    written = 0
    try:
        while written < len(data):
            written += os.write(file, data[written:])
        os.fsync(file)
    except OSError as error:
        if not _undo_write(file, size, written):
            raise FunctionError(
                f"Adding to {filename!r} failed ({error.strerror or error}), and some of the text may stand there. "
                "Read its end before you add it again."
            ) from error
        raise


def _undo_write(file: int, size: int, written: int) -> bool:
    """Remove the `written` bytes after `size`. Return True if none are left; bytes that others added stay."""
    try:
        if os.fstat(file).st_size != size + written:
            return not written
        if written:
            os.ftruncate(file, size)
    except OSError:
        return not written
    return True
