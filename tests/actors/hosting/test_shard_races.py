"""The shard host when two things happen at the same moment."""

import asyncio
import gc
import weakref
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest

from everlog.actors.agent import event_writer
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import DeleteAgent, ResumeTurns, SessionCapabilities, WatchAgent
from everlog.actors.functions.tools import tool
from everlog.actors.hosting import subscribers
from everlog.actors.postbox import admission
from everlog.events import Busy, HostLost, UnknownAgent
from tests.support import virtual_time
from tests.support.agents.fast_stand_ins import turns
from tests.support.agents.journal_world import SHARD
from tests.support.agents.virtual_time_runtime import open_ref, run_plain
from tests.support.agents.virtual_time_shard import SharedHome, all_heard
from tests.support.seeds import split

NAMES = [f"agent {number}" for number in range(6)]


async def slow() -> None:
    """Delay a step of a plain agent by ten seconds."""
    await asyncio.sleep(10)


def rows(home: SharedHome) -> list[str]:
    """Return the names of the agents of which the engine holds rows."""
    ticks: Any = home.shard._ticks
    return sorted(ticks.projections._records)


def in_memory(home: SharedHome) -> list[str]:
    return sorted(home.shard._hosts)


def test_an_idle_agent_leaves_nothing() -> None:
    """An agent that is idle for a while leaves no object and no row; agents in use stay."""

    async def main() -> None:
        home = SharedHome(idle_s=60)
        await home.open_all("ada", "ben")
        kept = [weakref.ref(home.shard._hosts["ada"]), weakref.ref(home.shard._hosts["ada"]._worker)]  # type: ignore[type-var]
        for _ in range(10):
            await asyncio.sleep(20)
            await home.ref("ben").send("Hi")
        assert (in_memory(home), rows(home)) == (["ben"], ["ben"])
        gc.collect()
        assert [ref() for ref in kept] == [None, None]
        assert len(await home.ref("ada").send("Are you there?")) == 2
        await home.leave()

    run_plain(main)


def test_the_least_recently_used_agent_is_unloaded() -> None:
    """With room for three agents, the three most recently used ones stay in memory, and the others are unloaded."""

    async def main() -> None:
        home = SharedHome(agents_max=3)
        for name in NAMES:
            await home.open_all(name)
            await asyncio.sleep(1)
        assert in_memory(home) == rows(home) == NAMES[3:]
        await home.ref(NAMES[3]).send("Hi")
        await home.ref(NAMES[0]).send("Hi")
        await asyncio.sleep(1)
        assert in_memory(home) == rows(home) == [NAMES[0], NAMES[3], NAMES[5]]
        await home.leave()

    run_plain(main)


def test_more_agents_at_work_than_there_is_room_for() -> None:
    """With twice as many busy agents as there is room for, a further command is refused with the time to retry, and
    nothing of it is recorded.
    """

    async def main() -> None:
        home = SharedHome(agents_max=2)
        await home.open_all(*NAMES[:4])
        home.store.register_many(NAMES, shared=True)
        at_work = [asyncio.ensure_future(home.ref(name).send("Hi")) for name in NAMES[:4]]
        await asyncio.sleep(1)
        with pytest.raises(Busy, match="Nothing of this was kept") as refused:
            await open_ref(home.ref(NAMES[4]), Settings())
        assert refused.value.retry_after_s > 0
        assert home.log(NAMES[4]) == [] and home.shard.status("here").refused == 1
        assert all(len(records) == 2 for records in await asyncio.gather(*at_work))
        await asyncio.sleep(refused.value.retry_after_s)
        await home.open(NAMES[4])
        await home.leave()

    run_plain(main, slow)


