"""The examples in docs/examples are complete programs: they run, and do what their page says."""

import importlib.util
import inspect
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

import everlog
from everlog.actors import agent_ref, agent_state, agent_system, api, reply, runtime, store_services
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


@pytest.mark.parametrize(
    ("name", "page"),
    [("own_tool", "talk_from_python"), ("fifty_agents", "talk_from_python"), ("rerun", "fork_and_rerun")],
)
def test_an_example_prints_what_its_page_shows(
    name: str, page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The page has the whole program and its output, which need no key and no network."""
    text = (EXAMPLES.parent / "how_to" / f"{page}.md").read_text(encoding="utf-8")
    program = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert f"```python\n{program}```" in text, "copy the program into the page"
    run(f"{name}.py", "", monkeypatch, tmp_path, None)
    assert f"```text\n{capsys.readouterr().out}```" in text


def test_a_model_calls_the_function_of_the_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A model that calls functions gets the result of `tide`, and the example shows the call."""
    asked = completion(calls=[("tide", {"place": "Bergen", "request_heartbeat": True})])
    monkeypatch.setattr(everlog, "open_system", partial(api.open_system, services=answering([asked, say("At noon.")])))
    monkeypatch.setattr("everlog.actors.agent.agent_setup.OFFLINE", "scripted")
    run("own_tool.py", "", monkeypatch, tmp_path, None)
    assert capsys.readouterr().out.splitlines()[0] == "ann: At noon. (functions: tide)"


def answering(lines: list[str]) -> api.ServiceOptions:
    """Return services whose model gives these answers."""
    model = ScriptedModel(lines)
    return api.ServiceOptions(models=lambda *_: model)


def test_the_python_page_has_every_method() -> None:
    """docs/reference/python.md has a heading for every public method and property of the public classes."""
    page = (EXAMPLES.parent / "reference" / "python.md").read_text()
    for kind in (
        agent_system.AgentSystem, agent_ref.AgentRef, agent_ref.ArchivalMemory, agent_ref.AgentMemories,
        agent_state.AgentState, runtime.Run, reply.Reply, reply.SendOutcome,
        store_services.DocumentSources, store_services.SharedBlocks,
    ):  # fmt: skip
        for name, value in vars(kind).items():
            if (inspect.isfunction(value) or isinstance(value, property)) and not name.startswith("_"):
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
