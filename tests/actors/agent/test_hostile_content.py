"""Any content from a model, an endpoint or a user leaves an agent that can continue."""

import asyncio
import json
from typing import Any

import duckdb
import msgspec
import pytest

from everlog.actors.formats import parse_reply
from everlog.actors.models.openai_client import ChatEndpoint
from everlog.actors.replay.rebuild_check import verify
from everlog.events import AgentDeleted, BadInput, ModelError, event_of
from everlog.projections import Projections
from tests.support.agent_world import World, completion, counted, kinds, say

HOSTILE: list[tuple[str, dict[str, Any] | str]] = [
    ("conversation_search", {"query": "x", "page": 10**30}),
    ("conversation_search", {"query": "x", "page": 2**63 - 1}),
    ("conversation_search", {"query": "x", "page": -5}),
    ("archival_memory_search", {"query": "x", "page": 2**63}),
    ("conversation_search_date", {"start_date": "0001-01-01", "end_date": "9999-12-31"}),
    ("send_message", "[" * 100_000),
    ("send_message", '{"message": ' + "[" * 100_000),
    ("send_message", {"message": "nul \x00 and \x1b escape"}),
    ("core_memory_append", {"name": "human", "content": "\U0001f600" * 400}),
    ("pause_heartbeats", {"minutes": -(10**30)}),
    ("pause_heartbeats", {"minutes": 10**30}),
    ("", {}),
]


@pytest.mark.parametrize(("name", "arguments"), HOSTILE)
def test_no_arguments_of_a_call_stop_an_agent(name: str, arguments: dict[str, Any] | str) -> None:
    """With any content of a call the turn ends, the agent answers the next message, and the log verifies."""
    world = World(say("Hi."), completion(calls=[(name, arguments)]), say("Well."), say("Still here."))
    left = asyncio.run(world.tell("Hello", "go", "and now?"))
    assert kinds(left).count("user_message") == 3
    assert {turn["status"] for turn in world.system.view("sam").rows("turns")} == {"done"}
    assert not verify(world.system.view("sam"), world.system.tools).faults


@pytest.mark.parametrize("usage", [
    {"prompt_tokens": 60_000, "completion_tokens": 1, "total_tokens": 60_001},
    {"prompt_tokens": 5.0, "completion_tokens": 1.5, "total_tokens": 10**25},
    {"prompt_tokens": -4, "completion_tokens": None},
    {},
])  # fmt: skip
def test_no_usage_figure_stops_an_agent(usage: dict[str, Any]) -> None:
    """An impossible token count is ignored: no context is summarized because of it, and every message is answered."""

    def line(_: bytes) -> str:
        return json.dumps({**json.loads(say("Yes.")), "usage": usage})

    world = World(after=line)
    left = asyncio.run(world.tell("one", "two", "three"))
    assert "summary" not in kinds(left)
    assert "turn_abandoned" not in kinds(left)
    assert len(world.system.view("sam").rows("memory_pressure")) == 1


@pytest.mark.parametrize(("text", "value"), [
    ('Sure! {"a": "b"} Done.', {"a": "b"}),
    ('{"a": "b"}{"a": "c"}', {"a": "b"}),
    (r'{"a\_b": "c"}', {"a_b": "c"}),
    ('{"a": "b\nc"}', {"a": "b\nc"}),
    ('{"a": {"b": "c"', {"a": {"b": "c"}}),
    ('{"a": "b",', {"a": "b"}),
])  # fmt: skip
def test_arguments_are_repaired_if_nothing_is_lost(text: str, value: object) -> None:
    """MemGPT's repairs that cannot change the meaning: surrounding words, a second object, missing closing braces, raw
    line breaks.
    """
    assert parse_reply.arguments(text) == value


def test_content_in_parts_is_read() -> None:
    """Some servers send the monologue as a list of parts: the parts are joined."""
    body = {"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}]}
    assert parse_reply.reply(json.dumps(body), 8192).text == "ab"


@pytest.mark.parametrize("change", [
    {"window": 0}, {"window": 2048}, {"window": 10**22}, {"zone": ""}, {"zone": "Europe"}, {"zone": "../etc"},
    {"model": ""},
])  # fmt: skip
def test_settings_that_cannot_work_are_refused_before_anything_is_kept(change: dict[str, Any]) -> None:
    """A bad setting is refused and not replaced by a default, and no agent is created."""
    world = World()
    world.settings = msgspec.structs.replace(world.settings, **change)
    with pytest.raises(BadInput):
        asyncio.run(world.tell("Hello"))
    assert world.log() == []


def test_the_smallest_window_works() -> None:
    """An agent with the smallest window that is allowed answers, message after message."""
    world = World(after=lambda request: counted(request, say("Yes.")))
    world.settings = msgspec.structs.replace(world.settings, window=4096)
    asyncio.run(world.tell(*["A message of some words, about nothing in particular."] * 30))
    assert {turn["status"] for turn in world.system.view("sam").rows("turns")} == {"done"}


def test_a_missing_key_keeps_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The input is durable before a model is even made; the failure is recorded, and deleting needs no key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    world = World()
    world.system._models = ChatEndpoint
    with pytest.raises(ModelError, match="needs a key"):
        asyncio.run(world.tell("Hello"))
    assert world.kinds()[-2:] == ["user_message", "model_failed"]
    asyncio.run(world.system.delete("sam"))
    assert isinstance(event_of(world.log()[-1]), AgentDeleted)


@pytest.mark.parametrize(("key", "url"), [
    ("sk-\u00e9", None), ("sk-1", "http://user:secretword@host/v1"), ("sk-1", "http://[::1"), ("sk-1", "ftp://host"),
])  # fmt: skip
def test_a_key_or_address_that_cannot_be_used_is_refused_and_not_repeated(
    key: str, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the cause and does not contain the secret."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelError) as caught:
        ChatEndpoint("m", url)
    assert key not in str(caught.value)
    assert "secretword" not in str(caught.value)


def test_verify_checks_the_calls_before_a_deletion() -> None:
    """Deleting and creating a name again hides nothing from verify."""
    world = World()
    asyncio.run(world.tell("one", "two"))
    asyncio.run(world.system.delete("sam"))
    asyncio.run(world.tell("three"))
    assert verify(world.system.view("sam"), world.system.tools).checked == 3
    turns = world.system.view("sam").rows("turns")
    assert [(turn["turn"], turn["status"]) for turn in turns] == [(1, "done")]
    assert not verify(world.system.view("sam"), world.system.tools).faults


def test_a_failed_projection_is_rebuilt_and_the_acknowledgement_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """After DuckDB refuses a commit's rows, the record stays in the log, the tables are rebuilt from the log, and the
    turn continues.
    """
    world = World(after=say("Yes."))
    asyncio.run(world.tell("one"))
    add, failing = Projections.add, iter([True, False, True])

    def sometimes(self: Projections, records: Any) -> None:
        if next(failing, False):
            raise duckdb.Error("out of memory")
        add(self, records)

    monkeypatch.setattr(Projections, "add", sometimes)
    asyncio.run(world.tell("two", "three"))
    monkeypatch.undo()
    assert [turn["status"] for turn in world.system.view("sam").rows("turns")] == ["done"] * 3
    assert not verify(world.system.view("sam"), world.system.tools).faults
