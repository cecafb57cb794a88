"""Presets, the functions of an agent, its permissions, and questions to another model."""

import asyncio
import json
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.functions.extras import NAMES, Grants, extras, no_helper
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.models.offline import OfflineModel
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.prompt import presets
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import AgentConfigured, BadInput, FunctionResult, ModelError, Record, event_of
from everlog.store import Store
from tests.support.agent_world import Line, ScriptedModel, World, completion, say

CHAT = (
    "send_message", "pause_heartbeats", "core_memory_append", "core_memory_replace", "core_memory_remove",
    "conversation_search", "conversation_search_date", "archival_memory_insert", "archival_memory_search",
    "archival_memory_update", "archival_memory_delete", "memory_read",
    "set_timer", "cancel_timer", "list_timers",
)  # fmt: skip


class Granted(World):
    """A world whose agents have permissions and ask for a preset."""

    def __init__(
        self,
        *lines: Line,
        preset: str | None = "extras",
        grants: Grants | None = None,
        store: Store | None = None,
        tools: tuple[Tool, ...] = (),
        **settings: Any,
    ) -> None:
        super().__init__(*lines, store=store)
        self.system = LocalSystem(
            self.store, models=self._model, tools=tools, grants=grants or Grants(), ports=self.ports
        )
        self.settings = Settings(**{"model": "scripted", "window": 8192, "preset": preset, **settings})

    def _model(self, name: str) -> Any:
        return OfflineModel() if name == "offline" else self.model

    def results(self, *, ok: bool | None = None) -> list[FunctionResult]:
        """Return the functions' results without those of send_message; `ok` selects the successful or the failed
        ones.
        """
        found = [event for event in map(event_of, self.log()) if isinstance(event, FunctionResult)]
        return [event for event in found if event.name != "send_message" and ok in (None, event.ok)]

    def configured(self) -> AgentConfigured:
        """Return the newest configuration."""
        found = [event for event in map(event_of, self.log()) if isinstance(event, AgentConfigured)]
        return found[-1]

    def functions(self) -> list[str]:
        """Return the names of the functions in the newest configuration."""
        return [function.name for function in self.configured().functions]

    def told(self, *texts: str) -> list[Record]:
        return asyncio.run(self.tell(*texts))

    def proven(self) -> None:
        """Check that the agent verifies and rebuilds without a fault or a note."""
        view = self.system.view("sam")
        for report in (verify(view, self.system.tools), rebuild(view)):
            assert (report.faults, report.notes) == ([], [])
            assert report.checked
        view.close()


def again(world: Granted, *lines: Line, **more: Any) -> Granted:
    """Return a new process over the same store, without a preset unless `more` gives one."""
    next_one = Granted(*lines, store=world.store, **{"preset": None, **more})
    next_one.clock, next_one.ids = world.clock, world.ids
    next_one.system._ports = world.ports
    return next_one


@pytest.mark.parametrize(("preset", "more"), [(None, ()), ("chat", ()), ("docs", ()), ("extras", NAMES)])
def test_a_preset_brings_its_prompt_and_its_functions(preset: str | None, more: tuple[str, ...]) -> None:
    """The presets chat and docs have MemGPT's nine functions, extras has four more, and each has a system prompt."""
    world = Granted(preset=preset)
    world.told("hello")
    name = preset or "chat"
    assert world.functions() == [*CHAT, *more]
    assert (world.configured().preset, world.configured().text) == (name, presets.system(name))
    shown = json.loads(world.model.requests[0])
    assert [t["function"]["name"] for t in shown["tools"]] == [*CHAT, *more]
    assert shown["messages"][0]["content"].startswith(presets.system(name))
    world.proven()


def test_the_prompts_say_what_their_preset_is_for() -> None:
    """The prompts differ; the prompt of extras is that of chat with an added part about the extra functions."""
    assert presets.names("system") == ["chat", "docs", "extras", "small"]
    chat, more = (presets.system(name).split("\n\n") for name in ("chat", "extras"))
    added = [part for part in more if part not in chat]
    assert [part for part in more if part in chat] == chat
    assert len(added) == 1
    assert all(name in added[0] for name in NAMES)
    assert "archival_memory_search" in presets.system("docs")
    assert set(presets.extras("extras")) == set(NAMES)
    for part in (presets.system("docs"), added[0]):
        assert all(ord(letter) < 128 for letter in part)


