"""The world in which tests run agents one by one: the clock, the ids and the model of `everlog.testing`, without hosts.

Nothing here is random or slow, and everything can be examined afterwards.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from everlog import testing
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.functions.tools import Tool
from everlog.actors.ports.ports import Ports
from everlog.events import Record, UserMessage
from everlog.events.times import since_epoch
from everlog.interfaces.testing import manual_clock
from everlog.interfaces.testing.scripted_reply import completion_body
from everlog.store import MemoryStore, Store
from everlog.testing import CountingIds, ManualClock

START = since_epoch(manual_clock.START)
SECOND = 1_000_000


def completion(
    text: str = "I think.",
    calls: Sequence[tuple[str, dict[str, Any] | str]] = (),
    *,
    total: int = 100,
    prompt: int | None = None,
    finish: str | None = None,
) -> str:
    """Return the body of a chat completion with a thought and calls of (name, arguments)."""
    written = [(name, a if isinstance(a, str) else json.dumps(a)) for name, a in calls]
    prompt = total - 10 if prompt is None else prompt
    return completion_body(text, written, prompt_tokens=prompt, total_tokens=total, finish=finish or "")


def say(message: str, **options: Any) -> str:
    """Return a completion that sends one message."""
    return completion(calls=[("send_message", {"message": message})], **options)


Line = str | BaseException | Callable[[bytes], str]


class ScriptedModel(testing.ScriptedModel):
    """A scripted model whose lines are bodies of answers, or functions of a request's bytes; then always `after`."""

    def __init__(
        self, lines: Iterable[Line] = (), *, after: Line | None = None, summaries: Iterable[Line] = ()
    ) -> None:
        super().__init__(lines, after=after if after is not None else say("Yes."), summaries=summaries)

    def called(self, line: Line, seen: testing.SeenRequest) -> Line:
        return line(seen.raw) if callable(line) else line

    def default_summary(self, seen: testing.SeenRequest) -> Line:
        return completion("We talked.", prompt=len(seen.raw) // 4)

    def body_of(self, line: Line, seen: testing.SeenRequest) -> str:
        return line

    def messages(self, index: int = -1) -> list[dict[str, Any]]:
        """Return the chat messages of one request."""
        return self.seen[index].messages


def written(request: bytes, text: str, **more: Any) -> str:
    """Return the body of an answer that is only text, for a completion or a chat completion, whichever was
    requested.
    """
    body = json.loads(completion(**more))
    choice = {"text": text} if "prompt" in json.loads(request) else {"message": {"role": "assistant", "content": text}}
    body["choices"] = [{**choice, "finish_reason": more.get("finish") or "stop", "index": 0}]
    return json.dumps(body)


def counted(request: bytes, body: str) -> str:
    """Return `body` with the usage that a provider would count: a token for four bytes."""
    answer = json.loads(body)
    prompt = len(request) // 4
    answer["usage"] = {"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10}
    return json.dumps(answer)


def users(world: "World") -> list[Tool]:
    """Return the functions that a world has besides everlog's own."""
    return [tool for name, tool in world.system.tools.items() if name not in LocalSystem(world.store).tools]


class World:
    """A store, a clock, ids and a model; `tell` sends a user's messages to an agent and returns the records."""

    def __init__(
        self,
        *lines: Line,
        after: Line | None = None,
        store: Store | None = None,
        tools: Sequence[Tool] = (),
        **more: Any,
    ) -> None:
        self.clock = ManualClock(tick_us=1000)
        self.ids = CountingIds()
        self.store = store or MemoryStore()
        self.model = ScriptedModel(lines, after=after, **more)
        self.system = LocalSystem(self.store, models=lambda _: self.model, tools=tools, ports=self.ports)
        self.settings = Settings(model="scripted", window=8192)

    @property
    def ports(self) -> Ports:
        """Ports of the world's agents, without the model."""
        return Ports(clock=self.clock, ids=self.ids)

    def restarted(self, *lines: Line, **more: Any) -> "World":
        """Return a world with the same store, as a new process would open it."""
        world = World(*lines, store=self.store, **more)
        world.clock, world.ids, world.settings = self.clock, self.ids, self.settings
        world.system = LocalSystem(
            self.store,
            models=lambda _: world.model,
            tools=users(self),
            ports=self.ports,
        )
        return world

    async def tell(self, *texts: str, agent: str = "sam") -> list[Record]:
        """Send each text and run the agent until it waits again. Return all records, including those of a creation."""
        heard: list[Record] = []
        async with self.system.agent(agent, self.settings, on_commit=heard.extend) as running:
            for text in texts:
                await running.receive(UserMessage(text=text))
                await running.run()
        return heard

    def log(self, agent: str = "sam") -> list[Record]:
        """Return every record of the agent."""
        return list(self.store.reader(agent).read(agent))

    def kinds(self, agent: str = "sam") -> list[str]:
        """Return the kinds of the agent's records, in order."""
        return [record.type for record in self.log(agent)]


def kinds(records: Iterable[Record]) -> list[str]:
    """Return the kinds of records, in order."""
    return [record.type for record in records]
