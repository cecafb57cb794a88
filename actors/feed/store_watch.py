"""Watch all partitions of a store: which there are, and which of them have grown. Nothing is locked, no host is asked.

A partition that rests costs one `stat` of its folder and one of its open file at each look, and the looks grow apart to
one second: ten thousand partitions that rest cost about as much as one that works. The folder's time changes when files
come and go, and the file's size changes with each commit. A time can stay the same if two changes are close together,
so a folder that changed lately is listed each time.

One watch serves all readers of a process: each reader has the set of partitions that grew since it looked.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from everlog.actors.feed.feed_position import key_of
from everlog.actors.ports.ports import Ports
from everlog.events import EverlogError, StoreError
from everlog.store import FileStore, is_shared
from everlog.store.base.disk import storage
from everlog.store.log.log_follower import CommitRewritten, LogFollower

BUSY_S = 0.05
"""Seconds between two looks at a partition that has just grown."""
SLOWER = 1.3
"""Factor by which the looks at a resting partition grow apart."""
REST_S = 1.0
"""Largest number of seconds between two looks at a partition."""
YOUNG_S = 3.0
"""Seconds after a change of a folder during which its time does not prove that it is unchanged."""
FOLLOWERS_MAX = 500
"""Partitions whose place in the open file is remembered; others are read from the beginning of that file."""


class _Seen:
    """One partition as it was at the last look."""

    __slots__ = (
        "changed_at", "due", "end", "error", "folder_ns", "follower", "is_settled", "open_path", "path", "size", "wait"
    )  # fmt: skip

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = 0
        """Last commit."""
        self.error: EverlogError | None = None
        """Reason why the partition could not be read at the last look."""
        self.due = 0.0
        self.wait = BUSY_S
        self.folder_ns = -1
        self.changed_at = 0.0
        self.is_settled = False
        """True: an equal time of the folder proves that it is unchanged."""
        self.open_path: Path | None = None
        self.size = -1
        self.follower: LogFollower | None = None


class WatchReader:
    """Partitions that grew, for one reader."""

    def __init__(self) -> None:
        self.grown: set[str] = set()
        self.arrived = asyncio.Event()
        self.failure: EverlogError | None = None
        """Error that ended the watch."""

    def tell(self, partitions: Iterable[str]) -> None:
        """Add partitions and wake the reader."""
        self.grown.update(partitions)
        self.arrived.set()


class StoreWatch:
    """The partitions of a store and their ends. Belongs to one event loop; looks only while there are readers."""

    def __init__(self, store: FileStore, ports: Ports) -> None:
        self._store, self._ports = store, ports
        self._seen: dict[str, _Seen] = {}
        self._readers: set[WatchReader] = set()
        self._task: asyncio.Task[None] | None = None
        self._first = asyncio.Event()
        self._keys: dict[bytes, str] = {}
        self._streams: dict[str, str] = {}
        self._listing_due = 0.0
        self._followers = 0

    async def join(self) -> WatchReader:
        """Begin to read: return once the ends of all partitions are known. Raises StoreError, CorruptLog."""
        reader = WatchReader()
        self._readers.add(reader)
        if self._task is None or self._task.done():
            self._first.clear()
            for seen in self._seen.values():
                seen.due = 0.0
            self._listing_due = 0.0
            self._task = asyncio.get_running_loop().create_task(self._run())
        await self._first.wait()
        if reader.failure is not None:
            raise reader.failure
        return reader

    async def leave(self, reader: WatchReader) -> None:
        """End reading."""
        self._readers.discard(reader)
        if not self._readers and self._task is not None:
            await self.close()

    def ends(self) -> dict[str, int]:
        """Return the last commit of each partition at the last look."""
        return {name: seen.end for name, seen in self._seen.items()}

    def error_of(self, partition: str) -> EverlogError | None:
        """Return the reason why a partition cannot be read; None if it can."""
        return self._seen[partition].error if partition in self._seen else None

    def stream_in(self, partition: str) -> str:
        """Return the stream that has a dedicated partition to itself; empty for a shard. Reads the register once."""
        if is_shared(partition):
            return ""
        found = self._streams.get(partition, "")
        if not found:
            inside = self._store.register_files.inside(partition)
            found = self._streams[partition] = inside[0] if inside else ""
        return found

    async def close(self) -> None:
        """Stop looking."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                grown = await self._ports.aside(self._look, loop.time())
                self._first.set()
                if grown:
                    for reader in self._readers:
                        reader.tell(grown)
                soonest = min((seen.due for seen in self._seen.values()), default=loop.time() + REST_S)
                await asyncio.sleep(min(max(soonest - loop.time(), BUSY_S), REST_S))
        except EverlogError as error:
            for reader in self._readers:
                reader.failure = error
                reader.arrived.set()
            self._first.set()

    def _look(self, now: float) -> list[str]:
        """Return the partitions that grew, or that failed for the first time."""
        self._find(now)
        grown = []
        for name, seen in self._seen.items():
            if seen.due > now:
                continue
            changed = self._has_changed(seen, now) and self._read_end(name, seen)
            seen.wait = BUSY_S if changed else min(seen.wait * SLOWER, REST_S)
            seen.due = now + seen.wait
            if changed:
                grown.append(name)
        if self._followers > FOLLOWERS_MAX:
            self._forget()
        return grown

    def _find(self, now: float) -> None:
        """Add the partitions that are new. A partition is never removed; one that is being restored is none yet."""
        if now < self._listing_due:
            return
        self._listing_due = now + REST_S
        listed = self._store.partitions(restoring=True)
        if len(listed) == len(self._seen):
            return
        for name in self._store.partitions():
            if name not in self._seen:
                other = self._keys.setdefault(key_of(name), name)
                if other != name:
                    raise StoreError(
                        f"The partitions {other} and {name} have the same mark in positions of a feed, which happens "
                        "once in many million stores. Move the agent of one of them to a shard: `everlog move`."
                    )
                self._seen[name] = _Seen(self._store.partition(name).path)

    def _has_changed(self, seen: _Seen, now: float) -> bool:
        """Return True if a partition may have grown since the last look."""
        path = seen.path
        if self._store.disk.ends_files:  # a bucket's folders have no time of change
            return seen.follower is None or seen.follower.has_more(seen.end)
        with storage("look at", path):
            try:
                folder_ns = path.stat().st_mtime_ns
            except FileNotFoundError:
                return False
            if folder_ns != seen.folder_ns:
                seen.folder_ns, seen.changed_at, seen.is_settled = folder_ns, now, False
            is_listed = not seen.is_settled
            if is_listed:
                seen.is_settled = now - seen.changed_at > YOUNG_S
                newest = max((entry for entry in self._store.disk.names(path) if entry.endswith(".open")), default="")
                seen.open_path = path / newest if newest else None
            size = _size(seen.open_path)
        changed = size != seen.size or seen.error is not None
        seen.size = size
        return changed or (is_listed and (seen.follower is None or seen.follower.has_more(seen.end)))

    def _read_end(self, name: str, seen: _Seen) -> bool:
        """Find the last commit of a partition. Return True if it is another one, or if the partition now fails."""
        before, failed = seen.end, seen.error
        try:
            if seen.follower is None:
                follower = LogFollower(self._store.partition(name))
                seen.end = follower.skip_to_end()
                seen.follower = follower
                self._followers += 1
            else:
                for table in seen.follower.since(seen.end):
                    seen.end = table.column("commit")[-1].as_py()
            seen.error = None
        except CommitRewritten:  # a crash took a commit that was never acknowledged: its number is used again
            seen.end, seen.follower = 0, None
            self._followers -= 1
            return self._read_end(name, seen)
        except EverlogError as error:
            seen.error = error
            if seen.follower is not None:
                self._followers -= 1
            seen.follower = None
            return failed is None
        return seen.end != before or failed is not None

    def _forget(self) -> None:
        """Forget the places in the open files of partitions that rest longest."""
        followed = [seen for seen in self._seen.values() if seen.follower is not None]
        followed.sort(key=lambda seen: -seen.wait)
        for seen in followed[: len(followed) - FOLLOWERS_MAX // 2]:
            seen.follower = None
        self._followers = min(self._followers, FOLLOWERS_MAX // 2)


def _size(path: Path | None) -> int:
    """Return the size of a file; -2 if there is none."""
    try:
        return -2 if path is None else path.stat().st_size
    except FileNotFoundError:
        return -2
