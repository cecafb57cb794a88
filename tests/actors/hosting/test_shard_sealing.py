"""Times at which a shard seals its log: above a high limit while commands run, above a low limit when none do."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from everlog.actors.cluster.shared_actor import SharedActor
from everlog.actors.hosting.shard import Shard
from everlog.actors.ports.agent_constants import SHARD_SEAL_BYTES, SHARD_TEND_S
from everlog.events import EverlogError, Fenced, HostLost, StoreError
from everlog.projections import DERIVER
from everlog.store import SEAL_BYTES_MIN, MemoryStore
from tests.support.agents.virtual_time_runtime import run_plain
from tests.support.agents.virtual_time_shard import SharedHome, all_heard


async def slow() -> None:
    """Delay a step of a plain agent by ten seconds."""
    await asyncio.sleep(10)


class Frames:
    """A stand-in for the unsealed frames of a log in memory: `unsealed` is the number of their bytes."""

    def __init__(self) -> None:
        self.unsealed = 0
        self.sealed: list[int] = []
        """Number of bytes that each sealing found."""
        self.fails: StoreError | None = None

    def seal(self, *_: Any) -> None:
        """Seal all frames, or raise `fails`."""
        if self.fails is not None:
            raise self.fails
        self.sealed.append(self.unsealed)
        self.unsealed = 0


@contextmanager
def frames() -> Iterator[Frames]:
    """Let the log of each shard report the given bytes, while the block runs."""
    found = Frames()
    log = type(MemoryStore(shards=1).open_partition("shard-000", "test"))
    with patch.object(log, "unsealed_bytes", property(lambda _: found.unsealed)), patch.object(log, "seal", found.seal):
        yield found


def test_a_busy_shard_seals_above_a_high_limit() -> None:
    """While a command runs, nothing is sealed below SHARD_SEAL_BYTES; from there on, the next check seals."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        at_work = asyncio.ensure_future(home.ref("ada").send("[steps=9] Hi"))
        await asyncio.sleep(1)
        with frames() as found:
            found.unsealed = SHARD_SEAL_BYTES - 1
            await asyncio.sleep(6 * SHARD_TEND_S)
            assert found.sealed == []
            found.unsealed = SHARD_SEAL_BYTES
            await asyncio.sleep(SHARD_TEND_S + 1)
            assert found.sealed == [SHARD_SEAL_BYTES] and not at_work.done()
        assert len(await at_work) == 10
        await home.leave()

    run_plain(main, slow)


def test_an_idle_shard_seals_above_a_low_limit() -> None:
    """Without a running command, the next check seals from SEAL_BYTES_MIN on; fewer bytes stay unsealed."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        at_work = asyncio.ensure_future(home.ref("ada").send("[steps=3] Hi"))
        with frames() as found:
            found.unsealed = SEAL_BYTES_MIN
            await at_work
            assert found.sealed == []
            await asyncio.sleep(SHARD_TEND_S + 1)
            assert found.sealed == [SEAL_BYTES_MIN]
            found.unsealed = SEAL_BYTES_MIN - 1
            await asyncio.sleep(2 * SHARD_TEND_S)
            assert found.sealed == [SEAL_BYTES_MIN]
        await home.leave()

    run_plain(main, slow)


def test_the_frames_of_a_killed_host_are_sealed_before_activation() -> None:
    """The next host seals the frames of a killed host when it opens the log, before any agent is activated."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        await home.leave()
        await asyncio.sleep(1)
        after = SharedHome(home.store)
        with frames() as found:
            found.unsealed = SHARD_SEAL_BYTES - 1
            await after.shard.ticks()
            assert found.sealed == [SHARD_SEAL_BYTES - 1]
        assert len(await after.ref("ada").send("Hi")) == 2
        await after.leave()

    run_plain(main)


def test_a_shard_fenced_while_opening_its_log_fails_its_callers() -> None:
    """If sealing finds the shard fenced, waiting callers get HostLost, and the log is closed."""

    async def main() -> None:
        home = SharedHome()
        home.store.register_many(["ada"], shared=True)
        with frames() as found:
            found.unsealed, found.fails = SEAL_BYTES_MIN, Fenced("a newer owner came")
            with pytest.raises(HostLost):
                await all_heard(home.shard.perform("ada", home.say("Hi")))
        assert home.shard.fenced and home.shard._ticks is None
        await home.leave()

    run_plain(main)


def test_a_shard_that_releases_its_log_seals_it() -> None:
    """A shard that releases its log seals it first, so that the next owner reads few frames."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        with frames() as found:
            found.unsealed = SEAL_BYTES_MIN
            await home.ref("ada").send("Hi")
            await home.leave()
            assert found.sealed == [SEAL_BYTES_MIN]

    run_plain(main)


@pytest.mark.parametrize(("unsealed", "error", "seals"), [(2**20, None, 1), (1, None, 0), (2**20, Fenced("x"), 1)])
def test_a_shard_seals_its_log_before_it_leaves(unsealed: int, error: EverlogError | None, seals: int) -> None:
    """A log that is worth sealing is sealed while the agents are at work; one that was taken over is lost, as ever."""
    sealed: list[object] = []

    def seal(derive: object) -> None:
        sealed.append(derive)
        if error is not None:
            raise error

    async def ticks() -> Any:
        return SimpleNamespace(log=SimpleNamespace(unsealed_bytes=unsealed, seal=seal), lose=lost.append)

    lost: list[EverlogError] = []
    shard = SimpleNamespace(ticks=ticks, _aside=asyncio.to_thread)
    shard.seal = partial(Shard.seal, shard)
    actor: Any = object.__new__(SharedActor)
    actor._shard = shard
    asyncio.run(actor.seal())
    assert sealed == [DERIVER] * seals
    assert lost == ([] if error is None else [error])
