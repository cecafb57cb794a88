"""Keep the side files of a store as objects of its bucket: see `SideFiles` of `stores.side_files`.

A file is replaced under the condition that it is still the object that was read (`If-Match`). So is one that is written
without a look at its content: a request that failed and was repeated may arrive once more, after a newer one, and must
find its condition broken.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from everlog.store.base.disk import storage
from everlog.store.base.names import BUCKETS, url_of
from everlog.store.object.bucket import PAUSES_S, BucketError, ObjectTag, TaggedBucket, UnknownOutcome, again, wait
from everlog.store.object.object_disk import FOLDER
from everlog.store.object.obstore_bucket import open_bucket

T = TypeVar("T")
WRITES_MAX = 20
"""Number of attempts to write a file that others write, too."""
BUCKETS_MAX = 16
"""Number of buckets whose connections a process keeps."""
_SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")
"""Beginnings of the variables that say how a bucket is reached."""


class BucketSideFiles:
    """Side files of the stores in one bucket. Paths below `root` are keys."""

    def __init__(self, bucket: TaggedBucket, root: Path, pause: Callable[[float], None] = wait,
                 pauses_s: Sequence[float] = PAUSES_S) -> None:  # fmt: skip
        self._bucket = bucket
        self._root = root
        self._pause = pause
        self._pauses_s = pauses_s

    def stamp(self, path: Path) -> ObjectTag | None:
        with self._storage("look at", path):
            return self._again(lambda: self._bucket.tag(self._key(path)))

    def read(self, path: Path) -> tuple[bytes, ObjectTag] | None:
        with self._storage("read", path):
            try:
                return self._again(lambda: self._bucket.get_tagged(self._key(path)))
            except FileNotFoundError:
                return None

    def write(self, path: Path, content: bytes) -> None:
        with self._storage("write", path):
            for _ in range(WRITES_MAX):
                if self._put(path, content, self._again(lambda: self._bucket.tag(self._key(path)))):
                    return
            raise BucketError(f"others wrote it {WRITES_MAX} times meanwhile", "Try again.")

    def replace(self, path: Path, content: bytes, before: tuple[bytes, tuple[int | str, ...]] | None) -> bool:
        tag = None if before is None else (str(before[1][0]), str(before[1][1]))
        with self._storage("write", path):
            return self._put(path, content, tag)

    def _put(self, path: Path, content: bytes, tag: ObjectTag | None) -> bool:
        """Replace the object that has a tag; None: create it. Return False if another one is there."""
        key, is_unknown = self._key(path), False

        def attempt() -> bool:
            nonlocal is_unknown
            try:
                if tag is None:
                    self._bucket.put_new(key, content)
                else:
                    self._bucket.put_over(key, content, tag)
            except UnknownOutcome:
                is_unknown = True
                raise
            except FileExistsError:  # perhaps an earlier attempt, which seemed to fail, has done it
                return is_unknown and self._content(key) == content
            except FileNotFoundError:
                return False
            return True

        return self._again(attempt)

    def _content(self, key: str) -> bytes | None:
        try:
            return self._bucket.get_tagged(key)[0]
        except FileNotFoundError:
            return None

    def remove(self, path: Path) -> None:
        with self._storage("remove", path):
            self._again(lambda: self._bucket.delete([self._key(path)]))

    def names(self, folder: Path) -> list[str]:
        with self._storage("list", folder):
            found = self._again(lambda: self._bucket.children(self._key(folder)))
        return [name for name in found if name and name != FOLDER]

    def _key(self, path: Path) -> str:
        return "" if path == self._root else path.relative_to(self._root).as_posix()

    def _storage(self, doing: str, path: Path) -> AbstractContextManager[None]:
        return storage(doing, url_of(path) or path)

    def _again(self, request: Callable[[], T]) -> T:
        return again(request, self._pause, self._pauses_s)


def files_below(path: Path) -> BucketSideFiles:
    """Return the side files of the bucket that `path` is in. Raises UsageError, StoreError."""
    start = path.parts.index(BUCKETS) + 3
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_SETTINGS)))
    return _opened(Path(*path.parts[:start]), settings)


@lru_cache(BUCKETS_MAX)
def _opened(root: Path, _settings: tuple[tuple[str, str], ...]) -> BucketSideFiles:
    """Return the bucket whose folder is `root`. Other settings open it again."""
    with storage("reach", url_of(root)):
        return BucketSideFiles(open_bucket(url_of(root)), root)
