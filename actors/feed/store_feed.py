"""Read every committed record of a store, from a position on: each record once, none lost, in the order of each log.

Records come in portions: whole commits of one partition. Partitions are read side by side, with one rule: the records
of an agent that moved come after those of the partition that it left. A portion says the position after it, so a
reader that stops anywhere continues with the next record, in another process too.

Used by the server's feed, by webhooks and by `everlog follow`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from everlog.actors.feed.feed_position import FeedPosition
from everlog.actors.feed.store_watch import StoreWatch, WatchReader
from everlog.actors.ports.ports import Ports
from everlog.events import AgentMoved, CorruptLog, EverlogError, Record, StoreError
from everlog.store import FileStore, PartitionReader, records_of
from everlog.store.base.arrow_values import int_value
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.base.move_records import FROM, move_in
from everlog.store.log.log_follower import CommitRewritten, LogFollower

RECORDS_MAX = 500
"""Records of a portion, unless one commit has more."""
BYTES_MAX = 256 * 1024
"""Bytes of text and payload of a portion, unless one commit has more."""
FOLLOWERS_MAX = 200
"""Partitions whose place in the open file a reader remembers."""
AGAIN_S = 10.0
"""Seconds after which a partition that could not be read is read again."""
NOW, START = "now", "start"


class FeedFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter of the records that a reader wants."""

    agents: Sequence[str] = ()
    """Names of agents, or patterns with `*`, `?` and `[...]`; none: all."""
    types: Sequence[str] = ()
    """Types of events; none: all."""


class FeedPortion(msgspec.Struct, frozen=True, kw_only=True):
    """Some records of one partition, or the error for which it cannot be read now."""

    partition: str
    commit: int
    """The reader has everything of the partition up to this commit."""
    records: Sequence[Record] = ()
    scanned: int = 0
    """Records that were read, those that the reader does not want included."""
    error: EverlogError | None = None


class _Cursor(NamedTuple):
    """Place in a partition that is being read."""

    tables: Iterator[pa.Table]
    rows: "_Rows"
    at: int


class _Rows(NamedTuple):
    """Wanted records of a table, and where it can be cut."""

    table: pa.Table
    cuts: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    """Rows at which a commit begins, and the number of rows."""
    sizes: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    """Bytes of text and payload before each row, and of all."""
    commits: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    last: int
    """Last commit of the table, whose records may all be unwanted."""
    scanned: int
    waits: dict[int, list[tuple[str, int]]]
    """Commits with an arrival: the partition that the agent left, and the commit in which it did."""


Named = Callable[[str], str | None]
"""Returns the name that a reader has for a stream; None for a stream that it may not know of."""


def _by_own_name(stream: str) -> str | None:
    return stream