def test_the_status_counts_what_was_said() -> None:
    """The records of a new agent count as no message; one answered message counts as one message and one model call."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all(*NAMES[:2])
        born = home.shard.status("here")
        assert (born.messages, born.model_calls, born.active) == (0, 0, 2)
        await home.ref(NAMES[0]).send("Hi")
        said = home.shard.status("here")
        assert (said.messages, said.model_calls, said.commits - born.commits) == (1, 1, 2)
        await home.leave()

    virtual_time.run(main)


def test_more_commands_than_a_shard_takes() -> None:
    """All commands count, `watch` commands too; one beyond the limit is refused, and when a command ends the next is
    accepted.
    """

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        with patch.object(admission, "SHARD_COMMANDS_MAX", 2):
            watch = asyncio.ensure_future(all_heard(home.shard.perform("ada", WatchAgent(id="w"))))
            said = asyncio.ensure_future(all_heard(home.shard.perform("ada", home.say("one"))))
            await asyncio.sleep(1)
            with pytest.raises(Busy):
                await all_heard(home.shard.perform("ada", home.say("two")))
            await said
            await all_heard(home.shard.perform("ada", home.say("three")))
            await watch
        assert home.said("ada") == ["one", "three"]
        await home.leave()

    run_plain(main, slow)


@pytest.mark.parametrize("limit", [(subscribers, "SUBSCRIBERS_MAX"), (event_writer, "INBOX_MAX")])
def test_more_callers_or_inputs_than_an_agent_takes(limit: tuple[Any, str]) -> None:
    """A caller or input beyond the limit is refused with the time to retry, leaves no record, and does not affect the
    earlier ones.
    """

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        with patch.object(*limit, 2):
            wanted = home.orders(*(("ada", home.say(str(number))) for number in range(3)))
            found = [outcome async for some in home.shard.perform_many(wanted) for outcome in some]
        assert [type(outcome.error).__name__ for outcome in found] == ["Busy", "NoneType", "NoneType"]
        assert getattr(found[0].error, "retry_after_s", 0) > 0
        assert home.said("ada") == ["0", "1"]
        await home.leave()

    run_plain(main, slow)


def test_a_slow_watcher_is_served_from_the_log() -> None:
    """Undelivered records of a watcher have a limit; later ones are delivered by the next watch, each record once."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        with patch.object(subscribers, "WATCHED_COMMITS_MAX", 3):
            watching = home.shard.perform("ada", WatchAgent(id="w"), 1)
            first = asyncio.ensure_future(anext(watching))
            await asyncio.sleep(0)
            for number in range(5):
                with suppress(StopAsyncIteration):
                    answer = home.shard.perform("ada", home.say(str(number)))
                    await anext(answer)
                    await answer.aclose()  # type: ignore[attr-defined]
            await asyncio.sleep(60)
            heard: list[Any] = [await first, *await all_heard(watching)]
            seen = heard[-1].value
            assert len(heard) - 1 <= 4 and seen == heard[-2][-1].seq
        assert seen < home.log("ada")[-1].seq
        await home.leave()

    run_plain(main)


def test_an_agent_with_a_thousand_messages_does_not_starve_the_others() -> None:
    """While one agent processes a queue of a thousand messages, the other agents of the shard get their turns as
    well.
    """

    async def main() -> None:
        home = SharedHome()
        await home.open_all(*NAMES)
        greedy = asyncio.ensure_future(
            all_heard(home.shard.perform_many(home.orders(*((NAMES[0], home.say(f"{n}")) for n in range(1000)))))  # type: ignore[arg-type]
        )
        await asyncio.sleep(0)

        async def chat(name: str) -> None:
            for number in range(20):
                await home.ref(name).send(f"{number}")

        await asyncio.gather(*map(chat, NAMES[1:]))
        answered = len(turns(home.log(NAMES[0])))
        done = len(home.answers(NAMES[0]))
        assert done <= 60, f"{done} turns of the greedy one before 20 of each other ({answered} were said)"
        await greedy
        assert len(home.answers(NAMES[0])) == 1000
        await home.leave()

    run_plain(main)