def test_a_preset_is_kept_until_another_is_given() -> None:
    """Without --preset an existing agent keeps its prompt and functions; with --preset both change, in either
    direction.
    """
    world = Granted()
    world.told("hello")
    world = again(world)
    world.told("again")
    assert (world.functions(), world.configured().preset) == ([*CHAT, *NAMES], "extras")
    world = again(world, preset="docs")
    world.told("read")
    assert (world.functions(), world.configured().text) == ([*CHAT], presets.system("docs"))
    world = again(world, preset="extras", system="Mine.")
    world.told("mine")
    assert (world.functions(), world.configured().text) == ([*CHAT, *NAMES], "Mine.")
    world = again(world)
    world.told("still")
    assert (world.functions(), world.configured().text) == ([*CHAT, *NAMES], "Mine.")
    world = again(world, preset="chat")
    world.told("back")
    assert (world.functions(), world.configured().text) == ([*CHAT], presets.system("chat"))
    assert sum(record.type == "agent_configured" for record in world.log()) == 4
    world.proven()


def test_an_unknown_preset_is_refused_and_creates_nothing() -> None:
    """An unknown preset is refused with the list of presets, also if a system prompt is given."""
    for more in ({}, {"system": "Mine."}):
        world = Granted(preset="memgpt", **more)
        with pytest.raises(BadInput, match="chat, docs, extras"):
            world.told("hello")
        assert world.log() == []


def test_a_function_that_the_agent_does_not_have_cannot_be_called(tmp_path: Path) -> None:
    """An agent with the preset chat that calls an extra function gets the error for unknown functions, with any
    permissions.
    """
    (tmp_path / "a.txt").write_text("secret")
    calls = [("read_from_text_file", {"filename": "a.txt", "line_start": 1})]
    calls += [(name, {}) for name in NAMES]
    world = Granted(completion(calls=calls), say("So."), preset="chat", grants=Grants(workspace=str(tmp_path)))
    world.told("read it")
    assert [result.text for result in world.results()] == [f"No function named {name}" for name, _ in calls]
    assert not any(record.type == "function_started" for record in world.log())
    world.proven()


def test_a_call_of_a_missing_function_verifies_after_it_is_supplied() -> None:
    """A failed call of a missing function still verifies after the function is supplied."""

    @tool(effect="read_only")
    def look() -> str:
        """Look."""
        return "seen"

    world = Granted(completion(calls=[("look", {})]), say("No."), preset="chat")
    world.told("look")
    assert [result.ok for result in world.results()] == [False]
    world = again(world, completion(calls=[("look", {})]), say("Yes."), tools=(look,))
    world.told("look now")
    assert [result.ok for result in world.results()] == [False, True]
    world.proven()


def test_the_name_of_an_extra_function_is_reserved() -> None:
    """A user's function cannot have the name of an extra function, with any preset."""

    @tool
    def http_request() -> str:
        """Ask."""
        return ""

    with pytest.raises(BadInput, match="http_request"):
        Granted(tools=(http_request,))


def test_permissions_are_not_part_of_the_log(tmp_path: Path) -> None:
    """With a workspace, files are read and appended to, with an intent for the append. The next process, started
    without the flag, reports that it has no workspace, although the log is the same.
    """
    (tmp_path / "a.txt").write_text("one\n")
    calls = [
        ("append_to_text_file", {"filename": "a.txt", "content": "two", "request_heartbeat": True}),
        ("read_from_text_file", {"filename": "a.txt", "line_start": 1, "num_lines": 2, "request_heartbeat": True}),
        ("read_from_text_file", {"filename": "../a.txt", "line_start": 1, "request_heartbeat": True}),
    ]
    world = Granted(completion(calls=calls), say("Done."), grants=Grants(workspace=str(tmp_path)))
    left = world.told("go")
    assert [(r.name, r.text) for r in world.results(ok=True)] == [
        ("append_to_text_file", "None"),
        ("read_from_text_file", "one\ntwo"),
    ]
    assert "no file of the workspace" in world.results(ok=False)[0].text
    assert [r.type for r in left].count("function_started") == 1
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    assert str(tmp_path) not in "".join(f"{record.text} {record.payload}" for record in world.log())
    calls.append(("http_request", {"method": "GET", "url": "http://shop.test/", "request_heartbeat": True}))
    world = again(world, completion(calls=calls), say("No."))
    world.told("again")
    told = [result.text for result in world.results(ok=False)[1:]]
    assert ["--workspace DIR" in text for text in told] == [True, True, True, False]
    assert "--allow-host" in told[-1]
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    world.proven()


