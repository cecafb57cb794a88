"""Write files of `ObjectDisk`: temporary ones, whole ones, and files of frames that grow by an object for each sync.

Invariant: an object of a file of frames is created, never replaced, while any writer may live. So two writers of one
file cannot both succeed at the same offset, and what ended the file for a writer ends it for good.
"""

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from everlog.store.base.disk import Bytes, FileEnded

OFFSET_DIGITS = 20


class ObjectWriter(Protocol):
    """Disk of these files: creates, replaces and deletes objects."""

    def create_object(self, key: str, content: Bytes) -> None:
        """Create an object. Raises FileExistsError, OSError."""
        ...

    def replace_object(self, key: str, content: Bytes) -> None:
        """Create or replace an object. Raises OSError."""
        ...

    def cut_parts(self, key: str, length: int) -> None:
        """Make the objects of a file of frames end at `length`. Raises OSError."""
        ...


def part_key(key: str, offset: int) -> str:
    """Return the key of the frames at `offset` of the file of frames `key`."""
    return f"parts/{key}/{offset:0{OFFSET_DIGITS}d}"


class TemporaryFile:
    """A file without an object: it becomes one when it is linked to a name."""

    is_ended = False

    def __init__(self, free: Callable[[Path], None]) -> None:
        self.content = bytearray()
        self.linked: Path | None = None
        """Name under which the content was published."""
        self._free = free
        self._locked = False

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        write_into(self.content, parts, offset)

    def sync(self) -> None:
        """Do nothing: the object is durable as soon as it has its name."""

    def truncate(self, length: int) -> None:
        del self.content[length:]

    def lock(self) -> bool:
        self._locked = True
        return True

    def unlock(self) -> None:
        if self._locked and self.linked is not None:
            self._free(self.linked)
        self._locked = False

    def close(self) -> None:
        """Do nothing: the disk forgets the content when the temporary name is removed."""


class WholeFile:
    """A file that is one object, which `sync` creates. It is written once."""

    is_ended = False

    def __init__(self, disk: ObjectWriter, key: str) -> None:
        self._disk = disk
        self._key = key
        self._content = bytearray()
        self._created = False

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        write_into(self._content, parts, offset)

    def sync(self) -> None:
        if self._created:
            self._disk.replace_object(self._key, bytes(self._content))
        else:
            self._disk.create_object(self._key, bytes(self._content))
            self._created = True

    def truncate(self, length: int) -> None:
        del self._content[length:]

    def lock(self) -> bool:
        return False

    def unlock(self) -> None:
        """Do nothing: only published files are locked."""

    def close(self) -> None:
        """Create the object if nothing was ever written, as a disk keeps the name of an empty file."""
        if not self._created and not self._content:
            self.sync()


class GrowingFile:
    """A file of frames: each `sync` creates one object, whose name is the offset at which it begins."""

    def __init__(self, disk: ObjectWriter, key: str, end: int, *, is_ended: bool = False) -> None:
        self.is_ended = is_ended
        self._disk = disk
        self._key = key
        self._end = end
        self._waiting = bytearray()

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        content = b"".join(parts)
        # A new owner writes the last frame again before it builds upon it, for the sake of disks. An object that was
        # read is durable as it is.
        if offset + len(content) <= self._end:
            return
        if offset != self._end + len(self._waiting):
            raise OSError(errno.EINVAL, f"bytes at {offset} do not follow the {self._end} bytes that are there")
        self._waiting += content

    def sync(self) -> None:
        if not self._waiting:
            return
        try:
            self._disk.create_object(part_key(self._key, self._end), bytes(self._waiting))
        except FileExistsError as error:
            raise FileEnded(errno.ESTALE, "another owner has ended the file") from error
        self._end += len(self._waiting)
        self._waiting.clear()

    def truncate(self, length: int) -> None:
        self._waiting.clear()
        self._disk.cut_parts(self._key, length)
        self._end = length

    def lock(self) -> bool:
        return False

    def unlock(self) -> None:
        """Do nothing: only published files are locked."""

    def close(self) -> None:
        """Do nothing: an object is complete when it exists."""


def write_into(held: bytearray, parts: Sequence[Bytes], offset: int) -> None:
    """Write `parts` into `held` from byte `offset` on."""
    content = b"".join(parts)
    held.extend(bytes(max(0, offset - len(held))))
    held[offset : offset + len(content)] = content
