"""The journal of many agents: waiting commits form one group, failures reach the affected callers, and no caller waits
for ever.
"""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any
from unittest.mock import patch

import duckdb
import pytest

from everlog.events import AgentDeleted, BadInput, HostLost, StoreError, WrongSequence, draft
from everlog.projections import HEAD, Projections
from everlog.store import FileLog
from tests.support import virtual_time
from tests.support.agents.journal_world import SHARD, Desk, all_of, kinds_of

NAMES = [f"agent {number}" for number in range(8)]


def at_desk(scenario: Callable[[Desk], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Return a test that runs the scenario with a new desk in virtual time, and checks that no task is left over."""

    def test() -> None:
        async def main() -> None:
            desk = Desk()
            await scenario(desk)
            await desk.ticks.close()

        virtual_time.run(main)

    test.__name__, test.__doc__ = scenario.__name__, scenario.__doc__
    return test


def failing(error: Exception, times: int = 1) -> Callable[..., Any]:
    """Return a decorator for a method: its first `times` calls raise `error`, later calls are passed on."""
    left = [error] * times

    def wrapped(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if left:
                raise left.pop()
            return real(*arguments, **options)

        return call

    return wrapped


def broken(desk: Desk, name: str, error: Exception, times: int = 1) -> Any:
    """Let the engine's method `name` fail `times` times while the block runs."""
    engine = desk.ticks.projections
    return patch.object(engine, name, failing(error, times)(getattr(engine, name)))


async def seated(desk: Desk, *names: str) -> None:
    await asyncio.gather(*map(desk.ticks.enter, names))


@at_desk
async def test_waiting_commits_are_one_frame_and_one_sync(desk: Desk) -> None:
    """Appends of eight agents that wait together are one group: one write, one sync, eight commits."""
    writes, syncs = desk.done("write"), desk.done("sync")
    commits = await asyncio.gather(*(desk.commit(name, 0, "Hi") for name in NAMES))
    assert (desk.done("write") - writes, desk.done("sync") - syncs) == (1, 1)
    assert [commit.number for commit in commits] == list(range(1, 9))
    assert (desk.counts.ticks, desk.counts.commits, desk.counts.inputs) == (1, 8, 8)


@at_desk
async def test_commits_during_a_sync_form_the_next_group(desk: Desk) -> None:
    """Commits that arrive during a write are written in the next group, right after it."""
    first = asyncio.create_task(desk.commit(NAMES[0], 0, "Hi"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    syncs = desk.done("sync")
    await asyncio.gather(first, *(desk.commit(name, 0, "Hi") for name in NAMES[1:]))
    assert desk.done("sync") - syncs == 2


@at_desk
async def test_rows_see_the_commit_before_them(desk: Desk) -> None:
    """A caller that got an acknowledgement can read its commit, however many agents commit in the same batch."""
    await seated(desk, *NAMES)

    async def own(name: str) -> None:
        for seq in range(3):
            await desk.commit(name, seq, f"{name} {seq}")
            assert (await desk.ticks.rows("standing", name, HEAD))[0]["head"] == seq + 1

    await asyncio.gather(*map(own, NAMES))


@at_desk
async def test_commits_of_one_agent_keep_their_order(desk: Desk) -> None:
    """Three commits of one agent in one batch are written in the order of the calls."""
    await all_of(desk.commit("ada", 0, "one"), desk.commit("ada", 1, "two", "three"), desk.commit("ada", 3, "four"))
    assert desk.kept("ada") == ["one", "two", "three", "four"]
    assert desk.counts.ticks == 1


@at_desk
async def test_rows_as_of_two_moments_in_one_tick(desk: Desk) -> None:
    """Four queries of one agent for three moments, made at once, are each answered for their own moment."""
    await seated(desk, "ada")
    await desk.commit("ada", 0, "one", "two", "three")
    asks = [desk.ticks.rows("standing", "ada", as_of) for as_of in (HEAD, 2, 1, HEAD)]
    assert [rows[0]["head"] for rows in await asyncio.gather(*asks)] == [3, 2, 1, 3]


@at_desk
async def test_a_bad_append_harms_no_other_agent(desk: Desk) -> None:
    """One invalid append among eight is refused; the seven others are committed with three syncs."""
    syncs = desk.done("sync")
    wide = desk.ticks.commit(NAMES[3], 0, [])
    results = await all_of(*(wide if name == NAMES[3] else desk.commit(name, 0, "Hi") for name in NAMES))
    assert kinds_of(results) == ["Commit"] * 3 + ["BadInput"] + ["Commit"] * 4
    assert isinstance(results[3], BadInput)
    assert desk.done("sync") - syncs == 3  # of groups of 4, 2 and 1: the bad append is isolated by halving
    assert not desk.lost
    assert await desk.commit(NAMES[3], 0, "Hi")


@at_desk
async def test_a_wrong_sequence_reaches_its_agent_only(desk: Desk) -> None:
    """A commit with a wrong expected head is refused; the others in the group are committed, and the log continues."""
    await desk.commit("ada", 0, "one")
    results = await all_of(desk.commit("ada", 0, "two"), desk.commit("ben", 0, "Hi"))
    assert isinstance(results[0], WrongSequence) and results[1].agent_id == "ben"
    assert desk.kept("ada") == ["one"] and not desk.lost


@at_desk
async def test_a_repeated_append_is_projected_once(desk: Desk) -> None:
    """Repeated appends with the same ids return the same commit, in one batch or later, and have their rows once."""
    await seated(desk, "ada")
    said = desk.said("one")
    results = await all_of(*(desk.ticks.commit("ada", 0, said) for _ in range(2)))
    again = await desk.ticks.commit("ada", 0, said)
    assert sum(not commit.repeated for commit in [*results, again]) == 1
    assert desk.rows() == {"ada": 1}


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_failed_sync_fails_its_group(operation: str) -> None:
    """A disk error reaches every caller of the group; a commit that is sent again to the reopened log counts once."""

    async def main() -> None:
        desk = Desk()
        said = {name: desk.said(f"I am {name}") for name in NAMES}
        desk.disk.fail(operation, errno.EIO)
        results = await all_of(*(desk.ticks.commit(name, 0, said[name]) for name in NAMES))
        assert kinds_of(results) == ["StoreError"] * 8 and len(set(map(id, results))) == 8
        assert all("the same events can be sent again" in str(error) for error in results)
        assert len(desk.lost) == 1
        with pytest.raises(HostLost, match="opened again"):
            await desk.commit("zoe", 0, "Hi")
        await desk.open_anew()
        await asyncio.gather(*(desk.ticks.commit(name, 0, said[name]) for name in NAMES))
        assert [desk.kept(name) for name in NAMES] == [[f"I am {name}"] for name in NAMES]
        await desk.ticks.close()

    virtual_time.run(main)


@at_desk
async def test_commits_behind_a_failed_group_can_be_sent_again(desk: Desk) -> None:
    """Appends and activations that waited during the disk failure get HostLost, and nothing of them is written."""
    desk.disk.fail("sync", errno.EIO)
    first = asyncio.create_task(all_of(desk.commit("ada", 0, "Hi")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    writes = desk.done("write")
    behind = await all_of(desk.commit("ben", 0, "Hi"), desk.ticks.enter("cyd"))
    assert kinds_of(behind) == ["HostLost", "HostLost"]
    assert kinds_of(await first) == ["StoreError"]
    assert desk.done("write") == writes + 1
    await desk.open_anew()
    assert desk.kept("ben") == []


@at_desk
async def test_a_newer_owner_ends_the_journal(desk: Desk) -> None:
    """If another process owns the partition, all callers get HostLost, and the loss is reported once."""
    other = desk.store.open_partition(SHARD, "other", take_over=True)
    results = await all_of(*(desk.commit(name, 0, "Hi") for name in NAMES))
    results += await all_of(desk.commit("ada", 0, "Hi"), desk.ticks.rows("standing", "ada", HEAD))
    assert kinds_of(results) == ["HostLost"] * 10
    assert kinds_of(desk.lost) == ["Fenced"]
    assert other.agents() == []
    other.close()


@pytest.mark.parametrize("name", ["add", "answers", "load", "forget_many"])
def test_a_bug_in_the_engine_reaches_all_waiting_callers(name: str) -> None:
    """An unexpected exception of the engine ends the journal: waiting callers get it, and acknowledged records stay."""

    async def main() -> None:
        desk = Desk()
        await seated(desk, "ada", "ben")
        await desk.commit("ada", 0, "one")

        async def leave() -> None:
            desk.ticks.leave("ben")

        with broken(desk, name, ZeroDivisionError("a bug")):
            results = await all_of(
                desk.commit("ada", 1, "two"), desk.ticks.rows("standing", "ada", HEAD), desk.ticks.enter("cyd"), leave()
            )
        assert kinds_of(results[1:3]) == ["ZeroDivisionError", "int" if name == "answers" else "ZeroDivisionError"]
        assert results[0].records[0].text == "two" and desk.kept("ada") == ["one", "two"]
        assert kinds_of(desk.lost) == ["HostLost"] and "a bug" in str(desk.lost[0])
        with pytest.raises(HostLost):
            await desk.commit("ada", 2, "three")
        await desk.open_anew()
        assert await desk.ticks.enter("ada") == 2
        await desk.ticks.close()

    virtual_time.run(main)


@at_desk
async def test_a_bug_in_the_log_reaches_all_waiting_callers(desk: Desk) -> None:
    """An unexpected exception of the log reaches the group being written and all later callers; nothing is written."""
    with patch.object(FileLog, "append_group", failing(ZeroDivisionError("a bug"))(FileLog.append_group)):
        results = await all_of(desk.commit("ada", 0, "one"), desk.ticks.rows("standing", "ada", HEAD))
    assert kinds_of(results) == ["ZeroDivisionError"] * 2
    await desk.open_anew()
    assert desk.kept("ada") == []


@at_desk
async def test_agents_are_reloaded_if_the_engine_refuses_their_records(desk: Desk) -> None:
    """After a failed transaction, the agents are reloaded from the log; their commits are acknowledged and visible."""
    await seated(desk, "ada", "ben")
    await desk.commit("ada", 0, "zero")
    with broken(desk, "add", duckdb.OutOfMemoryException("no")):
        await asyncio.gather(desk.commit("ada", 1, "one"), desk.commit("ben", 0, "one"))
    assert desk.rows() == {"ada": 2, "ben": 1} and not desk.lost


@at_desk
async def test_an_engine_that_is_broken_is_thrown_away(desk: Desk) -> None:
    """Durable records are acknowledged; a caller that waits for rows gets HostLost and can ask the next engine."""
    await seated(desk, "ada", "ben")
    desk.ticks.projections.close()
    results = await all_of(desk.commit("ada", 0, "one"), desk.ticks.rows("standing", "ben", HEAD))
    assert kinds_of(results) == ["Commit", "HostLost"] and desk.kept("ada") == ["one"]
    assert kinds_of(desk.lost) == ["HostLost"]


@pytest.mark.parametrize(("name", "asks"), [("answers", "rows"), ("load", "enter")])
def test_an_agent_that_the_engine_cannot_answer_harms_no_other(name: str, asks: str) -> None:
    """A caller whose agent cannot be projected gets StoreError; the other callers of the same query are answered."""

    async def main() -> None:
        desk = Desk()
        await seated(desk, "ada", "ben", "cyd")
        real = getattr(Projections, name)

        def picky(self: Projections, *arguments: Any) -> Any:
            if "ben" in str(arguments):
                raise duckdb.ConversionException("not these")
            return real(self, *arguments)

        await asyncio.gather(*(desk.commit(agent_id, 0, f"I am {agent_id}") for agent_id in ("ada", "ben", "cyd")))
        if asks == "enter":
            for agent_id in ("ada", "ben", "cyd"):
                desk.ticks.leave(agent_id)
        ask: Any = desk.ticks.enter if asks == "enter" else lambda who: desk.ticks.rows("standing", who, HEAD)
        with patch.object(Projections, name, picky):
            results = await all_of(*map(ask, ("ada", "ben", "cyd")))
        assert isinstance(results[1], StoreError) and "'ben'" in str(results[1])
        assert not any(isinstance(result, BaseException) for result in (results[0], results[2]))
        assert not desk.lost
        await desk.ticks.close()

    virtual_time.run(main)


@at_desk
async def test_close_while_a_tick_runs(desk: Desk) -> None:
    """The group being written is acknowledged, later commits are refused, and the next owner can open the log."""
    first = asyncio.create_task(desk.commit("ada", 0, "one"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.create_task(all_of(desk.commit("ben", 0, "Hi"), desk.ticks.rows("standing", "ada", HEAD)))
    await asyncio.sleep(0)
    await desk.ticks.close()
    assert (await first).number == 1
    assert kinds_of(await second)[0] == "HostLost"
    desk.log = desk.store.open_partition(SHARD, "next")
    assert (desk.kept("ada"), desk.kept("ben")) == (["one"], [])
    desk.log.close()


@at_desk
async def test_an_agent_reactivated_in_one_batch_is_there_once(desk: Desk) -> None:
    """If an agent is unloaded and activated again in one batch, it is unloaded first; no row is there twice."""
    await seated(desk, "ada")
    await desk.commit("ada", 0, "one")
    desk.ticks.leave("ada")
    assert await desk.ticks.enter("ada") == 1
    assert desk.rows() == {"ada": 1}
    desk.ticks.leave("ada")
    await seated(desk, "ben")
    assert desk.rows() == {}


@pytest.mark.parametrize("steps", range(6))
def test_a_cancelled_activation_leaves_no_rows(steps: int) -> None:
    """A cancelled activation leaves no rows of the agent at any stage, and the agent can be activated again."""

    async def main() -> None:
        desk = Desk()
        await desk.commit("ada", 0, "one")
        desk.ticks.leave("ada")
        coming = asyncio.create_task(desk.ticks.enter("ada"))
        for _ in range(steps):
            await asyncio.sleep(0)
        coming.cancel()
        await asyncio.wait([coming])
        if not coming.cancelled():
            desk.ticks.leave("ada")
        await seated(desk, "ben")
        assert desk.rows() == {}
        assert await desk.ticks.enter("ada") == 1
        assert desk.rows() == {"ada": 1}
        await desk.ticks.close()

    virtual_time.run(main)


@pytest.mark.parametrize("steps", range(8))
def test_an_agent_interrupted_during_a_commit_is_activated_again(steps: int) -> None:
    """After an interrupted commit its outcome is unknown: further commits of the agent are refused until it is
    unloaded. After the next activation the records that were kept are there once.
    """

    async def main() -> None:
        desk = Desk()
        await seated(desk, "ada", "ben")
        busy = asyncio.create_task(desk.commit("ben", 0, "Hi"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task = asyncio.create_task(desk.commit("ada", 0, "one"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        if task.cancelled() and steps:
            with pytest.raises(HostLost, match="was unloaded"):
                await desk.commit("ada", 0, "two")
        desk.ticks.leave("ada")
        head = await desk.ticks.enter("ada")
        assert desk.kept("ada") == ["one"][:head]
        assert desk.rows()["ada"] == head
        assert (await desk.commit("ada", head, "two")).records[0].seq == head + 1
        await busy
        await desk.ticks.close()

    virtual_time.run(main)


@at_desk
async def test_nothing_is_written_after_the_end_of_an_agent(desk: Desk) -> None:
    """A message that waits behind a deletion gets HostLost, so that it can be sent to a new agent of the name."""
    await seated(desk, "ada")
    ended = draft(AgentDeleted(), event_id=desk.ids.new(0), recorded_at=0, turn=0, step=0)
    await desk.ticks.commit("ada", 0, [ended])
    with pytest.raises(HostLost, match="was unloaded"):
        await desk.commit("ada", 1, "Are you there?")
    desk.ticks.leave("ada")
    assert await desk.ticks.enter("ada") == 1


def test_real_threads_lose_no_commit() -> None:
    """With real threads and time, forty agents commit and read their own writes in far fewer groups than commits."""

    async def main() -> None:
        desk = Desk(aside=asyncio.to_thread)
        names = [f"agent {number}" for number in range(40)]

        async def live(name: str) -> None:
            await desk.ticks.enter(name)
            for seq in range(5):
                await desk.commit(name, seq, f"{seq}")
                assert (await desk.ticks.rows("standing", name, HEAD))[0]["head"] == seq + 1

        await asyncio.gather(*map(live, names))
        assert {name: desk.kept(name) for name in names} == {name: list("01234") for name in names}
        assert desk.counts.commits == 200 and desk.counts.ticks <= 50
        await desk.ticks.close()

    asyncio.run(main())
