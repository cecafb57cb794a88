"""A watch delivers the records that belong to no caller: once, in order, and without the answers to other callers."""

import asyncio
from datetime import timedelta

from everlog.actors.agent_ref import AgentRef
from everlog.actors.ports.agent_constants import WATCH_S
from everlog.events import Record
from tests.support.agents.virtual_time_runtime import Home, run_plain, when


async def short() -> None:
    """Delay a step of a plain agent by a second."""
    await asyncio.sleep(1)


async def watch(ref: AgentRef, heard: list[Record]) -> None:
    """Collect everything that is delivered, for ever."""
    async for record in ref.subscribe():
        heard.append(record)


def test_a_watch_delivers_timer_turns_and_no_answers_to_callers() -> None:
    """Over many renewals a watch delivers each record of each timer's turn once, and no answer to a caller."""

    async def main() -> None:
        home = Home()
        sam = await home.open()
        heard: list[Record] = []
        watching = asyncio.create_task(watch(sam, heard))
        await sam.set_timer("tea", "[steps=2]", due_at=when(10), every=timedelta(seconds=7))
        for number in range(12):
            await sam.send(f"question {number} [steps=2]")
            await asyncio.sleep(WATCH_S / 3)
        watching.cancel()
        await home.leave()
        beats = {record.turn for record in home.log() if record.type == "heartbeat"}
        wanted = [record.seq for record in home.log() if record.turn in beats and record.seq <= heard[-1].seq]
        told = [record.seq for record in heard if record.turn in beats and record.step + (record.type == "heartbeat")]
        assert len(beats) > 10
        assert told == wanted
        asked = {record.turn for record in home.log() if record.type == "user_message"}
        assert not [record for record in heard if record.turn in asked and record.step]

    run_plain(main, short)


def test_a_timer_that_fired_before_the_watch_is_delivered() -> None:
    """The heartbeat of a timer that fired before the watch began is delivered when the watch begins."""

    async def main() -> None:
        home = Home()
        sam = await home.open()
        await sam.set_timer("tea", due_at=when(10))
        await home.leave()
        await asyncio.sleep(60)
        later = Home(home.store)
        sam = await later.open()
        heard: list[Record] = []
        await asyncio.sleep(30)
        watching = asyncio.create_task(watch(sam, heard))
        await asyncio.sleep(1)
        watching.cancel()
        await later.leave()
        assert [record.type for record in heard][:2] == ["heartbeat", "message_sent"]

    run_plain(main, short)


def test_an_answer_whose_caller_left_goes_to_no_other_caller() -> None:
    """After a caller left, the next caller gets its own turn only; a watcher gets the rest of the first turn."""

    async def main() -> None:
        home = Home()
        sam, other = await home.open(), home.ref()
        watched: list[Record] = []
        watching = asyncio.create_task(watch(sam, watched))
        async for _ in sam.send("from A [steps=3]"):
            break
        mine = await other.send("from B")
        watching.cancel()
        await home.leave()
        assert {record.turn for record in mine} == {2}
        assert {record.turn for record in watched} == {1}

    run_plain(main, short)
