"""Keep files as objects of a bucket, behind the protocol `Disk`.

    everlog.json, agents/, names/, shards/         one object for a file, created by a conditional put
    log/<partition>/epoch-*, manifest-*, *.parquet  the same
    log/<partition>/<file>.open                    an empty object: the name of a file of frames
    parts/log/<partition>/<file>.open/<offset>     the frames of one group commit, created by a conditional put
    <folder>/.folder                               a folder that may be empty

A commit is one conditional put of the next part. A new owner that cannot know its predecessor to be gone ends the
predecessor's file: it creates an empty part at the end. Then no put of the predecessor succeeds, however late it
arrives, so a put that succeeds is an acknowledgement. An empty part is never deleted: its name would be free again.

A put of unknown outcome is repeated; if the object then exists, its content tells whose it is, because no two writers
write the same bytes under one name, or else it does not matter whose it is. Docs: decision 58.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from everlog.store.base.disk import Bytes, DiskFile
from everlog.store.base.memory_disk import memory_fd
from everlog.store.base.store_constants import CLAIMS, SIDE_FILES, SIDE_FOLDERS
from everlog.store.object.bucket import PAUSES_S, Bucket, ListedObject, UnknownOutcome, again, missing, taken, wait
from everlog.store.object.object_file import GrowingFile, TemporaryFile, WholeFile, part_key

GROWING = ".open"
EPOCH = "epoch-"
TREES = ("agents/", "log/")
"""Folders that hold folders, and these only."""
TEMPORARY = ".tmp"
FOLDER = ".folder"
FREED = ".freed"
"""Ending of the object which says that the owner of an epoch has closed its log and will not write again."""
REMOVED = b"removed"
"""Content of the name of a file of frames while its parts are deleted; before that it is empty."""
HIDDEN = (FOLDER, FREED)
T = TypeVar("T")
BESIDE_MAX = 8
"""Threads that ask the bucket while others write to it."""


class ObjectDisk:
    """Disk in a bucket: paths below `root` become keys. See `Disk` for the promises of each method."""

    ends_files = True

    def __init__(self, bucket: Bucket, root: Path, pause: Callable[[float], None] = wait,
                 prepare: Callable[[Bucket], None] = lambda _: None, threads: bool = True,
                 pauses_s: Sequence[float] = PAUSES_S) -> None:  # fmt: skip
        """Store the collaborators. `prepare` raises an error if the bucket cannot hold a new store; `pause` waits for
        some seconds, those of `pauses_s`; without `threads` one request follows the other.
        """
        self._pauses_s = pauses_s
        self._pool = ThreadPoolExecutor(BESIDE_MAX, "everlog-bucket") if threads else None
        self.bucket = bucket
        self._root = root
        self._pause = pause
        self._prepare = prepare
        self._temporary: dict[Path, TemporaryFile] = {}
        self._made: set[Path] = set()

    def create(self, path: Path) -> DiskFile:
        if path.name.endswith(TEMPORARY):
            if path in self._temporary:
                raise taken(str(path))
            file = TemporaryFile(self._free)
            self._temporary[path] = file
            return file
        key = self._key(path)
        if path.name.endswith(GROWING):
            self.create_object(key, b"")
            return GrowingFile(self, key, 0)
        if self._again(lambda: self.bucket.size(key)) is not None:
            raise taken(key)
        return WholeFile(self, key)

    def open(self, path: Path) -> DiskFile:
        key = self._key(path)
        parts = self._parts(key)
        self._check_not_removed(key)
        return GrowingFile(self, key, _end_of(parts), is_ended=any(not part.bytes for part in parts))

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        if path in self._temporary:
            held = self._temporary[path].content
            return bytes(held[offset : None if length is None else offset + length])
        key = self._key(path)
        if not path.name.endswith(GROWING):
            return self._again(lambda: self.bucket.get(key, offset, length))
        parts = self._parts(key)
        end = _end_of(parts) if length is None else min(offset + length, _end_of(parts))
        wanted = [part for part in parts if _offset(part) < end and _offset(part) + part.bytes > offset]
        # Looked at after the listing: a removal is said first, so if it was not said no part was missing there. A part
        # that is deleted later is missed when it is read.
        check = self.beside(partial(self._check_not_removed, key))
        try:
            contents = self._again(lambda: self.bucket.get_all([part.key for part in wanted]))
        except FileNotFoundError as error:
            raise missing(key) from error
        check()
        data = bytearray()
        start = _offset(wanted[0]) if wanted else 0
        for part, content in zip(wanted, contents, strict=True):
            # A lost part reads as zeros, as a hole of a file does: the frames after it show that it is damage.
            data.extend(bytes(_offset(part) - start - len(data)))
            data.extend(content)
        return bytes(data[max(0, offset - start) : max(0, end - start)])

    def size(self, path: Path) -> int:
        key = self._key(path)
        if path.name.endswith(GROWING):
            end = _end_of(self._parts(key))
            self._check_not_removed(key)
            return end
        found = self._again(lambda: self.bucket.size(key))
        if found is None:
            raise missing(key)
        return found

    def names(self, path: Path) -> list[str]:
        key = self._key(path)
        found = self._again(lambda: self.bucket.children(key))
        if not found and path not in self._made:
            raise missing(key)
        held = [other.name for other in list(self._temporary) if other.parent == path]
        return [name for name in found if not name.endswith(HIDDEN) and (key or name != "parts")] + held

    def exists(self, path: Path) -> bool:
        if path in self._temporary or path in self._made:
            return True
        key = self._key(path)
        # One request tells: the depth of a path says whether a folder or a file is meant.
        depth = key.count("/")
        if not key or (depth < 2 and "." not in path.name and (depth == 0 or key.startswith(TREES))):
            return bool(self._again(lambda: self.bucket.children(key)))
        return self._again(lambda: self.bucket.size(key)) is not None

    def make_dirs(self, path: Path) -> None:
        if path == self._root:
            self._again(lambda: self._prepare(self.bucket))
        if path in self._made:
            return
        key = self._key(path)
        self.replace_object(f"{key}/{FOLDER}" if key else FOLDER, b"")
        self._made.add(path)

    def link(self, source: Path, target: Path) -> None:
        file = self._temporary.get(source)
        if file is None:
            raise missing(str(source))
        self.create_object(self._key(target), bytes(file.content))
        file.linked = target

    def remove(self, path: Path) -> None:
        if self._temporary.pop(path, None) is not None:
            return
        key = self._key(path)
        if path.name.endswith(GROWING):
            # Said in the name before any part is deleted, so that no reader takes half of a file for all of it. The
            # name goes last, so that the next owner finds what a process that was killed here has left.
            self.replace_object(key, REMOVED)
            parts = [part.key for part in self._parts(key) if part.bytes]
            if parts:
                self._again(lambda: self.bucket.delete(parts))
        self._again(lambda: self.bucket.delete([key, f"{key}{FREED}"] if path.name.startswith(EPOCH) else [key]))

    def sync_dir(self, path: Path) -> None:
        """Do nothing: an object has its name durably from the beginning."""

    def is_locked(self, path: Path) -> bool | None:
        """Return False if the owner has said that it is done. A bucket cannot say that a process lives."""
        key = self._key(path)
        return False if self._again(lambda: self.bucket.size(f"{key}{FREED}")) is not None else None

    def hold(self, path: Path) -> int:
        return memory_fd(self.read(path))

    def beside(self, ask: Callable[[], T]) -> Callable[[], T]:
        if self._pool is not None:
            return self._pool.submit(ask).result
        answer = ask()
        return lambda: answer

    def end(self, path: Path, length: int) -> bool:
        """Let no other writer append to a file of frames of `length` bytes, for ever. Return False if it has grown."""
        key = part_key(self._key(path), length)
        try:
            self.create_object(key, b"")
        except FileExistsError:
            return self._again(lambda: self.bucket.size(key)) == 0
        return True

    def leftovers(self, path: Path) -> list[str]:
        key = self._key(path)
        # The parts are listed before the names are looked for: a writer makes the name first, so that a part whose
        # name is missing afterwards belongs to a file that was removed, and not to one that begins just now. A name
        # that is not empty says that its file is removed: that was interrupted, if the parts are still there.
        start = len(f"parts/{key}/")
        names = {part.key[start:].partition("/")[0] for part in self._parts(key) if part.bytes}
        return [name for name in sorted(names) if self._again(partial(self.bucket.size, f"{key}/{name}")) != 0]

    def create_object(self, key: str, content: Bytes) -> None:
        """Create an object, also if the outcome of an attempt stays unknown. Raises FileExistsError, OSError."""
        unknown = False

        def attempt() -> None:
            nonlocal unknown
            try:
                self.bucket.put_new(key, content)
            except UnknownOutcome:
                unknown = True
                raise
            except FileExistsError:
                if not unknown or self.bucket.get(key) != content:
                    raise

        self._again(attempt)

    def replace_object(self, key: str, content: Bytes) -> None:
        """Create or replace an object. Raises OSError."""
        self._again(lambda: self.bucket.put(key, content))

    def cut_parts(self, key: str, length: int) -> None:
        """Delete the parts of a file of frames after `length`, the last first. Only for a file without a writer."""
        for part in reversed(self._parts(key)):
            if part.bytes and _offset(part) >= length:
                self._again(partial(self.bucket.delete, [part.key]))
            elif _offset(part) < length < _offset(part) + part.bytes:
                kept = self._again(partial(self.bucket.get, part.key, 0, length - _offset(part)))
                self.replace_object(part.key, kept)

    def _parts(self, key: str) -> list[ListedObject]:
        return self._again(lambda: self.bucket.objects(f"parts/{key}"))

    def _check_not_removed(self, key: str) -> None:
        if self._again(lambda: self.bucket.size(key)) != 0:
            raise missing(key)

    def _free(self, path: Path) -> None:
        self.replace_object(f"{self._key(path)}{FREED}", b"")

    def _key(self, path: Path) -> str:
        return "" if path == self._root else path.relative_to(self._root).as_posix()

    def _again(self, request: Callable[[], T]) -> T:
        """Return the answer to a request, which is repeated while its outcome is unknown. Raises OSError."""
        return again(request, self._pause, self._pauses_s)


def _offset(part: ListedObject) -> int:
    return int(part.key.rpartition("/")[2])


def _end_of(parts: Sequence[ListedObject]) -> int:
    return max((_offset(part) + part.bytes for part in parts), default=0)


def foreign_keys(keys: Iterable[str]) -> list[str]:
    """Return the keys that no store writes, sorted."""
    ours = ("agents/", "names/", "shards/", "log/", "parts/", f"{CLAIMS}/", *(f"{folder}/" for folder in SIDE_FOLDERS))
    names = {"everlog.json", "copying.json", FOLDER, *SIDE_FILES}
    return sorted(key for key in keys if not key.startswith(ours) and key not in names)