@pytest.mark.parametrize("after", split(range(10), 2, label="the end", part="hosts"))
def test_a_message_during_deletion_is_answered_or_refused(after: int) -> None:
    """A message that is sent while the agent is deleted is either answered before the deletion or fails; it is never
    written after the deletion.
    """

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        delete = asyncio.ensure_future(all_heard(home.shard.perform("ada", DeleteAgent(id="d"))))
        for _ in range(after):
            await asyncio.sleep(0)
        (said,) = await asyncio.gather(home.ref("ada").send("Hi"), return_exceptions=True)
        await delete
        kinds = [record.type for record in home.log("ada")]
        assert kinds[-1] == "agent_deleted"
        assert isinstance(said, (list, UnknownAgent, HostLost)), said
        assert ("user_message" in kinds) == isinstance(said, list)
        await home.leave()

    run_plain(main)


@pytest.mark.parametrize("after", split(range(14), 2, label="on its way out", part="hosts"))
def test_a_message_during_unloading_is_answered(after: int) -> None:
    """A message that arrives while the shard unloads is answered once; the log has one owner at any moment."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada", "ben")
        leaving = asyncio.ensure_future(home.shard.unload())
        for _ in range(after):
            await asyncio.sleep(0)
        answers = await asyncio.gather(
            home.ref("ada").send("one"), home.ref("ada").send("two"), home.ref("ben").send("Hi")
        )
        released = await leaving
        assert [len(records) for records in answers] == [2, 2, 2]
        assert home.answers("ada") == ["1 of one", "1 of two"]
        assert in_memory(home) == ["ada", "ben"] or released
        await home.leave()

    run_plain(main)


def test_no_busy_agent_is_unloaded() -> None:
    """`unload` returns False while a turn runs, and the turn continues to its end."""

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada")
        said = asyncio.ensure_future(home.ref("ada").send("[steps=3] Hi"))
        await asyncio.sleep(15)
        assert not await home.shard.unload()
        assert len(await said) == 4
        assert await home.shard.unload()
        other = home.store.open_partition(SHARD, "other")
        other.close()
        await home.leave()

    run_plain(main, slow)


def test_functions_of_one_agent_are_available_to_no_other() -> None:
    """Functions of one agent of a shard are available to no other agent, also after it was unloaded."""

    @tool(effect="read_only")
    def grow() -> str:
        """Grow."""
        return "grown"

    async def main() -> None:
        home = SharedHome()
        await home.open_all("ada", "ben")
        lent = SessionCapabilities(tools=(grow,))
        await all_heard(home.shard.perform("ada", ResumeTurns(id="r1", capabilities=lent)))
        await all_heard(home.shard.perform("ben", ResumeTurns(id="r2")))

        def has(name: str) -> bool:
            agent: Any = home.shard._hosts[name]._agent
            return "grow" in agent.tools

        assert (has("ada"), has("ben")) == (True, False)
        assert await home.shard.passivate("ada") and await home.shard.passivate("ben")
        await all_heard(home.shard.perform("ben", ResumeTurns(id="r3")))
        await all_heard(home.shard.perform("ada", ResumeTurns(id="r4")))
        assert (has("ada"), has("ben")) == (True, False)
        await home.leave()

    run_plain(main)


def test_an_unused_shard_reports_it() -> None:
    """The shard reports that it is unused when its last agent has become idle, and not before."""

    async def main() -> None:
        idle: list[int] = []

        async def on_idle() -> None:
            idle.append(home.clock.now())
            await home.shard.unload()

        home = SharedHome(idle_s=60, on_idle=on_idle)
        await home.open_all("ada")
        await asyncio.sleep(50)
        await home.ref("ada").send("Hi")
        await asyncio.sleep(50)
        assert not idle
        await asyncio.sleep(60)
        assert len(idle) == 1 and home.shard._ticks is None
        assert len(await home.ref("ada").send("Hi")) == 2
        await home.leave()

    run_plain(main)
