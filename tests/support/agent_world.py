"""The world in which tests run agents: a clock that moves only when it is read, counting ids, and a scripted model.

Nothing here is random or slow, and everything can be examined afterwards.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.functions.tools import Tool
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.ports.ports import Ports
from everlog.events import Record, UserMessage, uuid7
from everlog.store import MemoryStore, Store

START = 1_767_225_600_000_000
"""2026-01-01 00:00:00 UTC."""
SECOND = 1_000_000


class TickingClock:
    """A clock that is one millisecond later at each reading; `skip` moves the clock further."""

    def __init__(self, start: int = START) -> None:
        self.at = start

    def now(self) -> int:
        self.at += 1000
        return self.at

    def skip(self, seconds: float) -> None:
        self.at += int(seconds * SECOND)


class CountingIds:
    """A source of UUIDv7 whose random part counts up."""

    def __init__(self) -> None:
        self.count = 0

    def new(self, at: int) -> str:
        self.count += 1
        return uuid7(at, self.count)


def completion(
    text: str = "I think.",
    calls: Sequence[tuple[str, dict[str, Any] | str]] = (),
    *,
    total: int = 100,
    prompt: int | None = None,
    finish: str | None = None,
) -> str:
    """Return the body of a chat completion with a thought and calls of (name, arguments)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": a if isinstance(a, str) else json.dumps(a)},
            }
            for number, (name, a) in enumerate(calls)
        ]
    prompt = total - 10 if prompt is None else prompt
    return json.dumps(
        {
            "choices": [{"message": message, "finish_reason": finish or ("tool_calls" if calls else "stop")}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": total - prompt, "total_tokens": total},
            "model": "scripted",
        }
    )


def say(message: str, **options: Any) -> str:
    """Return a completion that sends one message."""
    return completion(calls=[("send_message", {"message": message})], **options)


Line = str | BaseException | Callable[[bytes], str]


class ScriptedModel:
    """A model that gives its lines in order (a body, an exception to raise, or a function of the request), then always
    `after`.

    A request without functions asks for a summary: it is answered from `summaries`, then with a short summary.
    """

    def __init__(
        self, lines: Iterable[Line] = (), *, after: Line | None = None, summaries: Iterable[Line] = ()
    ) -> None:
        self.name = "scripted"
        self.lines = list(lines)
        self.after = after if after is not None else say("Yes.")
        self.summaries = list(summaries)
        self.requests: list[bytes] = []

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        self.requests.append(request)
        if asks_summary(request):
            line: Line = self.summaries.pop(0) if self.summaries else completion("We talked.", prompt=len(request) // 4)
        else:
            line = self.lines.pop(0) if self.lines else self.after
        if isinstance(line, BaseException):
            raise line
        return ModelResponse(line(request) if callable(line) else line, 1000)

    async def close(self) -> None:
        pass

    def messages(self, index: int = -1) -> list[dict[str, Any]]:
        """Return the chat messages of one request."""
        found: list[dict[str, Any]] = json.loads(self.requests[index])["messages"]
        return found


def asks_summary(request: bytes) -> bool:
    """Return True if a request, in any calling format, asks for a summary."""
    body = json.loads(request)
    if "prompt" in body:
        return "### Functions" not in body["prompt"]
    return "tools" not in body and "response_format" not in body


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
        self.clock = TickingClock()
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