class FeedReader:
    """Read position of one reader in all partitions. Belongs to one event loop, and to one task at a time."""

    def __init__(
        self,
        store: FileStore,
        ports: Ports,
        watch: StoreWatch,
        told: WatchReader,
        *,
        wanted: FeedFilter,
        position: FeedPosition,
        named: Named = _by_own_name,
    ) -> None:
        self.position = position
        """The reader has everything up to here."""
        self._store, self._ports, self._watch, self._told = store, ports, watch, told
        self._wanted, self._named = wanted, named
        self._due: dict[str, None] = {name: None for name, end in watch.ends().items() if end != position.of(name)}
        self._due.update((name, None) for name in watch.ends() if watch.error_of(name) is not None)
        self._cursors: dict[str, _Cursor] = {}
        self._followers: dict[str, LogFollower] = {}
        self._streams: dict[str, bool] = {}
        self._failed: dict[str, str] = {}
        """Messages of the partitions that could not be read."""

    async def take(self) -> FeedPortion | None:
        """Return the next portion and advance the position; None if there is nothing new now. Raises StoreError,
        CorruptLog if the store itself cannot be read.
        """
        if self._told.failure is not None:
            raise self._told.failure
        self._told.arrived.clear()
        self._due.update(dict.fromkeys(self._told.grown))
        self._told.grown.clear()
        waiting = 0
        while len(self._due) > waiting:
            name = next(iter(self._due))
            del self._due[name]
            portion = await self._ports.aside(self._read, name)
            if portion is None:
                continue
            if isinstance(portion, str):  # it continues after that partition
                self._due[portion] = None
                self._due[name] = None
                waiting += 1
                continue
            if portion.error is None:
                self._due[name] = None
                self.position.advance(name, portion.commit)
            return portion
        return None

    async def again(self, partition: str, commit: int) -> FeedPortion:
        """Return the portion of a partition from the position to a commit, as `take` returned it once, and advance.

        Raises StoreError, CorruptLog if it cannot be read now.
        """
        portion: FeedPortion = await self._ports.aside(self._read_again, partition, commit)
        self.position.advance(partition, portion.commit)
        return portion

    def _read_again(self, name: str, commit: int) -> FeedPortion:
        self._cursors.pop(name, None)
        records: list[Record] = []
        with suppress(CommitRewritten):
            for table in LogFollower(self._store.partition(name)).since(self.position.of(name)):
                wanted = table.filter(pc.less_equal(table.column("commit"), int_value(commit)))
                records += [record for record in records_of(wanted) if self._wants(record.agent_id)]
                if table.column("commit")[-1].as_py() >= commit:
                    break
        kept = [record for record in records if not self._wanted.types or record.type in self._wanted.types]
        return FeedPortion(partition=name, commit=commit, records=kept)

    async def wait(self, longest_s: float | None = None) -> None:
        """Wait until there may be something new; `longest_s`: not longer than that."""
        longest_s = longest_s or (AGAIN_S if self._failed or self._due else None)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._told.arrived.wait(), longest_s)
        self._due.update(dict.fromkeys(self._failed))

    def _read(self, name: str) -> FeedPortion | str | None:
        """Return the next portion of a partition; None if there is none; or the partition that must be read first."""
        if not self._may_have(name):
            return None
        try:
            portion = self._portion(name)
        except EverlogError as error:
            self._cursors.pop(name, None)
            self._followers.pop(name, None)
            if self._failed.get(name) == str(error):
                return None
            self._failed[name] = str(error)
            return FeedPortion(partition=name, commit=self.position.of(name), error=error)
        self._failed.pop(name, None)
        return portion

    def _may_have(self, name: str) -> bool:
        """Return False for the partition of a stream that the reader does not want, or may not know of."""
        known = self._streams.get(name)
        if known is not None:
            return known
        stream = self._watch.stream_in(name)
        if not stream:
            return True
        shown = self._named(stream)
        self._streams[name] = wanted = shown is not None and _matches(shown, self._wanted.agents)
        if shown is not None and not wanted:
            self._streams.pop(name)
            self.position.advance(name, self._watch.ends().get(name, 0))
        return wanted

    def _portion(self, name: str) -> FeedPortion | str | None:
        cursor = self._cursors.pop(name, None) or self._opened(name)
        if cursor is None:
            return None
        rows, at = cursor.rows, cursor.at
        end = self._end_of(rows, at)
        for commit in sorted(rows.waits):
            if commit <= self.position.of(name) or (end < len(rows.commits) and commit >= rows.commits[end]):
                continue
            blocking = next((left for left, needed in rows.waits[commit] if self._is_behind(left, needed)), None)
            if blocking is not None:
                before = int(np.searchsorted(rows.commits, commit))
                if before <= at:
                    self._cursors[name] = cursor
                    return blocking
                end = before
                break
        records = list(records_of(rows.table.slice(at, end - at)))
        is_last = end >= len(rows.commits)
        if not is_last:
            self._cursors[name] = _Cursor(cursor.tables, rows, end)
            commit = int(rows.commits[end - 1])
        else:
            commit = rows.last
            following = None
            with suppress(CommitRewritten):  # found again, and answered, when the partition is opened again
                following = self._next_rows(cursor.tables)
            if following is not None:
                self._cursors[name] = _Cursor(cursor.tables, following, 0)
        # Types are left out here and not before: an arrival that is not wanted still says what must come first.
        wanted = [record for record in records if not self._wanted.types or record.type in self._wanted.types]
        return FeedPortion(partition=name, commit=commit, records=wanted,
                           scanned=rows.scanned if at == 0 else 0)  # fmt: skip

    def _is_behind(self, partition: str, commit: int) -> bool:
        """Return True if the reader will get a commit of another partition, and does not have it yet."""
        return (
            self.position.of(partition) < commit
            and self._watch.error_of(partition) is None
            and partition not in self._failed
        )

    def _end_of(self, rows: _Rows, at: int) -> int:
        """Return the row at which a portion that begins at a row ends."""
        if at >= len(rows.commits):
            return at
        sized = int(np.searchsorted(rows.sizes, rows.sizes[at] + BYTES_MAX, side="right")) - 1
        last = int(np.searchsorted(rows.cuts, min(at + RECORDS_MAX, sized), side="right")) - 1
        if rows.cuts[last] > at:
            return int(rows.cuts[last])
        return int(rows.cuts[int(np.searchsorted(rows.cuts, at, side="right"))])  # one commit that is too large

    def _opened(self, name: str) -> _Cursor | None:
        """Return the beginning of what the reader does not have; None if it has everything."""
        follower = self._followers.pop(name, None) or LogFollower(self._store.partition(name))
        self._followers[name] = follower
        if len(self._followers) > FOLLOWERS_MAX:
            del self._followers[next(iter(self._followers))]
        after = self.position.of(name)
        try:
            if not follower.has_more(after):
                return None
            tables = follower.since(after)
            rows = self._next_rows(tables)
        except CommitRewritten:
            # A crash of the machine took commits that were never acknowledged: their numbers are used again.
            self.position.advance(name, LogFollower(self._store.partition(name)).skip_to_end())
            del self._followers[name]
            return None
        return None if rows is None else _Cursor(tables, rows, 0)

    def _next_rows(self, tables: Iterator[pa.Table]) -> _Rows | None:
        table = next(tables, None)
        if table is None:
            return None
        last, scanned = table.column("commit")[-1].as_py(), table.num_rows
        names = pc.unique(pc.cast(table.column("agent_id"), pa.string()))
        mine = [name for name in names.to_pylist() if self._wants(name)]
        if len(mine) < len(names):
            column = pc.cast(table.column("agent_id"), pa.string())
            table = table.filter(pc.is_in(column, value_set=pa.array(mine, pa.string())))
        commits = table.column("commit").to_numpy().astype(np.int64)
        lengths = sum(
            pc.fill_null(pc.binary_length(table.column(column)), 0).to_numpy().astype(np.int64)
            for column in ("text", "payload")
        )
        begins = np.flatnonzero(np.diff(commits, prepend=-1))
        return _Rows(
            table=table, cuts=np.append(begins, len(commits)),
            sizes=np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))), commits=commits, last=last,
            scanned=scanned, waits=self._arrivals(table),
        )  # fmt: skip

    def _wants(self, stream: str) -> bool:
        shown = self._named(stream)
        return shown is not None and _matches(shown, self._wanted.agents)

    def _arrivals(self, table: pa.Table) -> dict[int, list[tuple[str, int]]]:
        """Return the commits in which an agent arrives, with the partition and commit in which it departed."""
        found: dict[int, list[tuple[str, int]]] = {}
        moved = table.filter(pc.equal(pc.cast(table.column("type"), pa.string()), AgentMoved.kind))
        for record in records_of(moved):
            move = move_in(record)
            if move is None or move.direction != FROM:
                continue
            left = self._store.partition(move.partition)
            with suppress(CorruptLog, StoreError):
                if move.partition in self._watch.ends() or self._store.disk.exists(left.path):
                    departed = next(PartitionReader(left).read(record.agent_id, move.seq, move.seq), None)
                    if departed is not None:
                        found.setdefault(record.commit, []).append((move.partition, departed.commit))
        return found


