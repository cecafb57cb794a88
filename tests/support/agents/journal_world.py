"""A shard journal over a disk that fails on request, and readers of the result."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from everlog.actors.hosting.metrics import ProcessMetrics, TickCounts
from everlog.actors.hosting.shard_journal import ShardJournal
from everlog.events import Draft, EverlogError, UserMessage, draft
from everlog.store import FileStore
from everlog.testing import CountingIds
from tests.support.store.faulty_disk import FaultyDisk
from tests.support.virtual_time import WallClock

SHARD = "shard-000"


async def in_place(work: Callable[..., Any], /, *arguments: Any) -> Any:
    """Run the work in this thread, with a switch to other tasks before and after it, as `aside` would."""
    await asyncio.sleep(0)
    try:
        return work(*arguments)
    finally:
        await asyncio.sleep(0)


class Desk:
    """A store on a faulty disk with one shared partition, and a journal over it for many agents."""

    def __init__(self, disk: FaultyDisk | None = None, *, aside: Any = in_place) -> None:
        self.clock, self.ids = WallClock(), CountingIds()
        self.disk = disk or FaultyDisk()
        self.store = FileStore.create(Path("/store"), self.clock.now, "0" * 32, shards=1, disk=self.disk)
        self.lost: list[EverlogError] = []
        self.counts = TickCounts()
        self.log = self.store.open_partition(SHARD, "test")
        self.ticks = ShardJournal(
            self.log, aside=aside, on_lost=self.lost.append, counts=self.counts, meters=ProcessMetrics(None)
        )

    def said(self, *texts: str) -> list[Draft]:
        """Return drafts of users' messages, one for each text."""
        now = self.clock.now()
        return [
            draft(UserMessage(text=text), event_id=self.ids.new(now), recorded_at=now, turn=1, step=0) for text in texts
        ]

    async def commit(self, agent_id: str, expected_seq: int, *texts: str) -> Any:
        """Append users' messages in one commit."""
        return await self.ticks.commit(agent_id, expected_seq, self.said(*texts))

    async def open_anew(self) -> None:
        """Close the lost journal and open the log as the next owner."""
        await self.ticks.close()
        self.log = self.store.open_partition(SHARD, "test")
        self.ticks = ShardJournal(
            self.log, aside=in_place, on_lost=self.lost.append, counts=self.counts, meters=ProcessMetrics(None)
        )

    def kept(self, agent_id: str) -> list[str | None]:
        """Return the texts of an agent's records in the log."""
        return [record.text for record in self.log.read(agent_id)]

    def rows(self) -> Counter[str]:
        """Return the number of records that the engine holds, by agent."""
        found = self.ticks.projections.query("SELECT agent_id FROM records")
        return Counter(row["agent_id"] for row in found)

    def done(self, operation: str) -> int:
        """Return the number of operations of that kind on the disk."""
        return sum(name == operation for name, _ in self.disk.log)


async def all_of(*works: Any) -> list[Any]:
    """Run these awaitables at once. Return their values, with errors as values."""
    return await asyncio.gather(*works, return_exceptions=True)


def kinds_of(results: Sequence[Any]) -> list[str]:
    """Return the type names of the results."""
    return [type(result).__name__ for result in results]
