"""Deliver records that any process appends to logs to the readers of one event loop.

One task for each partition that has readers reads what is new and hands it to all its readers: a thousand readers
of one shard cost one read. A partition is looked at every `BUSY_S` seconds while it grows, and less and less often
while it rests; `nudge` has it looked at now. Nothing is locked, and no host is asked.

A reader that is slow loses nothing: its queue is bounded, and when the queue overflows the reader reads from the log
again, see `AgentTail`.

Used by the server's streams, by `everlog follow` and by webhooks.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from everlog.actors.ports.ports import Ports
from everlog.events import AgentMoved, EverlogError, Record
from everlog.store import FileStore, LogReader, records_of
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
    """Delivery of the new records of one partition to its readers."""

    def __init__(self, name: str, store: FileStore, ports: Ports) -> None:
        self.readers: dict[str, set[_Queue]] = {}
        """Queues of the readers of each agent."""
        self.ready = asyncio.Event()
        """Set once the end of the partition was found: everything after it is handed over."""
        self.hurry = asyncio.Event()
        """Set to have the partition looked at now."""
        self._follower = LogFollower(store.partition(name))
        self._ports = ports
        self._commit = 0

    async def run(self) -> None:
        """Read and hand over until an error ends the tail, which all readers then get."""
        try:
            self._commit = await self._ports.aside(self._follower.skip_to_end)
            self.ready.set()
            await self._hand_over()
        except EverlogError as error:
            self.ready.set()
            for queue in [queue for queues in self.readers.values() for queue in queues]:
                queue.error = error
                queue.arrived.set()

    async def _hand_over(self) -> None:
        wait = BUSY_S
        while True:
            self.hurry.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.hurry.wait(), wait)
            grew = await self._ports.aside(self._new)
            for record in grew:
                for queue in self.readers.get(record.agent_id, ()):
                    queue.put(record)
            wait = BUSY_S if grew else min(wait * SLOWER, REST_S)

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
        return found


class LogTails:
    """The tails of the partitions that readers follow now. Belongs to one event loop."""

    def __init__(self, store: FileStore, ports: Ports) -> None:
        self._store, self._ports = store, ports
        self._tails: dict[str, tuple[_PartitionTail, asyncio.Task[None]]] = {}

    def nudge(self, agent_id: str) -> None:
        """Have the partition of an agent looked at now, because this process knows that it has grown."""
        for tail, _ in self._tails.values():
            if agent_id in tail.readers:
                tail.hurry.set()

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
                async for records in self._followed(agent_id, after, queue):
                    after = records[-1].seq
                    yield records
            finally:
                self._leave(partition, agent_id, queue)

    async def _followed(self, agent_id: str, after: int, queue: _Queue) -> AsyncIterator[Sequence[Record]]:
        """Yield the records after a seq until the queue overflows or the agent moves to another partition."""
        aside = self._ports.aside
        reader: LogReader = await aside(self._store.reader, agent_id)
        head = (await aside(reader.head, agent_id)).seq
        while after < head:
            records = await aside(_read, reader, agent_id, after + 1, min(head, after + READ_RECORDS))
            after = records[-1].seq
            yield records
        del reader  # it holds what it has read, and a reader may wait for days
        while not queue.overflowed:
            new = [record for record in await queue.take() if record.seq > after]
            if new and new[0].seq != after + 1:  # the log has what is missing
                return
            if new:
                after = new[-1].seq
                yield new
                if any(record.type == AgentMoved.kind for record in new):
                    return

    def _join(self, partition: str, agent_id: str, queue: _Queue) -> _PartitionTail:
        if partition not in self._tails or self._tails[partition][1].done():
            tail = _PartitionTail(partition, self._store, self._ports)
            self._tails[partition] = (tail, asyncio.get_running_loop().create_task(tail.run()))
        tail, _ = self._tails[partition]
        tail.readers.setdefault(agent_id, set()).add(queue)
        return tail

    def _leave(self, partition: str, agent_id: str, queue: _Queue) -> None:
        tail, task = self._tails[partition]
        queues = tail.readers.get(agent_id, set())
        queues.discard(queue)
        if not queues:
            tail.readers.pop(agent_id, None)
        if not tail.readers:
            del self._tails[partition]
            task.cancel()

    async def close(self) -> None:
        """Stop following."""
        tasks = [task for _, task in self._tails.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _read(reader: LogReader, agent_id: str, first: int, last: int) -> Sequence[Record]:
    return list(reader.read(agent_id, first, last))