class StoreFeed:
    """The feed of a store. Belongs to one event loop."""

    def __init__(self, store: FileStore, ports: Ports) -> None:
        self._store, self._ports = store, ports
        self._watch = StoreWatch(store, ports)

    def parse(self, after: str) -> FeedPosition | None:
        """Return the position that a reader named; None for `now`. Raises BadInput."""
        if after == NOW:
            return None
        return FeedPosition(self._store.store_id) if after == START else FeedPosition.parse(after, self._store.store_id)

    @asynccontextmanager
    async def reader(
        self, position: FeedPosition | None, wanted: FeedFilter, named: Named = _by_own_name
    ) -> AsyncIterator[FeedReader]:
        """Read from a position on, None: from now on. `named` says which streams the reader may see, and as what.

        Raises StoreError, CorruptLog if the store cannot be read.
        """
        told = await self._watch.join()
        try:
            if position is None:
                position = await self._ports.aside(self._now, named)
            yield FeedReader(self._store, self._ports, self._watch, told, wanted=wanted, position=position, named=named)
        finally:
            await self._watch.leave(told)

    def _now(self, named: Named) -> FeedPosition:
        """Return the position after all that was committed at the last look, without what the reader may not see."""
        position = FeedPosition(self._store.store_id)
        for name, end in self._watch.ends().items():
            stream = self._watch.stream_in(name) if end else ""
            if not stream or named(stream) is not None:
                position.advance(name, end)
        return position

    async def close(self) -> None:
        """Stop reading."""
        await self._watch.close()


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
