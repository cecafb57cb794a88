"""Define what the store needs of a bucket, and the errors of buckets.

Implemented by `obstore_bucket` for real services and by the simulation; used by `ObjectDisk`. Keys are relative to the
prefix of the store. Two properties of the service are essential: a conditional put creates an object or fails, and a
listing shows every object whose put has returned.
"""

import errno
import os
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from everlog.store.base.disk import Bytes

PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before each further attempt of a request whose outcome is unknown."""
ObjectTag = tuple[str, str]
"""Version of an object, for conditions: its entity tag, and what some services have beside it."""
T = TypeVar("T")


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


class TaggedBucket(Bucket, Protocol):
    """A bucket that also replaces an object under the condition that it is the one that was read."""

    def tag(self, key: str) -> ObjectTag | None:
        """Return the tag of an object; None if there is none."""
        ...

    def get_tagged(self, key: str) -> tuple[bytes, ObjectTag]:
        """Return an object, and its tag."""
        ...

    def put_over(self, key: str, content: Bytes, tag: ObjectTag) -> None:
        """Replace the object that has this tag. Raises FileExistsError if it has another, FileNotFoundError if there is
        none, UnknownOutcome.
        """
        ...


def wait(seconds: float) -> None:
    """Wait before a request is repeated."""
    threading.Event().wait(seconds)


def again(request: Callable[[], T], pause: Callable[[float], None], pauses_s: Sequence[float]) -> T:
    """Return the answer to a request, which is repeated while its outcome is unknown. Raises OSError."""
    for seconds in pauses_s:
        try:
            return request()
        except UnknownOutcome:
            pause(seconds)
    return request()


def missing(key: str) -> FileNotFoundError:
    """Return the error for an object that does not exist."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)


def taken(key: str) -> FileExistsError:
    """Return the error for an object that exists already."""
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), key)
