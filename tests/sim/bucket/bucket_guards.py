"""The guards of a store in a bucket, each with a way to break it and a seed whose world detects that."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from everlog.store.log import partition_recovery
from everlog.store.object import object_disk
from everlog.store.object.bucket import UnknownOutcome
from everlog.store.object.object_disk import FREED, ObjectDisk
from everlog.store.partition import epoch

Break = Callable[[], AbstractContextManager[object]]


def _blind() -> AbstractContextManager[object]:
    """Let no writer look for a newer epoch: only its puts can fence it."""
    return patch.object(epoch.Ownership, "seems_latest", lambda _: True)


def _no_end() -> AbstractContextManager[object]:
    """Let a new owner leave the file of its predecessor open."""
    return patch.object(ObjectDisk, "end", lambda *_: True)


def _unconditional() -> AbstractContextManager[object]:
    """Replace objects that should only be created."""

    def create(disk: Any, key: str, content: bytes) -> None:
        disk.replace_object(key, content)

    return patch.object(ObjectDisk, "create_object", create)


def _hopeful() -> AbstractContextManager[object]:
    """Take a put of unknown outcome for done."""

    def create(disk: Any, key: str, content: bytes) -> None:
        try:
            disk.bucket.put_new(key, content)
        except UnknownOutcome:
            return

    return patch.object(ObjectDisk, "create_object", create)


def _ends_deleted() -> AbstractContextManager[object]:
    """Delete the empty parts with the others, so that their names are free again."""
    remove = ObjectDisk.remove

    def broken(disk: ObjectDisk, path: Path) -> None:
        remove(disk, path)
        if path.name.endswith(object_disk.GROWING):
            disk.bucket.delete([part.key for part in disk._parts(disk._key(path))])

    return patch.object(ObjectDisk, "remove", broken)


def _unsaid_removal() -> AbstractContextManager[object]:
    """Delete the name of a file of frames before its parts, so that a killed process leaves them for ever."""

    def broken(disk: ObjectDisk, path: Path) -> None:
        if disk._temporary.pop(path, None) is None:
            key = disk._key(path)
            disk.bucket.delete([key, f"{key}{FREED}"])
            disk.bucket.delete([part.key for part in disk._parts(key) if part.bytes])

    return patch.object(ObjectDisk, "remove", broken)


def _not_swept() -> AbstractContextManager[object]:
    """Leave what comes back of files that were sealed and removed."""
    return patch.object(ObjectDisk, "leftovers", lambda *_: [])


def _early_read() -> AbstractContextManager[object]:
    """End the file of the predecessor, but build upon what was read before."""
    recover = partition_recovery._take_in

    def broken(where: Any, *rest: Any) -> Any:
        kept: dict[Path, bytes] = {}
        disk = where.disk

        class Early:
            def __getattr__(self, name: str) -> Any:
                return getattr(disk, name)

            def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
                if path.name.endswith(".open") and not offset and length is None:
                    return kept.setdefault(path, disk.read(path))
                return bytes(disk.read(path, offset, length))

            def end(self, path: Path, length: int) -> bool:
                while not disk.end(path, len(disk.read(path))):
                    pass
                return True

        return recover(where._replace(disk=Early()), *rest)

    return patch.object(partition_recovery, "_take_in", broken)


GUARDS: dict[str, tuple[str, Break]] = {
    "look beside a put": ("a writer that was fenced stops at once", _blind),
    "a file is ended": ("after a take-over no put of the earlier owner succeeds", _no_end),
    "puts are conditional": ("of two writers at one place one succeeds", _unconditional),
    "an unknown outcome is no success": ("what is acknowledged is there", _hopeful),
    "ends stay": ("a put that arrives after the frames were deleted fails", _ends_deleted),
    "a removal is said first": ("what a killed process left is found", _unsaid_removal),
    "leftovers are swept": ("what was erased does not come back", _not_swept),
    "read, then end": ("what was acknowledged before the end is taken in", _early_read),
}
"""By name: the purpose of the guard, and a way to break it."""
