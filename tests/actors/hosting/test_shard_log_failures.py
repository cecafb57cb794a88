"""Shards that lose their log to a disk error or to another process, and simulated shards from seeds."""

import asyncio
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest

from everlog.actors.agent.commands import ResumeTurns
from everlog.actors.hosting import turn_recovery
from everlog.events import HostLost, StoreError
from tests.support.agent_world import SECOND
from tests.support.agents.journal_world import SHARD, kinds_of
from tests.support.agents.virtual_time_runtime import run_plain, when
from tests.support.agents.virtual_time_shard import SharedHome, all_heard
from tests.support.cluster.sim_shard import BREAKS, fails, simulate
from tests.support.seeds import seeds, split

NAMES = [f"agent {number}" for number in range(6)]


async def slow() -> None:
    """Delay a step of a plain agent by ten seconds."""
    await asyncio.sleep(10)


def test_agents_outside_a_failed_group_continue() -> None:
    """After one disk error, the callers of the failed group get an error; the other agents, busy or idle, are not
    affected.
    """

    async def main() -> None:
        home = SharedHome()
        await home.open_all(*NAMES)
        at_work = [asyncio.ensure_future(home.ref(name).send("[steps=3] Hi")) for name in NAMES[:3]]
        await asyncio.sleep(15)
        home.fail_next()
        command = home.say("Hi")
        with pytest.raises(StoreError, match="the disk is broken"):
            await all_heard(home.shard.perform(NAMES[4], command))
        assert [len(records) for records in await asyncio.gather(*at_work)] == [4, 4, 4]
        assert len(await all_heard(home.shard.perform(NAMES[4], command))) == 3
        assert len(await home.ref(NAMES[5]).send("Hi")) == 2
        assert home.said(NAMES[4]) == ["Hi"]
        assert all(home.answers(name) == [f"{step} of [steps=3] Hi" for step in (1, 2, 3)] for name in NAMES[:3])
        assert len([note for note in home.notes if "opened again" in note]) == 1
        await home.leave()

    run_plain(main, slow)


def test_a_turn_without_a_caller_is_finished_after_a_failure() -> None:
    """A turn whose caller has left, interrupted by a disk error, is finished by the shard a little later."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        answer = home.shard.perform("ada", home.say("[steps=3] Hi"))
        await anext(answer)
        await answer.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(15)
        home.fail_next()
        await asyncio.sleep(120)
        assert home.answers("ada") == [f"{step} of [steps=3] Hi" for step in (1, 2, 3)]
        await home.leave()

    run_plain(main, slow)


def test_a_timer_fires_after_the_log_was_lost() -> None:
    """An idle agent whose log was lost and reopened is activated by its timer, and no earlier command is repeated."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada", "ben")
        await home.ref("ada").set_timer("tea", "Tea", due_at=when(60))
        home.fail_next()
        with suppress(StoreError):
            await home.ref("ben").send("Hi")
        await asyncio.sleep(70)
        assert home.beats("ada") == [(60.0, False)]
        await home.leave()

    run_plain(main)


def test_a_log_is_reopened_when_the_old_one_is_closed() -> None:
    """Commands that arrive while the old log is being closed wait until the log is open again."""

    async def main() -> None:
        async def slowly(work: Any, /, *arguments: Any) -> Any:
            await asyncio.sleep(5 if getattr(work, "__name__", "") == "close" else 0)
            return work(*arguments)

        home = SharedHome()
        home.shard._aside = slowly
        await home.open_all("ada", "ben")
        home.fail_next()
        with suppress(StoreError):
            await home.ref("ben").send("Hi")
        assert len(await home.ref("ada").send("Hi")) == 2
        await home.leave()

    run_plain(main)


