"""Define what the store needs of a bucket, and the errors of buckets.

Implemented by `obstore_bucket` for real services and by the simulation; used by `ObjectDisk`. Keys are relative to the
prefix of the store. Two properties of the service are essential: a conditional put creates an object or fails, and a
listing shows every object whose put has returned.
"""

import errno
import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from everlog.store.base.disk import Bytes


class BucketError(OSError):
    """A request that the service, or the way to it, did not answer as the store needs; `cure` is what to do."""

    def __init__(self, reason: str, cure: str, code: int = errno.EIO) -> None:
        super().__init__(code, reason)
        self.cure = cure


class UnknownOutcome(BucketError):
    """A request that may have been carried out although it failed: a timeout, or an error of the service."""


class ListedObject(NamedTuple):
    """One object of a listing."""

    key: str
    bytes: int


class Bucket(Protocol):
    """Objects under one prefix of a bucket. Methods raise FileNotFoundError for a missing object, and BucketError."""

    @property
    def url(self) -> str:
        """Address of the prefix, without credentials."""
        ...

    def put_new(self, key: str, content: Bytes) -> None:
        """Create an object, whole and durable. Raises FileExistsError if there is one, UnknownOutcome."""
        ...

    def put(self, key: str, content: Bytes) -> None:
        """Create or replace an object. Raises UnknownOutcome."""
        ...

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """Return up to `length` bytes (None: all) from `start` on."""
        ...

    def get_all(self, keys: Sequence[str]) -> list[bytes]:
        """Return several objects, requested at the same time if the service allows it."""
        ...

    def size(self, key: str) -> int | None:
        """Return the bytes of an object; None if there is none."""
        ...

    def objects(self, folder: str) -> list[ListedObject]:
        """Return all objects below the folder `folder`, sorted by key."""
        ...

    def children(self, folder: str) -> list[str]:
        """Return the names of objects and folders in `folder` itself; the empty name means the prefix."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; a missing one is no error."""
        ...


def missing(key: str) -> FileNotFoundError:
    """Return the error for an object that does not exist."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)


def taken(key: str) -> FileExistsError:
    """Return the error for an object that exists already."""
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), key)
