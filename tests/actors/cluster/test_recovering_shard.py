"""A process of a shard does not end while it looks for turns to finish, although no agent is in memory yet."""

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from everlog.actors.cluster import shared_actor
from everlog.actors.cluster.placement import HostedPartition
from everlog.actors.cluster.shared_actor import SharedActor
from everlog.actors.hosting.pending_work import PendingWork


@pytest.mark.parametrize("fails", [False, True])
def test_a_shard_stays_until_its_recovery_is_over(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """While the logs are read for a recovery, the shard is not unloaded; afterwards it is, also if reading failed."""
    reading, released = threading.Event(), threading.Event()
    resumed: list[str] = []

    def read_slowly(*_: object) -> Iterator[PendingWork]:
        reading.set()
        released.wait()
        if fails:
            raise MemoryError
        yield PendingWork("ada", True, [])

    async def ticks() -> Any:
        return SimpleNamespace(log=SimpleNamespace(agents=lambda: ["ada"]))

    async def recover(agents: list[str], _: object) -> None:
        resumed.extend(agents)

    async def unload() -> bool:
        return True

    async def main() -> None:
        actor: Any = object.__new__(SharedActor)
        actor._place, actor._left, actor._note = HostedPartition("shard-000"), False, print
        actor._store = SimpleNamespace(partition_of=lambda _: "shard-000")
        actor._shard = SimpleNamespace(ticks=ticks, recover=recover, unload=unload)
        recovery = asyncio.ensure_future(actor.recover({}))
        await asyncio.to_thread(reading.wait)
        left_early = await actor.unload()
        released.set()
        await asyncio.gather(recovery, return_exceptions=True)
        assert not left_early
        assert resumed == ([] if fails else ["ada"])
        assert await actor.unload()

    monkeypatch.setattr(shared_actor, "pending_work", read_slowly)
    asyncio.run(main())
