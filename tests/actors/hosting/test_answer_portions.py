"""Answers of one tick are read in portions, so that the answers of all agents are never in memory together."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from everlog.actors.hosting import shard, shard_journal
from everlog.actors.ports.agent_constants import SHARD_TEND_S
from everlog.projections import HEAD
from everlog.projections.hot.rows import Rows, Wanted
from everlog.store import SEAL_BYTES_MIN
from tests.actors.hosting.test_shard_sealing import frames, slow
from tests.support import virtual_time
from tests.support.agents.journal_world import Desk
from tests.support.agents.virtual_time_runtime import run_plain
from tests.support.agents.virtual_time_shard import SharedHome

NAMES = [f"agent {number}" for number in range(8)]


class Noted(list[int]):
    """Sizes of what was sealed, each of which is noted."""

    def __init__(self, done: list[str]) -> None:
        super().__init__()
        self._done = done

    def append(self, size: int) -> None:
        """Note a sealing."""
        self._done.append("seal")


def kept() -> int:
    """Return the number of answers in memory."""
    return sum(isinstance(one, Rows) for one in gc.get_objects())


def test_agents_use_their_answers_before_the_next_are_read() -> None:
    """Eight agents that ask together are answered by three queries, and at each query no earlier answer is left; the
    journal keeps none afterwards.
    """
    asked: list[tuple[int, int]] = []

    async def main() -> None:
        desk = Desk()
        await asyncio.gather(*map(desk.ticks.enter, NAMES))
        await asyncio.gather(*(desk.commit(name, 0, name) for name in NAMES))
        before, read = kept(), desk.ticks.projections.answers

        def answers(name: str, wanted: Sequence[Wanted]) -> Any:
            asked.append((len(wanted), kept() - before))
            return read(name, wanted)

        async def use(name: str) -> int:
            return int((await desk.ticks.rows("standing", name, HEAD))[0]["head"])

        with patch.object(desk.ticks.projections, "answers", answers):
            assert await asyncio.gather(*map(use, NAMES)) == [1] * len(NAMES)
        assert kept() == before
        await desk.ticks.close()

    with patch.object(shard_journal, "ANSWERS_AT_ONCE", 3):
        virtual_time.run(main)
    assert asked == [(3, 0), (3, 0), (2, 0)]


def test_a_caller_that_waits_behind_a_bug_is_told() -> None:
    """A bug in one portion reaches the callers of the portions behind it; none waits for ever."""

    async def main() -> None:
        desk = Desk()
        await asyncio.gather(*map(desk.ticks.enter, NAMES))
        with patch.object(desk.ticks.projections, "answers", side_effect=ZeroDivisionError):
            asks = [desk.ticks.rows("standing", name, HEAD) for name in NAMES]
            found = await asyncio.gather(*asks, return_exceptions=True)
        assert {type(one) for one in found} == {ZeroDivisionError}
        await desk.ticks.close()

    with patch.object(shard_journal, "ANSWERS_AT_ONCE", 3):
        virtual_time.run(main)


def test_a_shard_gives_back_memory_before_and_after_it_seals() -> None:
    """After work the next check drops what only work needs, seals, and then returns the memory of all of it, once."""
    done: list[str] = []

    async def main() -> None:
        home = SharedHome(on_rest=lambda: done.append("rest"))
        await home.open_all("ada")
        with frames() as found, patch("everlog.actors.hosting.shard.give_back", lambda: done.append("give back")):
            await home.ref("ada").send("Hi")
            await asyncio.sleep(2 * SHARD_TEND_S)
            done.clear()
            found.unsealed, found.sealed = SEAL_BYTES_MIN, Noted(done)
            await home.ref("ada").send("Hi")
            await asyncio.sleep(3 * SHARD_TEND_S)
            assert done == ["rest", "seal", "give back"]
        await home.leave()

    run_plain(main, slow)


def test_a_shard_at_work_returns_free_memory_now_and_then() -> None:
    """While commands run, a shard returns free memory to the system after RELEASE_S, and again after as long. A shard
    without commands has no more to return.
    """

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        await asyncio.sleep(3 * SHARD_TEND_S)
        with patch.object(shard, "release_reserves") as released, patch.object(shard, "RELEASE_S", 6 * SHARD_TEND_S):
            at_work = asyncio.ensure_future(home.ref("ada").send("[steps=9] Hi"))
            await asyncio.sleep(2 * SHARD_TEND_S)
            assert released.call_count == 0
            for count in (1, 2):
                await asyncio.sleep(6 * SHARD_TEND_S)
                assert released.call_count == count and not at_work.done()
            await at_work
            count = released.call_count
            await asyncio.sleep(20 * SHARD_TEND_S)
            assert released.call_count == count
        await home.leave()

    run_plain(main, slow)
