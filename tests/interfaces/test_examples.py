"""The examples in docs/examples are complete programs: they run, and do what their page says.

`open_system` is stood in for here, by the agents of the tests' own world: the same names, the same answers.
"""

import importlib.util
import inspect
import io
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from actors.agent import Agent
from events import EverlogError, ModelError, Record, UserMessage
from interfaces.contract import FrontEnd, Notice
from tests.world import World, completion, say

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
LINES_MAX = 40


class TalkingAgent:
    """An agent as the public API gives it."""

    def __init__(self, agent: Agent, heard: list[Record]) -> None:
        self._agent = agent
        self._heard = heard

    async def send(self, text: str) -> AsyncIterator[Record]:
        """Every record that follows; then the error, if there was one."""
        self._heard.clear()
        failed = None
        try:
            await self._agent.receive(UserMessage(text=text))
            await self._agent.run()
        except EverlogError as error:
            failed = error
        for record in self._heard:
            yield record
        if failed is not None:
            raise failed


class OpenSystem:
    """A system as the public API gives it: agents stay open until it is closed."""

    def __init__(self, world: World, stack: AsyncExitStack) -> None:
        self._world = world
        self._stack = stack

    async def agent(self, name: str) -> TalkingAgent:
        heard: list[Record] = []
        owned = self._world.system.agent(name, self._world.settings, listen=heard.extend)
        return TalkingAgent(await self._stack.enter_async_context(owned), heard)


def api_of(world: World) -> ModuleType:
    """A stand-in for the module `actors.api`."""

    @asynccontextmanager
    async def open_system(folder: str | Path, runtime: str = "auto") -> AsyncIterator[OpenSystem]:
        async with AsyncExitStack() as stack:
            yield OpenSystem(world, stack)

    module = ModuleType("actors.api")
    module.open_system = open_system  # type: ignore[attr-defined]
    return module


def run(name: str, said: str, monkeypatch: pytest.MonkeyPatch, world: World, folder: Path) -> None:
    """Run the example as a program, with `said` on stdin."""
    monkeypatch.setitem(sys.modules, "actors.api", api_of(world))
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    monkeypatch.setattr("sys.argv", [name, str(folder)])
    spec = importlib.util.spec_from_file_location("__main__", EXAMPLES / name)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_the_front_end_answers_what_it_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each line is answered with prefixes: messages, functions, notices, and an error after which it goes on."""
    remember = '{"name": "human", "content": "Sails", "request_heartbeat": true}'
    world = World(
        completion("A sailor!", [("core_memory_append", remember)]),
        say("Ahoy."),
        ModelError("The endpoint is down.", kind="unreachable"),
        say("Here again."),
    )
    run("front_end.py", "Hi, I sail\nHello?\nAnd now?\n", monkeypatch, world, tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "+ core_memory_append None",
        "* ♥ requested",
        "sam> Ahoy.",
        "! The endpoint is down.",
        "sam> Here again.",
    ]
    assert [record.text for record in world.log() if record.type == "user_message"] == [
        "Hi, I sail",
        "Hello?",
        "And now?",
    ]


def test_a_front_end_is_short() -> None:
    """A whole front end has at most 40 lines: that is what the page promises."""
    assert len((EXAMPLES / "front_end.py").read_text().splitlines()) <= LINES_MAX


def test_the_page_has_the_whole_protocol() -> None:
    """docs/interfaces.md names every call of the protocol with its parameters, and everything a notice is about."""
    page = (EXAMPLES.parent / "interfaces.md").read_text()
    calls = [f"{name}({', '.join(list(inspect.signature(call).parameters)[1:])})" for name, call in protocol()]
    assert len(calls) == 7
    for call in calls:
        assert f"`{call.replace('ok)', 'ok=...)')}`" in page
    for about in get_args(Notice):
        assert f"`{about}`" in page


def protocol() -> list[tuple[str, Callable[..., None]]]:
    """The calls of a front end."""
    return [(name, call) for name, call in vars(FrontEnd).items() if inspect.isfunction(call) and name[0] != "_"]
