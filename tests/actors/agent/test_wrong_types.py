"""A value of a wrong type is refused before it is appended: a log with such a record could not be read again."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.actors.hosting.pending_work import pending_work
from everlog.actors.ports.ports import Ports
from everlog.events import (
    AgentDeleted,
    BadInput,
    Event,
    FunctionResult,
    Heartbeat,
    SystemAlert,
    TimerSet,
    TurnsHidden,
    UserLogin,
    UserMessage,
    draft,
)
from everlog.store import FileStore
from everlog.testing import CountingIds, ManualClock
from tests.support.agent_world import START

HALF = "\ud800"
"""Half of a surrogate pair."""


def opened(folder: Path) -> AbstractAsyncContextManager[AgentSystem]:
    """Open a system of agents in this process."""
    return open_system(folder, runtime="local", ports=Ports(clock=ManualClock(tick_us=1000), ids=CountingIds()))


Misuse = Callable[[Any], Awaitable[object]]


def refused(tmp_path: Path, misuse: Misuse) -> None:
    """Run `misuse` with a new agent. Check that it raises BadInput, that the log is unchanged, and that the agent
    answers afterwards.
    """

    async def run() -> None:
        async with open_system(
            tmp_path, runtime="local", ports=Ports(clock=ManualClock(tick_us=1000), ids=CountingIds())
        ) as system:
            agent = await system.agent("sam")
            head = agent.opened.head
            with pytest.raises(BadInput):
                await misuse(agent)
            with closing(system._reading.view("sam")) as view:
                assert view.head.seq == head
            assert [record.type for record in await agent.send("Hi")][:1] == ["user_message"]

    asyncio.run(run())


MISUSES: dict[str, Misuse] = {
    "heartbeat of None": lambda agent: agent.heartbeat(None),
    "half of a character": lambda agent: agent.send(HALF),
    "a name that is no text": lambda agent: agent.send("x", speaker=5),
    "a name with half of a character": lambda agent: agent.send("x", speaker=HALF),
    "no text at all": lambda agent: agent.send(None),
    "a reason that there is not": lambda agent: agent.send(Heartbeat(text="x", reason="bogus")),  # type: ignore[arg-type]
    "a time that is none": lambda agent: agent.send(UserLogin(last_login="today")),  # type: ignore[arg-type]
    "a timer every True": lambda agent: agent.set_timer("t", every=True),
    "a timer every half second": lambda agent: agent.set_timer("t", every=timedelta(seconds=0.5)),
    "a timer due at a number": lambda agent: agent.set_timer("t", due_at=START),
    "a timer due in no zone": lambda agent: agent.set_timer("t", due_at=datetime(2027, 1, 1)),  # noqa: DTZ001
    "an import that was said in no zone": lambda agent: agent.import_messages(
        [
            ImportedMessage(UserMessage(text="x", imported=True), datetime(2020, 1, 1))  # noqa: DTZ001
        ]
    ),
    "an import of text": lambda agent: agent.import_messages(["Hi"]),
    "settings that are a dict": lambda agent: agent.configure({"model": "gpt-4o"}),
    "a message without words": lambda agent: agent.send(" \n"),
    "a question without words": lambda agent: agent.ask(""),
    "an event without words": lambda agent: agent.ask(UserMessage(text="")),
    "a timer called 5": lambda agent: agent.set_timer(5, every=timedelta(seconds=60)),
    "a timer that says None": lambda agent: agent.set_timer("t", None, every=timedelta(seconds=60)),
    "a timer called by half of a character": lambda agent: agent.set_timer(HALF, every=timedelta(seconds=60)),
    "a timer to cancel that is no text": lambda agent: agent.cancel_timer(5),
    "turns that are text": lambda agent: agent.undo_turns("1"),
    "turns that are a fraction": lambda agent: agent.undo_turns(1.5),
    "a thought that is None": lambda agent: agent.edit_last_thought(None),
    "a window that is text": lambda agent: agent.configure(Settings(window="8")),  # type: ignore[arg-type]
    "a window that is True": lambda agent: agent.configure(Settings(window=True)),
    "a model that is a number": lambda agent: agent.configure(Settings(model=5)),  # type: ignore[arg-type]
    "a prompt with half of a character": lambda agent: agent.configure(Settings(system=HALF)),
}


@pytest.mark.parametrize("name", MISUSES)
def test_values_of_wrong_types_are_refused(tmp_path: Path, name: str) -> None:
    """Wrong types raise BadInput, leave no record, and leave the agent usable."""
    refused(tmp_path, MISUSES[name])


@pytest.mark.parametrize(
    "event",
    [
        AgentDeleted(),
        TurnsHidden(turns=[1]),
        FunctionResult(text="x", call_id="a", name="b"),
        TimerSet(timer="t", due_at=1),
        UserMessage(text="x", imported=True),
    ],
)
def test_only_inputs_are_sent(tmp_path: Path, event: Event) -> None:
    """Records that an agent or a command writes cannot be sent as inputs, and neither can imported messages."""
    refused(tmp_path, lambda agent: agent.send(event))


@pytest.mark.parametrize(
    "event",
    [UserMessage(text="x", name="Ann"), UserLogin(last_login=5), SystemAlert(text="x"), Heartbeat(reason="requested")],
)
def test_every_input_is_sent(tmp_path: Path, event: Event) -> None:
    """Each kind of input opens a turn and is stored unchanged."""

    async def run() -> None:
        async with open_system(
            tmp_path, runtime="local", ports=Ports(clock=ManualClock(tick_us=1000), ids=CountingIds())
        ) as system:
            agent: AgentRef = await system.agent("sam")
            assert (await agent.send(event))[0].type == event.kind

    asyncio.run(run())


@pytest.mark.parametrize("name", [None, 5])
def test_a_name_that_is_not_text_is_refused(tmp_path: Path, name: Any) -> None:
    """A name that is not text is refused, and no agent is created."""

    async def run() -> None:
        async with open_system(
            tmp_path, runtime="local", ports=Ports(clock=ManualClock(tick_us=1000), ids=CountingIds())
        ) as system:
            with pytest.raises(BadInput, match="an agent name must be text"):
                await system.agent(name)
            assert await system.agents() == []

    asyncio.run(run())


@pytest.mark.parametrize("payload", ['{"timer":"t","due_at":5,"every_s":true}', '{"timer":5}', "[]", "no JSON"])
def test_an_agent_with_an_invalid_timer_does_not_stop_the_others(tmp_path: Path, payload: str) -> None:
    """A log with an invalid timer is noted at most, and the timers of the next agent are kept."""
    clock, ids = ManualClock(tick_us=1000), CountingIds()

    async def run() -> None:
        async with open_system(tmp_path, runtime="local", ports=Ports(clock=clock, ids=ids)) as system:
            for name in ("abe", "zed"):
                await (await system.agent(name)).set_timer("good", every=timedelta(seconds=60))

    asyncio.run(run())
    files = FileStore(tmp_path, clock.now)
    bad = draft(TimerSet(timer="t", due_at=5), event_id=ids.new(clock.now()), recorded_at=clock.now(), turn=0, step=0)
    log = files.open("abe", "test")
    log.append("abe", log.head("abe").seq, [msgspec.structs.replace(bad, payload=payload)])
    log.close()
    notes: list[str] = []
    found = {standing.agent_id: standing for standing in pending_work(files, notes.append)}
    assert [timer.timer for timer in found["zed"].timers] == ["good"]
    assert [note for note in notes if not note.startswith("'abe' cannot be read: ")] == []
    shutil.rmtree(tmp_path)  # or the check of every agent at the end of the suite would fail