def test_arguments_are_checked_by_their_types() -> None:
    """A line number that is not a number and a missing argument are reported; a number written as text is accepted."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_from_text_file", {"filename": "a", "line_start": "x"}),
        ("read_from_text_file", {"line_start": 1}),
        ("read_from_text_file", {"filename": "a", "line_start": "1"}),
        ("http_request", {"method": "GET", "url": "http://a.test/", "payload_json": None}),
    ]
    world = Granted(completion(calls=calls), say("So."))
    world.told("go")
    texts = [result.text for result in world.results()]
    assert ["wrong arguments" in text for text in texts] == [True, True, False, False]


def test_grants_are_values() -> None:
    """Permissions can be pickled, cannot be changed, and allow nothing by default."""
    grants = Grants(workspace="/tmp", hosts=("a.test",), helper="offline")
    assert pickle.loads(pickle.dumps(grants)) == grants
    assert Grants() == Grants(workspace="", hosts=(), helper="")
    with pytest.raises(AttributeError):
        grants.workspace = "/"  # type: ignore[misc]


def test_effect_classes() -> None:
    """A function with outside effects is never repeated; a function that only reads may be."""
    assert {made.name: made.effect for made in extras(Grants(), no_helper)} == {
        "message_chatgpt": "read_only",
        "read_from_text_file": "read_only",
        "append_to_text_file": "at_most_once",
        "http_request": "at_most_once",
    }


QUESTION = completion(calls=[("message_chatgpt", {"message": "How deep is the sea?", "request_heartbeat": True})])


def question_of(world: World) -> dict[str, Any]:
    """Return the question of a request, if it is one without tools."""
    found: list[dict[str, Any]] = [json.loads(request) for request in world.model.requests]
    (question,) = [request for request in found if "tools" not in request]
    return question


def test_another_model_is_asked_without_the_conversation() -> None:
    """The question is a separate request to the agent's own model: a short system message and the question."""
    world = Granted(QUESTION, say("So deep."))
    world.model.summaries = [completion("  3,682 metres on average. ")]
    world.told("Ask somebody how deep the sea is")
    question = question_of(world)
    assert (question["model"], set(question)) == ("scripted", {"model", "messages"})
    assert [message["role"] for message in question["messages"]] == ["system", "user"]
    assert "briefly" in question["messages"][0]["content"]
    assert question["messages"][1]["content"] == "How deep is the sea?"
    assert [result.text for result in world.results()] == ["3,682 metres on average."]
    world.proven()


def test_the_helper_that_is_granted_is_asked() -> None:
    """With --helper the question goes to that model, and the agent's own model is not called for it."""
    world = Granted(QUESTION, say("It did not know."), grants=Grants(helper="offline"))
    world.told("Ask somebody")
    assert len(world.model.requests) == 2
    (result,) = world.results()
    assert "not a language model" in result.text
    world.proven()


class Closing(ScriptedModel):
    """A connection that counts how often it is closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (ModelError("it is out", kind="server"), "it is out"),
        ("no JSON", "did not answer with a chat completion"),
        (completion(" \n"), "without a word"),
        (completion("cut", finish="length", total=0, prompt=0), "stopped for length"),
    ],
)
def test_a_helper_that_fails_is_reported_and_closed(line: Line, says: str) -> None:
    """After any malformed answer the model gets an error, the turn continues, and no connection stays open."""
    world = Granted(QUESTION, say("Nobody knows."))
    model = Closing(world.model.lines, summaries=[line])
    world.model = model
    world.told("Ask somebody")
    (result,) = world.results()
    assert (result.ok, says in result.text) == (False, True)
    assert model.closed == 2  # one for the question, one for the agent itself
    world.proven()


def test_a_helper_that_cannot_be_made_is_reported() -> None:
    """A helper model without a key gives a failed call, not a failed turn."""

    def models(name: str) -> Any:
        if name == "gpt-x":
            raise ModelError("The model 'gpt-x' needs a key.", kind="key")
        return world.model

    world = Granted(QUESTION, say("Nobody."), grants=Grants(helper="gpt-x"))
    world.system._models = models
    world.told("Ask somebody")
    assert "needs a key" in world.results(ok=False)[0].text


def test_offline_answers_a_question_and_still_summarizes() -> None:
    """The offline model answers each question with the same statement that it is no language model, and still
    recognises requests for a summary.
    """

    def ask(system: str) -> str:
        body = {"messages": [{"role": "system", "content": system}, {"role": "user", "content": "How deep?"}]}
        raw: ModelResponse = asyncio.run(OfflineModel().ask(msgspec.json.encode(body)))
        content: str = json.loads(raw.raw)["choices"][0]["message"]["content"]
        return content

    from everlog.actors.formats.render_request import SUMMARIZER
    from everlog.actors.functions.helper_model import PROMPT

    assert "not a language model" in ask(PROMPT)
    assert ask(PROMPT) == ask(PROMPT)
    assert "not a language model" not in ask(SUMMARIZER.format(words=100))


def test_tools_are_made_once() -> None:
    """Schemas and argument types are shared by all agents of a process; permissions are not."""
    first, second = (extras(Grants(workspace=folder), no_helper) for folder in ("", "/tmp"))
    for one, other in zip(first, second, strict=True):
        assert one.arguments is other.arguments
        assert one.function is not other.function
