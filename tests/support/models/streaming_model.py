"""A model that streams its replies, and a process whose agents call it."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.functions.tools import Tool
from everlog.actors.hosting.local_runtime import LocalRuntime
from everlog.actors.ports.effects import DeltaCallback, ModelResponse, ReplyDelta
from everlog.actors.ports.ports import Ports
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import Record
from everlog.testing import CountingIds
from tests.support.agent_world import completion, say
from tests.support.agents.virtual_time_runtime import Home, open_ref
from tests.support.agents.virtual_time_shard import SharedHome
from tests.support.virtual_time import WallClock

CUT = "cut"
"""A line at which the stream breaks in the middle, and the reply is then sent again."""


def pieces_of(body: str, size: int = 6) -> Iterator[ReplyDelta]:
    """Yield the deltas of a chat completion, `size` characters at a time."""
    message = json.loads(body)["choices"][0]["message"]
    for part in _split(message["content"] or "", size):
        yield ReplyDelta(text=part)
    for number, call in enumerate(message.get("tool_calls") or ()):
        yield ReplyDelta(call=number, name=call["function"]["name"])
        for part in _split(call["function"]["arguments"], size):
            yield ReplyDelta(call=number, arguments=part)


def _split(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


class Streamer:
    """Gives its lines in order, then "Yes."; a line is a body, or an exception that is raised after half of "Yes."."""

    name = "streamer"

    def __init__(self, *lines: str | BaseException) -> None:
        self.lines = list(lines)
        self.open = 0
        """Number of calls that are under way."""
        self.heard = 0
        """Number of calls."""

    async def ask(self, request: bytes, *, on_delta: DeltaCallback | None = None, **_: object) -> ModelResponse:
        hear = on_delta or (lambda _: None)
        line = self.lines.pop(0) if self.lines else say("Yes.")
        self.heard += 1
        self.open += 1
        try:
            if line == CUT:
                await self._say(say("Yes."), hear, half=True)
                hear(ReplyDelta(restart=True))
                line = say("Yes.")
            if isinstance(line, BaseException):
                await self._say(say("Yes."), hear, half=True)
                raise line
            await self._say(line, hear)
        finally:
            self.open -= 1
        return ModelResponse(line, 1000)

    async def _say(self, body: str, hear: DeltaCallback, *, half: bool = False) -> None:
        pieces = list(pieces_of(body))
        for piece in pieces[: -3 if half else None]:
            await asyncio.sleep(0)
            hear(piece)
        await asyncio.sleep(0)

    async def close(self) -> None:
        pass


SPEAKS = Settings(model="streamer", window=8192, stream=True)


def streaming(model: Streamer, tools: Sequence[Tool] = ()) -> Home:
    """Return a process whose agents, each with its own log, call this model."""
    home = Home()
    home.runtime = LocalRuntime(
        lambda _: LocalSystem(home.store, models=lambda _: model, tools=tools, ports=home.ports),
        ports=home.ports, blocks=home.blocks,
    )  # fmt: skip
    return home


def streaming_shared(model: Streamer, tools: Sequence[Tool] = ()) -> SharedHome:
    """Return a process whose agents share a log and call this model."""
    home = SharedHome()
    home.store.register_many(["sam"], shared=True)
    home.shard._make_system = lambda _, enter: LocalSystem(
        home.store, models=lambda _: model, tools=tools, ports=home.ports, enter=enter
    )
    return home


async def opened(home: Home) -> Any:
    """Open the agent of a process, configured to stream."""
    ref = home.ref()
    await open_ref(ref, SPEAKS)
    return ref


def faults(home: Home, tools: Sequence[Tool] = ()) -> list[Any]:
    """Return the faults that verify and rebuild find, and the open turns."""
    system = LocalSystem(home.store, tools=tools, ports=Ports(clock=WallClock(), ids=CountingIds()))
    view = system.view("sam")
    found = [*verify(view, system.tools).faults, *rebuild(view).faults]
    found += [turn for turn in view.rows("turns") if turn["status"] == "open"]
    view.close()
    return found


def told(previews: Sequence[Preview]) -> dict[str, str]:
    """Return the text of the previews since the last restart, by kind."""
    said: dict[str, str] = {}
    for preview in previews:
        if preview.kind == "restart":
            said = {}
        elif preview.kind != "end":
            said[preview.kind] = said.get(preview.kind, "") + preview.text
    return said


def said(records: Sequence[Record]) -> list[str | None]:
    return [record.text for record in records if record.type == "message_sent"]


def calls(name: str, **arguments: Any) -> str:
    """Return a reply that calls a function and continues after it."""
    return completion(calls=[(name, {"request_heartbeat": True, **arguments})])