def test_a_shard_that_another_process_owns_gives_up() -> None:
    """The shard reports the loss once, every later command gets HostLost, and the shard writes no more records."""

    async def main() -> None:
        fenced: list[None] = []
        home = SharedHome(on_fenced=lambda: fenced.append(None))
        await home.open_all(*NAMES)
        at_work = [asyncio.ensure_future(all_heard(home.shard.perform(name, home.say("Hi")))) for name in NAMES]
        await asyncio.sleep(5)
        other = home.store.open_partition(SHARD, "other", take_over=True)
        results = await asyncio.gather(*at_work, return_exceptions=True)
        results += await asyncio.gather(
            *(all_heard(home.shard.perform(name, ResumeTurns(id="r"))) for name in NAMES), return_exceptions=True
        )
        assert kinds_of(results) == ["HostLost"] * 12
        assert (len(fenced), home.shard.fenced) == (1, True)
        assert all(home.answers(name) == [] for name in NAMES)
        other.close()
        await home.leave()

    run_plain(main, slow)


def test_a_shard_that_is_fenced_while_it_rests_gives_up() -> None:
    """Without writes, the shard notices the loss when it checks for frames to seal."""

    async def main() -> None:
        fenced: list[None] = []
        home = SharedHome(on_fenced=lambda: fenced.append(None), idle_s=60)
        await home.open_all("ada")
        other = home.store.open_partition(SHARD, "other", take_over=True)
        with patch.object(type(other), "unsealed_bytes", 2**40):
            await asyncio.sleep(100)
        assert len(fenced) == 1
        with pytest.raises(HostLost):
            await all_heard(home.shard.perform("ada", home.say("Hi")))
        other.close()
        await home.leave()

    run_plain(main)


def test_unfinished_turns_are_finished_a_few_at_a_time() -> None:
    """After a crash all unfinished turns are finished in the given order, at most SHARD_RECOVERIES_MAX at a time."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all(*NAMES)
        at_work = [asyncio.ensure_future(home.ref(name).send("[steps=2] Hi")) for name in NAMES]
        await asyncio.sleep(15)
        await home.leave()
        await asyncio.wait(at_work)
        assert kinds_of([task.exception() for task in at_work]) == ["HostLost"] * 6
        after = SharedHome(home.store)
        began = after.clock.now()
        with patch.object(turn_recovery, "SHARD_RECOVERIES_MAX", 2):
            await after.shard.recover(["nobody", *NAMES], {})
        assert (after.clock.now() - began) // SECOND == 30
        assert all(after.answers(name) == ["1 of [steps=2] Hi", "2 of [steps=2] Hi"] for name in NAMES)
        assert len(after.notes) == 1 and "'nobody'" in after.notes[0]
        await after.leave()

    run_plain(main, slow)


@pytest.mark.parametrize("seed", seeds(5, label="shards", below=3000))
def test_no_seed_breaks_a_promise_of_a_shard(seed: int) -> None:
    """With any failures and unloads, no input is lost or processed twice, and the engine agrees with the logs."""
    simulate(seed)


@pytest.mark.long
@pytest.mark.hosts
@pytest.mark.parametrize("first", range(0, 3000, 60))
def test_no_seed_of_many_breaks_a_promise_of_a_shard(first: int) -> None:
    """The promises hold in all of three thousand worlds."""
    for seed in range(first, first + 60):
        simulate(seed)


def test_the_simulated_shards_cover_all_cases() -> None:
    """In the simulated worlds logs are lost, processes end and begin, and the loss of a log to another process
    occurs.
    """
    worlds = [simulate(seed) for seed in range(8)]
    assert sum(world.failures for world in worlds) > 10
    assert sum(len(world.homes) > 1 for world in worlds) > 5
    notes = " ".join(note for world in worlds for home in world.homes for note in home.notes)
    assert "opened again" in notes and "another process owns" in notes


@pytest.mark.parametrize("guard", split([*BREAKS], 1, label="guards of shards", part="hosts"))
def test_a_seed_detects_a_missing_guard_of_a_shard(guard: str) -> None:
    """A world with all guards passes, and the same world without one guard fails."""
    seed = BREAKS[guard][0]
    if fails(seed) or not fails(seed, guard):
        assert any(fails(other, guard) and not fails(other) for other in range(seed, seed + 30)), (
            f"search again: python -m tests.support.cluster.sim_shard {guard!r}"
        )
