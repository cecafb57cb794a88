"""Batches of commands: one outcome for each command, in any order; a failing command affects no other, and commands
outlive their caller.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from everlog.actors.agent.commands import Command, FireTimer, ResumeTurns, SetTimer
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome, merge_streams, outcomes
from everlog.events import HostLost, Record, UsageError
from tests.support import virtual_time
from tests.support.agents.virtual_time_runtime import moment, run_plain
from tests.support.agents.virtual_time_shard import SharedHome

NAMES = [f"agent {number}" for number in range(5)]


async def all_of(answer: AsyncIterator[Any]) -> list[BatchOutcome]:
    return sorted([outcome async for found in answer for outcome in found], key=lambda outcome: outcome.number)


async def played(agent_id: str, command: Command, heard: list[Record]) -> Any:
    """Perform a command in the way that the agent's name says."""
    await asyncio.sleep(1)
    if agent_id == "ill":
        raise UsageError("No.")
    if agent_id == "buggy":
        raise ZeroDivisionError("a bug")
    if agent_id == "slow":
        await asyncio.sleep(1000)
    return agent_id


def orders(*names: str) -> list[BatchCommand]:
    return [BatchCommand(number, name, ResumeTurns(id="")) for number, name in enumerate(names)]


def test_outcomes_that_are_ready_together_come_in_one_batch() -> None:
    """Outcomes that are ready at the same time come in one batch, errors included; a slow one comes later."""

    async def main() -> None:
        batches = [[(o.number, o.value, type(o.error).__name__) for o in found] async for found in
                   outcomes(played, orders("a", "slow", "ill", "b"))]  # fmt: skip
        assert [sorted(batch) for batch in batches] == [
            [(0, "a", "NoneType"), (2, None, "UsageError"), (3, "b", "NoneType")],
            [(1, "slow", "NoneType")],
        ]

    virtual_time.run(main)


def test_an_empty_batch_has_no_outcomes() -> None:
    """An empty batch of commands has no outcomes and does not wait."""

    async def main() -> None:
        assert [found async for found in outcomes(played, [])] == []

    virtual_time.run(main)


def test_an_unexpected_exception_ends_the_batch() -> None:
    """An unexpected exception ends the iteration, instead of waiting for an outcome that cannot come."""

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await all_of(outcomes(played, orders("slow", "buggy")))

    virtual_time.run(main)


def test_streams_are_merged_until_one_fails() -> None:
    """Items of all streams are delivered as they arrive; the first error ends the merged stream."""

    async def stream(after_s: float, *items: Any) -> AsyncIterator[Any]:
        for item in items:
            await asyncio.sleep(after_s)
            if isinstance(item, Exception):
                raise item
            yield item

    async def main() -> None:
        heard = [item async for item in merge_streams([stream(2, 1, 3), stream(3, 2, 4), stream(1)])]
        assert heard == [1, 2, 3, 4]
        heard = []
        with pytest.raises(HostLost):
            async for item in merge_streams([stream(2, 1, 2, 3), stream(5, HostLost("gone"))]):
                heard.append(item)
        assert heard == [1, 2]

    virtual_time.run(main)


def test_messages_of_one_agent_are_answered_in_order() -> None:
    """Several messages for one agent of the batch are recorded in the given order and answered one after the other."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all(*NAMES)
        await home.shard.unload()
        said = [(name, home.say(f"{name} {turn}")) for turn in range(3) for name in NAMES]
        found = await all_of(home.shard.perform_many(home.orders(*said)))
        assert [outcome.error for outcome in found] == [None] * 15
        for name in NAMES:
            assert home.said(name) == [f"{name} {turn}" for turn in range(3)]
            assert home.answers(name) == [f"1 of {name} {turn}" for turn in range(3)]
        await home.leave()

    run_plain(main)


def test_a_failing_command_affects_no_other() -> None:
    """An unknown agent and a failing model are the errors of their own commands only."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada", "ben")
        wanted = [("ada", home.say("Hi")), ("nobody", home.say("Hi")), ("ben", home.say("[fail] Hi"))]
        found = await all_of(home.shard.perform_many(home.orders(*wanted)))
        assert [type(outcome.error).__name__ for outcome in found] == ["NoneType", "UnknownAgent", "ModelError"]
        assert [len(outcome.records) for outcome in found] == [2, 0, 2]
        await home.leave()

    run_plain(main)


@pytest.mark.parametrize("steps", [1, 3, 6, 9, 12])
def test_commands_continue_after_their_caller_left(steps: int) -> None:
    """If the caller closes the batch at any time, the commands that have begun continue; sending the batch again
    repeats nothing.
    """

    async def main() -> None:
        home = SharedHome()
        await home.open_all(*NAMES)
        wanted = home.orders(*((name, home.say("Hi")) for name in NAMES))
        answer = home.shard.perform_many(wanted)
        first = asyncio.create_task(anext(answer))
        for _ in range(steps):
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        await answer.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(60)
        begun = {name: home.said(name) for name in NAMES}
        assert all(len(home.answers(name)) == len(begun[name]) for name in NAMES)
        found = await all_of(home.shard.perform_many(wanted))
        assert [outcome.error for outcome in found] == [None] * 5
        assert {name: (home.said(name), home.answers(name)) for name in NAMES} == {
            name: (["Hi"], ["1 of Hi"]) for name in NAMES
        }
        await home.leave()

    run_plain(main)


def test_heartbeats_of_many_agents_come_in_one_call() -> None:
    """If timers of many agents are fired in one batch, and each of them twice, every agent gets one heartbeat."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all(*NAMES)
        due = moment(100)
        timers = [
            (name, SetTimer(id=home.ids.new(home.clock.now()), timer="tea", text="Tea", due_at=due)) for name in NAMES
        ]
        await all_of(home.shard.perform_many(home.orders(*timers)))
        await home.shard.unload()

        def fires() -> list[tuple[str, Command]]:
            return [(name, FireTimer(id=home.ids.new(due), timer="tea", due_at=due)) for name in NAMES]

        found = await all_of(home.shard.perform_many(home.orders(*fires(), *fires())))
        assert sorted(outcome.value for outcome in found) == [False] * 5 + [True] * 5
        assert all(home.beats(name) == [(100.0, False)] for name in NAMES)
        await home.leave()

    run_plain(main)
