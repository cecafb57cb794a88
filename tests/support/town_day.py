"""Days of docs/examples/town.py, in process, for tests: who lives them, when, and what is left of them."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from everlog import Ports, open_system
from everlog.events.digest import canonical_bytes
from everlog.store import FileStore
from everlog.testing import CountingIds, ManualClock
from tests.support.example_module import example

INVITATION = "I am planning a party in the park today at 17:00, please come!"


class TownDay:
    """The transcript of one day, its logs, and the answers of queries after it."""

    def __init__(self, folder: Path, people: Sequence[str], hours: Sequence[int]) -> None:
        self.folder, self.town = folder, example("town")
        self.people = {name: self.town.PEOPLE[name] for name in people}
        self.hours = hours
        self.lines: list[str] = []
        self.heard: list[dict[str, Any]] = []
        self.plans: list[dict[str, Any]] = []
        self.known: dict[str, Mapping[str, int]] = {}
        asyncio.run(self._live())

    async def _live(self) -> None:
        clock = ManualClock(self.town.DAY)
        ports = Ports(clock=clock, ids=CountingIds())
        async with open_system(self.folder, placement="shared", shards=1, timers=False, ports=ports) as system:
            self.lines = await self.town.Town(system, self.town.DAY, clock, self.people, self.hours).live()
            self.heard = (await system.sql(self.town.HEARD)).to_pylist()
            self.plans = (await system.sql("FROM plan_items ORDER BY agent_id, starts_at, plan")).to_pylist()
            for at in ("12:30", "14:00"):
                hours, minutes = map(int, at.split(":"))
                moment: datetime = self.town.DAY + timedelta(hours=hours, minutes=minutes)
                rows = (await system.sql(self.town.HEARD, as_of=moment)).to_pylist()
                self.known[at] = {row["agent_id"]: row["from_whom"] for row in rows}

    def records(self) -> Mapping[str, Sequence[bytes]]:
        """Return the canonical bytes of every record of each agent."""
        store = FileStore(self.folder, lambda: 0)
        return {name: [canonical_bytes(one) for one in store.reader(name).read(name)] for name in store.agents()}
