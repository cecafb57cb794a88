"""The examples in docs/examples are complete programs: they run, and do what their page says."""

import importlib.util
import inspect
import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from everlog.actors import agent_ref, agent_system, api
from everlog.events import ModelError
from everlog.interfaces.common.front_end import FrontEnd, Notice
from everlog.store import FileStore
from tests.support.agent_world import ScriptedModel, completion, say

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
LINES_MAX = 40


def run(name: str, said: str, monkeypatch: pytest.MonkeyPatch, folder: Path, model: ScriptedModel | None) -> None:
    """Run the example as a program, with `said` on stdin; `model` answers instead of the real model."""
    if model is not None:
        services = api.ServiceOptions(models=lambda *_: model)
        monkeypatch.setattr("everlog.actors.api.open_system", partial(api.open_system, services=services))
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    monkeypatch.setattr("sys.argv", [name, str(folder)])
    spec = importlib.util.spec_from_file_location("__main__", EXAMPLES / name)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_the_front_end_answers_what_it_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each line gets an answer with prefixes: messages, functions, notices, and an error after which the program
    continues.
    """
    remember = '{"name": "human", "content": "Sails", "request_heartbeat": true}'
    answers = [
        completion("A sailor!", [("core_memory_append", remember)]),
        say("Ahoy."),
        ModelError("The endpoint is down.", kind="unreachable"),
        say("Here again."),
    ]
    run("front_end.py", "Hi, I sail\nHello?\nAnd now?\n", monkeypatch, tmp_path, ScriptedModel(answers))
    assert capsys.readouterr().out.splitlines() == [
        "+ core_memory_append None",
        "* ♥ requested",
        "sam> Ahoy.",
        "! The endpoint is down.",
        "sam> Here again.",
    ]
    log = FileStore(tmp_path, lambda: 0).reader("sam").read("sam")
    assert [r.text for r in log if r.type == "user_message"] == ["Hi, I sail", "Hello?", "And now?"]


def test_the_python_example_prints_what_its_page_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """docs/how_to/talk_from_python.md shows the output of docs/examples/talk.py, which needs no key and no network."""
    run("talk.py", "", monkeypatch, tmp_path, None)
    shown = re.search(r"```text\n(.*?)```", (EXAMPLES.parent / "how_to" / "talk_from_python.md").read_text(), re.DOTALL)
    assert shown is not None
    assert capsys.readouterr().out == shown[1]


def test_the_archive_example_prints_what_its_page_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each line of the page's code is a line of docs/examples/archive.py, which prints what the page shows."""
    run("archive.py", "", monkeypatch, tmp_path, None)
    page = (EXAMPLES.parent / "how_to" / "talk_from_python.md").read_text().split("examples/archive.py)")[1]
    code, shown = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("python", "text"))
    assert code is not None and shown is not None
    assert capsys.readouterr().out == shown[1]
    program = {line.strip() for line in (EXAMPLES / "archive.py").read_text().splitlines()}
    assert {line.strip() for line in code[1].splitlines()} <= program


def test_the_fleet_example_prints_what_its_page_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """docs/examples/fleet.py queries all agents, and docs/python.md shows its lines and its output."""
    run("fleet.py", "", monkeypatch, tmp_path, None)
    page = (EXAMPLES.parent / "how_to" / "talk_from_python.md").read_text().split("examples/fleet.py)")[1]
    code, shown = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("python", "text"))
    assert code is not None and shown is not None
    assert capsys.readouterr().out == shown[1]
    program = {line.strip() for line in (EXAMPLES / "fleet.py").read_text().splitlines()}
    assert {line.strip() for line in code[1].splitlines()} <= program


def test_the_python_page_has_every_method() -> None:
    """docs/reference/python.md has a heading for every public method of a system, an agent and its archival memory."""
    page = (EXAMPLES.parent / "reference" / "python.md").read_text()
    for kind in (agent_system.AgentSystem, agent_ref.AgentRef, agent_ref.ArchivalMemory):
        for name, value in vars(kind).items():
            if inspect.isfunction(value) and not name.startswith("_") and name != "open":
                assert f"#### {kind.__name__}.{name}\n" in page, name


def test_a_front_end_is_short() -> None:
    """A whole front end has at most 40 lines, as the page promises."""
    assert len((EXAMPLES / "front_end.py").read_text().splitlines()) <= LINES_MAX


def test_the_page_has_the_whole_protocol() -> None:
    """docs/reference/front_ends.md names every call with its parameters, and every subject of a notice."""
    page = (EXAMPLES.parent / "reference" / "front_ends.md").read_text()
    calls = [f"{name}({', '.join(list(inspect.signature(call).parameters)[1:])})" for name, call in protocol()]
    assert len(calls) == 8
    for call in calls:
        assert f"`{call.replace('ok)', 'ok=...)')}`" in page
    for about in get_args(Notice):
        assert f"`{about}`" in page


def protocol() -> list[tuple[str, Callable[..., None]]]:
    """Return the calls of a front end."""
    return [(name, call) for name, call in vars(FrontEnd).items() if inspect.isfunction(call) and name[0] != "_"]
