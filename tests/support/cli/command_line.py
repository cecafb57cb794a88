"""A command line in this process, with a store of its own, a clock set by hand, and a model that follows a script."""

import asyncio
import shutil
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from everlog.actors.functions.http_function import WebAccess
from everlog.actors.ports.effects import ModelResponse
from everlog.events import Call, EverlogError, ModelError, Record, uuid7
from everlog.interfaces.cli.command_parser import parser
from everlog.interfaces.cli.main import main
from everlog.interfaces.common.error_output import MORE
from everlog.interfaces.common.front_end import CommandEnvironment, FrontEnd, Notice, Probe
from everlog.interfaces.documents.web_pages import Web

START = 1_700_000_000_000_000
SECOND = 1_000_000


class HandClock:
    """A clock that advances by a second at every reading."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> int:
        self.at += SECOND
        return self.at


class CountedIds:
    """A source of ids in ascending order."""

    def __init__(self) -> None:
        self.count = 0

    def new(self, at: int) -> str:
        self.count += 1
        return uuid7(at, self.count)


@cache
def whole_parser() -> ArgumentParser:
    """Return the parser of all commands, which takes 30 ms to make."""
    return parser()


def completion(*calls: tuple[str, dict[str, Any]], thought: str = "I think.", words: str = "") -> str:
    """Return the body of a chat completion that calls functions."""
    tool_calls = [
        {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": name, "arguments": msgspec.json.encode(a).decode()},
        }
        for n, (name, a) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": words or thought, "tool_calls": tool_calls or None}
    usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
    return msgspec.json.encode(
        {"model": "script", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    ).decode()


def says(text: str, thought: str = "I think.") -> str:
    """Return a reply that sends one message."""
    return completion(("send_message", {"message": text}), thought=thought)


class Script:
    """A model that gives the answers of a list, then "Indeed."; an error in the list is raised."""

    name = "script"

    def __init__(self, answers: list[str | ModelError]) -> None:
        self.answers = answers
        self.asked: list[bytes] = []

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else says("Indeed.")
        if isinstance(answer, ModelError):
            raise answer
        return ModelResponse(answer, 5)

    async def close(self) -> None:
        pass


class Recorder:
    """An interface for records that only stores them."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.errors: list[EverlogError] = []

    def on_records(self, records: Sequence[Record]) -> None:
        self.records.extend(records)

    def on_error(self, error: EverlogError) -> None:
        self.errors.append(error)


class Heard(FrontEnd):
    """A front end that stores its calls in order, each with the name of the method."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def user_message(self, text: str, name: str) -> None:
        self.told.append(("user_message", text, name))

    def inner_monologue(self, text: str) -> None:
        self.told.append(("inner_monologue", text))

    def assistant_message(self, text: str, name: str) -> None:
        self.told.append(("assistant_message", text, name))

    def function_call(self, call: Call) -> None:
        self.told.append(("function_call", call.name, call.arguments))

    def function_message(self, call: Call, text: str, *, ok: bool) -> None:
        self.told.append(("function_message", call.name, call.arguments, text, ok))

    def notice(self, about: Notice, text: str) -> None:
        self.told.append(("notice", about, text))

    def error(self, error: EverlogError) -> None:
        self.told.append(("error", type(error), str(error)))


class Line:
    """The command line, called in this process."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.script = Script([])
        self.clock = HandClock()
        self._ids = CountedIds()
        self._capsys = capsys
        self.sleeps: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None
        self.patience: Callable[[float], Awaitable[None]] = asyncio.sleep
        """Sleep before the notice that a model is waited for."""
        self.typed: list[str] = []
        self.real = False
        """True if commands use real models instead of the script."""
        self.web: Web = WebAccess
        """Access to the web for `everlog load`."""
        self.probe: Probe | None = None
        """Probe of endpoints; None: endpoints are not probed."""
        self.made: Made | None = None
        """Stores that were made once; None: each test makes its own."""

    def begin(self, name: str, make: Callable[[Self], object]) -> None:
        """Fill the store as the commands of `make` do. If an earlier test began with `name`, the store is a copy; then
        the model has not been asked. A store that has something already is filled by commands.
        """
        if self.made is None or self.root.exists():
            make(self)
        else:
            self.made.begin(self, name, make)

    def release(self) -> None:
        """Do nothing: no server of this command line has the store open."""

    @property
    def world(self) -> CommandEnvironment:
        model = None if self.real else lambda *_: self.script
        return CommandEnvironment(
            clock=self.clock,
            ids=self._ids,
            model=model,
            probe=self.probe,
            web=self.web,
            sleep=self._sleep,
            patience=self.patience,
            ask=self._ask,
            lower_priority=lambda: None,
            hold_memory=lambda _: None,
        )

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.on_sleep()

    def _ask(self, _prompt: str) -> str:
        if not self.typed:
            raise EOFError
        return self.typed.pop(0)

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        """Run a command. Return exit code, stdout and stderr."""
        self._capsys.readouterr()
        code = main(["--store", str(self.root), *argv], world=self.world)
        out, err = self._capsys.readouterr()
        return code, out, err

    def renew(self) -> None:
        """Release the store, so that the test can open its files and change the environment. No command has it open."""

    def ok(self, *argv: str) -> str:
        """Return the stdout of a command that must succeed."""
        code, out, err = self(*argv)
        assert code == 0, f"{err}{out}"
        return out

    def json(self, *argv: str) -> Any:
        """Return the one JSON value that a command prints."""
        return msgspec.json.decode(self.ok(*argv, "--json"))

    def lines(self, *argv: str) -> list[Any]:
        """Return the lines of JSON that a command prints."""
        return [msgspec.json.decode(line) for line in self.ok(*argv, "--json").splitlines()]

    def fails(self, *argv: str) -> str:
        """Return the error paragraph of a command that must fail, without the line that names the page of the error."""
        code, _, err = self(*argv)
        assert code == 1, err
        assert err.startswith("everlog: ")
        paragraph, *more = err.splitlines(keepends=True)
        assert len(more) <= 1 and all(line.startswith(MORE) for line in more), err
        return paragraph


class Made:
    """Stores that are made once by commands and then copied for many tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stores: dict[str, tuple[int, int]] = {}

    def begin(self, cli: Line, name: str, make: Callable[[Line], object]) -> None:
        """Give `cli` a copy of the store that `make` makes, and the clock of that moment. Each store has its own
        `name`.
        """
        kept = self._folder / name
        if name not in self._stores:
            make(cli)
            shutil.copytree(cli.root, kept)
            self._stores[name] = cli.clock.at, cli._ids.count
        else:
            shutil.copytree(kept, cli.root)
            cli.clock.at, cli._ids.count = self._stores[name]
