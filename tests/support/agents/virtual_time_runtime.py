"""Agents of one process in virtual time: a store, and one runtime after the other over it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import OpenAgent, OpenReport, SessionCapabilities
from everlog.actors.agent_memory import AgentSearches
from everlog.actors.agent_ref import AgentNaming, AgentRef
from everlog.actors.command_sender import CommandSender
from everlog.actors.hosting.agent_factory import session_system
from everlog.actors.hosting.local_runtime import LocalRuntime
from everlog.actors.hosting.timer_schedule import DueTimer
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.ports.ports import Ports
from everlog.events import Record, times
from everlog.store import MemoryStore
from everlog.testing import CountingIds
from tests.support import virtual_time
from tests.support.agent_world import SECOND, START, Line, say
from tests.support.agents import fast_stand_ins
from tests.support.virtual_time import WallClock


async def at_once() -> None:
    """Let a step of a plain agent take no time."""
    await asyncio.sleep(0)


def run_plain(main: Callable[[], Coroutine[Any, Any, Any]], wait: Callable[[], Any] = at_once) -> Any:
    """Run `main` with plain agents, in virtual time."""
    with fast_stand_ins.plain(wait):
        return virtual_time.run(main)


async def no_search(*_: object) -> Any:
    """Stand in for the search of an agent: none of these tests searches."""
    raise AssertionError("a search was not expected")


def no_moment(*_: object) -> Any:
    """Stand in for the opener of past moments: none of these tests reads memories."""
    raise AssertionError("a reading of memories was not expected")


async def no_names(*_: object) -> None:
    """Stand in for the names of an agent: none of these agents has forks or another name."""


def ref_of(agent_id: str, runtime: Any, ports: Ports) -> AgentRef:
    """Return a handle on an agent that was not opened yet."""
    sender = CommandSender(agent_id, runtime, capabilities=None, ports=ports, on_commit=None)
    opened = OpenReport(born=False, model="", zone="UTC", head=0, turn=0, waiting=0)
    searches = AgentSearches(no_search, no_search, no_moment)
    return AgentRef(sender, opened, searches=searches, naming=AgentNaming(no_names, no_names, no_names))


async def open_ref(ref: AgentRef, settings: Settings) -> None:
    """Open the agent of a handle, as `AgentSystem.agent` does."""
    ref.opened = await ref._sender.perform(
        OpenAgent, capabilities=SessionCapabilities(), settings=settings, command="test"
    )


def when(after_s: float) -> datetime:
    """Return the time so many seconds after START."""
    return times.moment(moment(after_s))


class Home:
    """One process: `leave` ends it, and another Home over the same store is the next process."""

    def __init__(self, store: Any = None, *, idle_s: float = 300, lines: Sequence[Line] = (), skew: int = 0) -> None:
        self.store = store or MemoryStore()
        self.clock, self.ids = WallClock(skew), CountingIds()
        self.ids.count = int(asyncio.get_running_loop().time()) * 1000
        self.lines = list(lines)
        self.notes: list[str] = []
        self.blocks = SharedBlockWriter(self.store, self.ports)
        self.runtime = LocalRuntime(
            lambda lent: session_system(self.store, lent, self.ask, ports=self.ports, blocks=self.blocks),
            ports=self.ports, idle_s=idle_s, blocks=self.blocks,
        )  # fmt: skip

    @property
    def ports(self) -> Ports:
        """Ports of the agents, apart from the model."""
        return Ports(clock=self.clock, ids=self.ids, note=self.notes.append)

    async def ask(
        self, name: str, base_url: str, request: bytes, agent_id: str, *_: object, **__: object
    ) -> ModelResponse:
        line = self.lines.pop(0) if self.lines else say("Yes.")
        if isinstance(line, BaseException):
            raise line
        return ModelResponse(line(request) if callable(line) else line, 1000)

    def ref(self, agent_id: str = "sam") -> AgentRef:
        return ref_of(agent_id, self.runtime, self.ports)

    async def open(self, agent_id: str = "sam") -> AgentRef:
        ref = self.ref(agent_id)
        await open_ref(ref, Settings())
        return ref

    async def leave(self) -> None:
        await self.runtime.close()

    def log(self, agent_id: str = "sam") -> list[Record]:
        return list(self.store.reader(agent_id).read(agent_id))

    def beats(self, agent_id: str = "sam", timer: str = "") -> list[tuple[float, bool]]:
        """Return the timed heartbeats in the log: seconds since START, and True if marked late."""
        found = [(r, fast_stand_ins.payload(r)) for r in self.log(agent_id) if r.type == "heartbeat"]
        return [(seconds(r.recorded_at), w.get("late", False)) for r, w in found if timer in ("", w["timer"])]


def seconds(at: int) -> float:
    """Return the seconds between START and a time in microseconds."""
    return (at - START) / SECOND


def moment(after_s: float) -> int:
    """Return the time `after_s` seconds after START, in microseconds UTC."""
    return START + round(after_s * SECOND)


def due(after_s: float, timer: str = "tea", every_s: int = 0, set_seq: int = 1) -> DueTimer:
    return DueTimer(moment(after_s), timer, every_s, set_seq)
