"""Hosts and workers when two things happen at the same moment."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

from everlog.actors.agent.commands import (
    Command,
    CommandResult,
    FireTimer,
    ResumeTurns,
    SendInput,
    SessionCapabilities,
    StreamItem,
)
from everlog.actors.hosting.agent_factory import HostLink
from everlog.actors.hosting.host import Host
from everlog.events import HostLost, ModelError, Record, UnknownAgent, UserMessage
from tests.support.agents.fast_stand_ins import payload
from tests.support.agents.virtual_time_runtime import Home, run_plain
from tests.support.seeds import split


async def long() -> None:
    """Delay a step of a plain agent by ten seconds."""
    await asyncio.sleep(10)


def say(home: Home, text: str) -> SendInput:
    return SendInput(id=home.ids.new(home.clock.now()), event=UserMessage(text=text))


async def heard(preview_for: AsyncIterator[StreamItem]) -> list[StreamItem]:
    return [item async for item in preview_for]


async def hosted(home: Home, **options: Any) -> Host:
    """Return a host of the existing agent sam."""
    await home.open()
    await home.leave()
    return Host("sam", home.runtime._system_of, **{"idle_s": 5, **options})


@pytest.mark.parametrize("after", split(range(12), 2, label="the worker stops", part="hosts"))
def test_a_turn_that_begins_as_the_worker_stops_runs(after: int) -> None:
    """An input that arrives any number of event-loop rounds after the first one is answered, and its caller gets the
    end of its turn.
    """

    async def main() -> None:
        home = Home()
        host = await hosted(home)
        first = asyncio.create_task(heard(host.perform(say(home, "one"))))
        for _ in range(after):
            await asyncio.sleep(0)
        second = await heard(host.perform(say(home, "two")))
        assert isinstance(second[-1], CommandResult) and second[-1].value.text == "two"
        await first
        await host.close()

    run_plain(main)


def test_an_agent_is_unloaded_after_callers_who_end_together() -> None:
    """Two callers of one turn leave at the same moment; the agent is then idle, and is unloaded."""

    async def main() -> None:
        home = Home()
        host = await hosted(home)
        command = say(home, "one")
        await asyncio.gather(heard(host.perform(command)), heard(host.perform(command)))
        assert host.active
        await asyncio.sleep(6)
        assert not host.active

    run_plain(main, long)


def test_simultaneous_callers_of_an_unloaded_agent_are_all_answered() -> None:
    """No caller is refused as busy: all have the same capabilities, and the agent had none before."""

    async def main() -> None:
        home = Home()
        host = await hosted(home)
        lent = SessionCapabilities(base_url="http://127.0.0.1:1/v1")
        commands = [msgspec.structs.replace(say(home, text), capabilities=lent) for text in ("one", "two", "three")]
        ends = [one[-1] for one in await asyncio.gather(*(heard(host.perform(command)) for command in commands))]
        assert [end.value.text for end in ends if isinstance(end, CommandResult)] == ["one", "two", "three"]
        await host.close()

    run_plain(main)


def test_a_host_that_could_not_open_its_agent_is_idle() -> None:
    """A host whose agent could not be opened reports that it is idle after `idle_s`, so that its process ends."""

    async def main() -> None:
        home = Home()
        idle = asyncio.Event()

        async def on_idle() -> None:
            idle.set()

        host = Host("nobody", home.runtime._system_of, idle_s=5, link=HostLink(on_idle=on_idle))
        with pytest.raises(UnknownAgent):
            await heard(host.perform(ResumeTurns(id=home.ids.new(home.clock.now()))))
        await asyncio.wait_for(idle.wait(), 6)

    run_plain(main)


def test_a_command_during_unloading_keeps_the_agent() -> None:
    """A command that arrives while the agent is being unloaded is served, and `passivate` returns False, so the host is
    kept.
    """

    async def main() -> None:
        home = Home()
        host = await hosted(home)
        await heard(host.perform(say(home, "one")))

        seat = host._seat
        assert seat is not None

        @asynccontextmanager
        async def slowly() -> AsyncIterator[None]:
            yield
            await asyncio.sleep(3)
            await seat.__aexit__(None, None, None)

        host._seat = slow = slowly()
        await slow.__aenter__()
        leaving = asyncio.create_task(host.passivate())
        await asyncio.sleep(1)
        coming = asyncio.create_task(heard(host.perform(say(home, "two"))))
        assert not await leaving
        assert (await coming)[-1].value.text == "two"
        await host.close()

    run_plain(main)


def test_a_command_continues_after_its_caller_left() -> None:
    """The command continues after its caller left; its failure reaches no caller and causes no warning."""

    async def main() -> None:
        home = Home()
        host = await hosted(home)
        gone = asyncio.create_task(heard(host.perform(say(home, "[fail]"))))
        await asyncio.sleep(1)
        gone.cancel()
        await asyncio.sleep(30)
        await host.close()
        assert home.log()[-1].type == "model_failed"

    run_plain(main, long)


def test_callers_waiting_at_close_get_an_error() -> None:
    """A caller whose turn is interrupted by closing gets HostLost and not a CancelledError."""

    async def main() -> Home:
        home = Home()
        sam = await home.open()
        waiting = asyncio.create_task(sam.send("[steps=3]")._all())
        await asyncio.sleep(15)
        await home.leave()
        with pytest.raises(HostLost):
            await waiting
        with pytest.raises(HostLost):
            await sam.send("Too late")
        return home

    home = run_plain(main, long)
    assert [r.type for r in home.log()][-2:] == ["user_message", "message_sent"]


def test_an_agent_that_is_deleted_during_a_turn() -> None:
    """No record follows the deletion, and the caller that waited for the turn gets UnknownAgent."""

    async def main() -> Home:
        home = Home()
        sam = await home.open()
        waiting = asyncio.create_task(sam.send("[steps=3]")._all())
        await asyncio.sleep(15)
        await sam.delete()
        with pytest.raises(UnknownAgent):
            await waiting
        await asyncio.sleep(30)
        await home.leave()
        return home

    assert run_plain(main, long).log()[-1].type == "agent_deleted"


@pytest.mark.parametrize("meanwhile", ["resume", "timer"])
def test_a_repeated_command_gets_all_records_of_its_turn(meanwhile: str) -> None:
    """The same command, sent to the next host while other commands run, delivers all records of its turn in order."""

    async def main() -> None:
        home = Home()
        host = await hosted(home)
        command = say(home, "[steps=3]")
        began = asyncio.create_task(heard(host.perform(command)))
        await asyncio.sleep(15)
        await host.close()
        with suppress(HostLost):
            await began
        host = Host("sam", home.runtime._system_of)
        if meanwhile == "resume":
            others = asyncio.create_task(heard(host.perform(ResumeTurns(id=home.ids.new(home.clock.now())))))
            await asyncio.sleep(9.999)
        else:
            others = asyncio.create_task(heard(host.perform(set_timer(home))))
        again = asyncio.create_task(heard(host.perform(command)))
        await others
        records = [record for item in await again if not isinstance(item, CommandResult) for record in item]
        own = [record.seq for record in home.log() if record.turn == 1 and record.type != "timer_set"]
        assert [record.seq for record in records if record.seq in own] == own
        assert [record.seq for record in records] == sorted({record.seq for record in records})
        await host.close()

    run_plain(main, long)


def set_timer(home: Home) -> Command:
    from everlog.actors.agent.commands import SetTimer

    return SetTimer(id=home.ids.new(home.clock.now()), timer="tea", text="", due_at=home.clock.now() + 10**12)


def test_a_repeated_command_reports_the_models_failure_again() -> None:
    """Sending an input again after its model failed raises the same error and writes nothing."""

    async def main() -> None:
        home = Home()
        host = await hosted(home)
        command = say(home, "[fail]")
        for _ in range(2):
            with pytest.raises(ModelError, match="No"):
                await heard(host.perform(command))
        assert [r.type for r in home.log()][-2:] == ["user_message", "model_failed"]
        await host.close()

    run_plain(main)


def test_the_schedule_is_notified_when_timers_may_have_changed() -> None:
    """The schedule is notified when the agent is opened, when a timer is set, and when a stale timer fires; not after
    each turn, not even if the turn has a record after which timers may have changed.
    """

    async def main() -> None:
        home = Home()
        told: list[Sequence[Any]] = []
        host = await hosted(home, link=HostLink(notify_timers=lambda _, timers: told.append(timers)))
        for _ in range(5):
            await heard(host.perform(say(home, "Hi [pause=2]")))
        assert told == [[]]
        await heard(host.perform(set_timer(home)))
        for _ in range(5):
            await heard(host.perform(say(home, "Hi")))
        assert [len(timers) for timers in told] == [0, 1]
        stale = FireTimer(id=home.ids.new(home.clock.now()), timer="tea", due_at=17)
        assert (await heard(host.perform(stale)))[-1] == CommandResult(False)
        assert [len(timers) for timers in told] == [0, 1, 1], "who sent that knows no better"
        await host.close()

    run_plain(main)


def test_delivered_records_are_those_of_the_log() -> None:
    """A caller gets the records as they are in the log, its input first."""

    async def main() -> None:
        home = Home()
        sam = await home.open()
        records: list[Record] = await sam.send("Hi [steps=2]")
        assert records == home.log()[-3:]
        assert payload(records[0]) == {}
        await home.leave()

    run_plain(main)
