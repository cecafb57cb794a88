"""The world in which tests run agents: a clock that only moves when it is read, ids that count, a model that says what
it was told to. Nothing here is random or slow, and everything can be looked at afterwards.
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
    """Each look at it is one millisecond later than the one before; `skip` moves it further."""

    def __init__(self, start: int = START) -> None:
        self.at = start

    def now(self) -> int:
        self.at += 1000
        return self.at

    def skip(self, seconds: float) -> None:
        self.at += int(seconds * SECOND)


class CountingIds:
    """UUIDv7 whose random part counts up."""

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
    """The body of a chat completion with a monologue and calls of (name, arguments)."""
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
    """A completion that sends one message."""
    return completion(calls=[("send_message", {"message": message})], **options)


Line = str | BaseException | Callable[[bytes], str]


class ScriptedModel:
    """Says its lines in order (a body, an exception to raise, or a function of the request), then `after` for ever.

    A request that offers no functions asks for a summary and is answered from `summaries`, then with a short one.
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
        """The chat messages of one request."""
        found: list[dict[str, Any]] = json.loads(self.requests[index])["messages"]
        return found


def asks_summary(request: bytes) -> bool:
    """Return True if a request, in any calling format, asks for a summary."""
    body = json.loads(request)
    if "prompt" in body:
        return "### Functions" not in body["prompt"]
    return "tools" not in body and "response_format" not in body


def written(request: bytes, text: str, **more: Any) -> str:
    """The body of an answer that is text, for a completion or a chat completion, whichever was asked for."""
    body = json.loads(completion(**more))
    choice = {"text": text} if "prompt" in json.loads(request) else {"message": {"role": "assistant", "content": text}}
    body["choices"] = [{**choice, "finish_reason": more.get("finish") or "stop", "index": 0}]
    return json.dumps(body)


def counted(request: bytes, body: str) -> str:
    """`body` with the usage that a provider would count: a token for four bytes."""
    answer = json.loads(body)
    prompt = len(request) // 4
    answer["usage"] = {"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10}
    return json.dumps(answer)


def users(world: "World") -> list[Tool]:
    """The functions that a world was given beside everlog's own."""
    return [tool for name, tool in world.system.tools.items() if name not in LocalSystem(world.store).tools]


class World:
    """A store, a clock, ids and a model; `tell` sends a user's words to an agent and gives the records back."""

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
        """Ports of its agents besides the model."""
        return Ports(clock=self.clock, ids=self.ids)

    def restarted(self, *lines: Line, **more: Any) -> "World":
        """The same store in a new process."""
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
        """Say each text and let the agent come to rest; all records that this left, those of its birth included."""
        heard: list[Record] = []
        async with self.system.agent(agent, self.settings, on_commit=heard.extend) as running:
            for text in texts:
                await running.receive(UserMessage(text=text))
                await running.run()
        return heard

    def log(self, agent: str = "sam") -> list[Record]:
        """Every record of the agent."""
        return list(self.store.reader(agent).read(agent))

    def kinds(self, agent: str = "sam") -> list[str]:
        """The kinds of the agent's records, in order."""
        return [record.type for record in self.log(agent)]


def kinds(records: Iterable[Record]) -> list[str]:
    """Their kinds, in order."""
    return [record.type for record in records]
