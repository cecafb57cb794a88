"""Agents that are attached to shared blocks: many of them in one process, each with a scripted model of its own."""

import asyncio
import inspect
import json
from collections.abc import Sequence
from typing import Any

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.agent_ref import AgentRef
from everlog.actors.memory.block_sync import follow, unfollow
from everlog.actors.memory.shared_block_rules import SharedBlock
from everlog.actors.memory.shared_block_service import SharedBlockService
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.ports.ports import Ports
from everlog.actors.replay.rebuild_check import verify
from everlog.events import Record, UserMessage
from everlog.store import MemoryStore, Store, stream_of_block
from everlog.testing import CountingIds, ManualClock
from tests.support.agent_world import completion, say
from tests.support.agents.virtual_time_runtime import open_ref
from tests.support.agents.virtual_time_shard import SharedHome

CLOCK, IDS = ManualClock(tick_us=1000), CountingIds()
PORTS = Ports(clock=CLOCK, ids=IDS)
"""Ports of all tests, so that a restarted process makes ids that were not used before."""


def append(content: str, name: str = "team") -> str:
    return completion(calls=[("core_memory_append", {"name": name, "content": content, "request_heartbeat": True})])


def replace(old: str, new: str, name: str = "team") -> str:
    arguments = {"name": name, "old_content": old, "new_content": new, "request_heartbeat": True}
    return completion(calls=[("core_memory_replace", arguments)])


class Voice:
    """The model of one agent: it gives its lines, then "Yes." for ever."""

    name = "scripted"

    def __init__(self) -> None:
        self.lines: list[Any] = []
        self.requests: list[bytes] = []
        self.together: asyncio.Barrier | None = None
        """Barrier at which an answer waits until all other agents have called their models."""

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        self.requests.append(request)
        if self.together is not None and self.lines:
            await self.together.wait()
        line = self.lines.pop(0) if self.lines else say("Yes.")
        told: Any = line(request) if callable(line) else line
        if inspect.isawaitable(told):
            told = await told
        if isinstance(told, BaseException):
            raise told
        return ModelResponse(told, 1000)

    async def close(self) -> None:
        pass

    @property
    def seen(self) -> str:
        """System message of the newest request."""
        return str(json.loads(self.requests[-1])["messages"][0]["content"])


class Team:
    """A store with agents and shared blocks, in one process."""

    def __init__(self, store: Store | None = None, *, keeps: bool = False, tools: Sequence[Any] = ()) -> None:
        self.store = store or MemoryStore()
        self.sharing = SharedBlockWriter(self.store, PORTS, keeps=keeps)
        self.people = SharedBlockService(self.store, self.sharing, clock=CLOCK, ids=IDS)
        self.voices: dict[str, Voice] = {}
        self.system = LocalSystem(
            self.store, ports=PORTS, tools=tools,
            services=AgentServices(models_of=lambda agent_id: lambda _: self.voice(agent_id), blocks=self.sharing),
        )  # fmt: skip

    def voice(self, agent_id: str) -> Voice:
        return self.voices.setdefault(agent_id, Voice())

    def opened(self, agent_id: str) -> Any:
        return self.system.agent(agent_id, Settings(model="scripted", window=8192, verify_first=False))

    async def follow(self, agent: Agent, block: str = "team", label: str = "") -> bool:
        return await follow(agent, block, label or block, IDS.new(CLOCK.now()))

    async def unfollow(self, agent: Agent, block: str = "team") -> bool:
        return await unfollow(agent, block, IDS.new(CLOCK.now()))

    async def tell(self, agent: Agent, *lines: Any, text: str = "go on") -> list[Record]:
        """Have the agent answer with these lines. Return the new records."""
        self.voice(agent.agent_id).lines.extend(lines)
        before = agent.head
        await agent.receive(UserMessage(text=text))
        await agent.run()
        return list(agent.records(before + 1))

    def block(self, name: str = "team") -> SharedBlock:
        return self.people.show(name)

    def edits(self, name: str = "team") -> list[Record]:
        stream = stream_of_block(name)
        return list(self.store.reader(stream).read(stream))

    def faults(self, agent_id: str) -> Sequence[Any]:
        """Return the differences that `verify` finds."""
        view = self.system.view(agent_id)
        try:
            report = verify(view, self.system.tools)
            return [*report.faults, *getattr(report, "differences", [])]
        finally:
            view.close()


class Crew(SharedHome):
    """Many agents in one shard, each with its own model, and shared blocks."""

    def __init__(self) -> None:
        self.voices: dict[str, Voice] = {}
        super().__init__()
        self.people = SharedBlockService(self.store, self.blocks, clock=self.clock, ids=self.ids)

    def voice(self, agent_id: str) -> Voice:
        return self.voices.setdefault(agent_id, Voice())

    async def ask(
        self, name: str, base_url: str, request: bytes, agent_id: str, *_: object, **__: object
    ) -> ModelResponse:
        return await self.voice(agent_id).ask(request)

    async def following(self, names: Sequence[str], block: str = "team") -> list[AgentRef]:
        """Create agents of these names, attached to a block."""
        self.store.register_many(names, shared=True)
        agents = [self.ref(name) for name in names]
        settings = Settings(model="scripted", window=8192, verify_first=False)
        await asyncio.gather(*(open_ref(agent, settings) for agent in agents))
        await asyncio.gather(*(agent.attach_block(block) for agent in agents))
        return agents

    def block(self, name: str = "team") -> SharedBlock:
        return self.people.show(name)

    def edits(self, name: str = "team") -> list[Record]:
        stream = stream_of_block(name)
        return list(self.store.reader(stream).read(stream))
