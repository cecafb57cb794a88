"""Tell readers in one event loop of the records that are appended to logs, by any process.

One task for each partition that has readers reads what is new and hands it to all its readers: a thousand readers
of one shard cost one read. A partition is looked at every `BUSY_S` seconds while it grows, and less and less often
while it rests; `nudge` has it looked at now. Nothing is locked, and no host is asked.

A reader that is slow loses nothing: its queue is bounded, and when the queue overflows the reader reads from the log
again.

Used by the server's streams of one agent; `store_feed` has the records of all.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from everlog.actors.ports.ports import Ports
from everlog.events import EverlogError, Record
from everlog.store import FileStore, LogReader, records_of
from everlog.store.base.move_records import is_departure
from everlog.store.log.log_follower import CommitRewritten, LogFollower

BUSY_S = 0.05
"""Seconds between two looks at a partition that has just grown."""
SLOWER = 1.3
"""Factor by which the looks at a resting partition grow apart."""
REST_S = 1.0
"""Largest number of seconds between two looks at a partition."""
QUEUED_MAX = 1000
"""Records that wait for one reader; above that the reader reads from the log again."""
READ_RECORDS = 500
"""Records that a reader takes from the log at once."""


class _Queue:
    """Records of one agent that wait for one reader."""

    __slots__ = ("arrived", "error", "overflowed", "records")

    def __init__(self) -> None:
        self.records: deque[Record] = deque()
        self.arrived = asyncio.Event()
        self.overflowed = False
        self.error: EverlogError | None = None
        """Error that ended the tail."""

    def put(self, record: Record) -> None:
        if len(self.records) >= QUEUED_MAX:
            self.overflowed = True
            self.records.clear()
        if not self.overflowed:
            self.records.append(record)
        self.arrived.set()

    async def take(self) -> Sequence[Record]:
        """Wait for records, and return them all. Raises the error that ended the tail."""
        await self.arrived.wait()
        self.arrived.clear()
        if self.error is not None:
            raise self.error
        taken = list(self.records)
        self.records.clear()
        return taken


class _PartitionTail:
    """New records of one partition, and their readers."""

    def __init__(self, name: str, store: FileStore, ports: Ports) -> None:
        self.readers: dict[str, set[_Queue]] = {}
        """Queues of the readers of each agent."""
        self.ready = asyncio.Event()
        """Set once the end of the partition was found: everything after it is handed over."""
        self.hurry = asyncio.Event()
        """Set to have the partition looked at now."""
        self._follower = LogFollower(store.partition(name))
        self.heads: dict[str, tuple[int, bool]] = {}
        """Seq of the last record of each agent as far as this partition was read, and True if the agent moved away.

        An agent may be missing.
        """
        self._ports = ports
        self._commit = 0
        self._looks: list[asyncio.Future[bool]] = []
        """Callers that wait for a look at the partition that begins after they asked."""

    async def run(self) -> None:
        """Read and hand over until an error ends the tail, which all readers then get."""
        try:
            await self._ports.aside(self._find_end)
            self.ready.set()
            await self._hand_over()
        except EverlogError as error:
            self.ready.set()
            for queue in [queue for queues in self.readers.values() for queue in queues]:
                queue.error = error
                queue.arrived.set()
        finally:
            self._answer(len(self._looks), is_read=False)

    async def look(self) -> bool:
        """Wait until all that is written by now was handed over. Return False if the tail ended before."""
        if not self.ready.is_set():
            return False
        looked: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._looks.append(looked)
        self.hurry.set()
        return await looked

    def _answer(self, count: int, *, is_read: bool) -> None:
        for looked in self._looks[:count]:
            if not looked.done():
                looked.set_result(is_read)
        del self._looks[:count]

    async def _hand_over(self) -> None:
        wait = BUSY_S
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.hurry.wait(), wait)
            self.hurry.clear()  # before the look: a call of `nudge` during it asks for another one
            asked = len(self._looks)
            grew = await self._ports.aside(self._new)
            for record in grew:
                self._note(record)
                for queue in self.readers.get(record.agent_id, ()):
                    queue.put(record)
            self._answer(asked, is_read=True)
            wait = BUSY_S if grew else min(wait * SLOWER, REST_S)

    def _find_end(self) -> None:
        """Move to the end of the partition, and note the head of each agent."""
        last: dict[str, Record] = {}
        self._commit = self._follower.skip_to_end(lambda table: last.update(_last_of_each(table)))
        self.heads = {name: (head.seq, head.away) for name, head in self._follower.closed_heads().items()}
        for record in last.values():
            if record.seq > self.heads.get(record.agent_id, (0, False))[0]:
                self._note(record)

    def _note(self, record: Record) -> None:
        self.heads[record.agent_id] = record.seq, is_departure(record)

    def _new(self) -> Sequence[Record]:
        """Return the records after those that were read before."""
        if not self._follower.has_more(self._commit):
            return ()
        found: list[Record] = []
        try:
            for table in self._follower.since(self._commit):
                self._commit = table.column("commit")[-1].as_py()
                found += records_of(table)
        except CommitRewritten:  # a crash took a commit that was never acknowledged: its place is read again
            self._commit -= 1
            self.heads.clear()
        return found


class LogTails:
    """The tails of the partitions that readers follow now. Belongs to one event loop."""

    def __init__(self, store: FileStore, ports: Ports) -> None:
        self._store, self._ports = store, ports
        self._tails: dict[str, tuple[_PartitionTail, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        """Tasks of all tails, also of those that end."""

    def nudge(self, agent_id: str) -> None:
        """Have the partition of an agent looked at now, because this process knows that it has grown."""
        for tail, _ in self._tails.values():
            if agent_id in tail.readers:
                tail.hurry.set()

    async def head(self, agent_id: str) -> int:
        """Return the seq of the last record of an agent whose partition is followed now; 0 if it is not known here.

        Only what is new is read of the partition.
        """
        partition = await self._ports.aside(self._store.partition_of, agent_id)
        tail, _ = self._tails.get(partition, (None, None))
        if tail is None or not await tail.look():
            return 0
        seq, is_away = tail.heads.get(agent_id, (0, False))
        return 0 if is_away else seq

    async def follow(self, agent_id: str, after: int) -> AsyncIterator[Sequence[Record]]:
        """Yield the records of an agent after seq `after`, in order and each once: first those of the log, then new
        ones as they are written, for ever.

        Raises UnknownAgent, CorruptLog, StoreError.
        """
        while True:
            partition = await self._ports.aside(self._store.partition_of, agent_id)
            queue = _Queue()
            tail = self._join(partition, agent_id, queue)
            try:
                await tail.ready.wait()
                async for records in self._followed(agent_id, after, partition, tail, queue):
                    after = records[-1].seq
                    yield records
            finally:
                self._leave(partition, tail, agent_id, queue)

    async def _followed(
        self, agent_id: str, after: int, partition: str, tail: _PartitionTail, queue: _Queue
    ) -> AsyncIterator[Sequence[Record]]:
        """Yield the records after a seq until the queue overflows or the agent is in another partition."""
        aside = self._ports.aside
        reader: LogReader | None = None
        if agent_id in tail.heads:
            head, away = tail.heads[agent_id]
        else:
            reader = await aside(self._store.reader, agent_id)
            found = await aside(reader.head, agent_id)
            head, away = found.seq, found.away
            # What is written after this head comes through the queue, unless the agent had moved when it was read.
            if await aside(self._store.partition_of, agent_id) != partition:
                return
        while after < head:
            reader = reader or await aside(self._store.reader, agent_id)
            records = await aside(_read, reader, agent_id, after + 1, min(head, after + READ_RECORDS))
            if not records or not _continue(records, after):  # the agent moved meanwhile: open its log again
                tail.heads.pop(agent_id, None)
                return
            after = records[-1].seq
            yield records
        del reader  # it holds what it has read, and a reader may wait for days
        while not queue.overflowed:
            if away:  # the register names the new partition a moment later, or when the agent is opened next
                await self._until_moved(agent_id, partition, queue)
                return
            new = [record for record in await queue.take() if record.seq > after]
            if new and not _continue(new, after):  # the agent was elsewhere, or the queue overflowed: see the log
                return
            if new:
                after = new[-1].seq
                yield new
                away = is_departure(new[-1])

    async def _until_moved(self, agent_id: str, partition: str, queue: _Queue) -> None:
        """Wait until the register says that an agent is in another partition, or the agent comes back to this one."""
        wait = BUSY_S
        while not queue.arrived.is_set() and await self._ports.aside(self._store.partition_of, agent_id) == partition:
            with suppress(TimeoutError):
                await asyncio.wait_for(queue.arrived.wait(), wait)
            wait = min(wait * SLOWER, REST_S)
        if queue.error is not None:
            raise queue.error

    def _join(self, partition: str, agent_id: str, queue: _Queue) -> _PartitionTail:
        if partition not in self._tails or self._tails[partition][1].done():
            tail = _PartitionTail(partition, self._store, self._ports)
            task = asyncio.get_running_loop().create_task(tail.run())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self._tails[partition] = (tail, task)
        tail, _ = self._tails[partition]
        tail.readers.setdefault(agent_id, set()).add(queue)
        return tail

    def _leave(self, partition: str, tail: _PartitionTail, agent_id: str, queue: _Queue) -> None:
        queues = tail.readers[agent_id]
        queues.discard(queue)
        if not queues:
            del tail.readers[agent_id]
        current, task = self._tails.get(partition, (None, None))
        if current is tail and task is not None and not tail.readers:  # one that an error ended may have been replaced
            del self._tails[partition]
            task.cancel()

    async def close(self) -> None:
        """Stop following, and wait until nothing is read any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _last_of_each(table: pa.Table) -> Mapping[str, Record]:
    """Return the last record of each agent in a table, by name."""
    rows = {name: row for row, name in enumerate(table.column("agent_id").to_pylist())}
    return {name: next(records_of(table.slice(row, 1))) for name, row in rows.items()}


def _read(reader: LogReader, agent_id: str, first: int, last: int) -> Sequence[Record]:
    return list(reader.read(agent_id, first, last))


def _continue(records: Sequence[Record], after: int) -> bool:
    """Return True if records follow a seq without a gap."""
    return [record.seq for record in records] == list(range(after + 1, after + 1 + len(records)))
