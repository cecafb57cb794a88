"""Imports of other programs' files: the right branch, the right texts, counts of the rest, and no half import."""

import copy
import json
from typing import Any

import pytest

from everlog.events import BadInput
from everlog.events.times import since_epoch
from everlog.interfaces.imports.past_conversation import PastConversation
from everlog.interfaces.imports.read_conversations import chosen, read_conversations
from tests.support.cli.command_line import Line


def node(node_id: str, parent: str | None, role: str = "user", text: Any = "", at: float | None = 1.7e9, **more: Any):
    content = {"content_type": "text", "parts": [text] if isinstance(text, str) else text, **more.pop("content", {})}
    message = {"id": f"m-{node_id}", "author": {"role": role}, "create_time": at, "content": content, **more}
    return {"id": node_id, "parent": parent, "children": [], "message": message}


def export() -> list[dict[str, Any]]:
    """Return a ChatGPT export of two conversations; the first has an edited message and everything to leave out."""
    nodes = [
        {"id": "root", "parent": None, "children": [], "message": None},
        node("sys", "root", "system", "Be kind.", None),
        node("old", "sys", "user", "I like Oslo."),
        node("a", "sys", "user", "I like Bergen."),
        node("call", "a", "assistant", "search()", recipient="browser"),
        node("tool", "call", "tool", "rain"),
        node("think", "tool", "assistant", "hm", content={"content_type": "thoughts"}),
        node("b", "think", "assistant", ["It rains.", {"content_type": "image_asset_pointer"}], 1.7e9 + 5.5,
             content={"content_type": "multimodal_text"}),
        node("c", "b", "user", "Thanks.", None),
    ]  # fmt: skip
    first = {"id": "c1", "title": "Weather", "create_time": 1.7e9, "current_node": "c",
             "mapping": {one["id"]: one for one in nodes}}  # fmt: skip
    second = {"conversation_id": "c2", "title": "Knots", "create_time": 1.6e9, "current_node": "x",
              "mapping": {"x": node("x", None, "user", "A bowline?", None)}}  # fmt: skip
    return [first, second]


def agent_file() -> dict[str, Any]:
    """Return a Letta agent file with a packed message, a call of send_message, and everything to leave out."""
    at = "2025-07-01T10:00:00Z"
    send = {"function": {"name": "send_message", "arguments": json.dumps({"message": "Hello Ann!"})}}
    other = {"function": {"name": "roll", "arguments": "{}"}}
    messages = [
        {"id": "message-0", "role": "system", "content": "You are...", "created_at": at},
        {"id": "message-1", "role": "user", "created_at": at,
         "content": [{"type": "text", "text": json.dumps({"type": "user_message", "message": "I am Ann."})}]},
        {"id": "message-2", "role": "assistant", "content": "A guest.", "tool_calls": [send, other], "created_at": at},
        {"id": "message-3", "role": "tool", "content": "None", "created_at": at},
        {"id": "message-4", "role": "user", "content": json.dumps({"type": "heartbeat"}), "created_at": at},
        {"id": "message-5", "role": "assistant", "content": [{"type": "text", "text": "Anything else?"}]},
    ]  # fmt: skip
    return {
        "agents": [{"id": "agent-0", "name": "tim", "messages": messages, "block_ids": ["block-0"]}],
        "blocks": [{"id": "block-0", "label": "human", "value": "Ann sails.", "limit": 5000}],
        "tools": [{"name": "roll", "source_code": "import os"}],
        "created_at": at,
    }


def read(value: Any) -> list[PastConversation]:
    return list(read_conversations(json.dumps(value).encode(), "file.json", "auto"))


def texts(one: PastConversation) -> list[tuple[str, str | None]]:
    return [(message.event.kind, message.event.text) for message in one.messages]


def test_the_branch_last_shown_is_the_conversation() -> None:
    """Of a ChatGPT tree the path to `current_node` is read, with times, ids and counts of what was left out."""
    weather, knots = read(export())
    assert texts(weather) == [
        ("user_message", "I like Bergen."),
        ("message_sent", "It rains."),
        ("user_message", "Thanks."),
    ]
    assert [since_epoch(message.said_at) for message in weather.messages] == [
        1_700_000_000_000_000, 1_700_000_005_500_000, 1_700_000_005_500_000,
    ]  # fmt: skip
    assert [message.event.ref for message in weather.messages] == ["m-a", "m-b", "m-c"]
    assert weather.left_out == {
        "system messages": 1, "function calls": 1, "tool messages": 1, "parts of the type thoughts": 1, "images": 1,
    }  # fmt: skip
    assert (weather.id, weather.title, knots.id) == ("c1", "Weather", "c2")


def test_a_letta_agent_brings_its_words_and_its_blocks() -> None:
    """Of a Letta agent file the messages that people saw are read, and the memory blocks; its tools are counted."""
    (tim,) = read(agent_file())
    assert texts(tim) == [
        ("user_message", "I am Ann."),
        ("message_sent", "Hello Ann!"),
        ("message_sent", "Anything else?"),
    ]
    assert [(block.label, block.value, block.limit) for block in tim.blocks] == [("human", "Ann sails.", 5000)]
    assert tim.left_out == {
        "tools": 1, "system messages": 1, "thoughts": 1, "function calls": 1, "tool messages": 1, "system events": 1,
    }  # fmt: skip


def cyclic(value: list[Any]) -> None:
    value[0]["mapping"]["root"]["parent"] = "c"


def missing(value: list[Any]) -> None:
    del value[0]["mapping"]["tool"]


def huge_time(value: list[Any]) -> None:
    value[0]["mapping"]["a"]["message"]["create_time"] = 10**40


def text_time(value: list[Any]) -> None:
    value[0]["mapping"]["a"]["message"]["create_time"] = "yesterday"


def wrong_part(value: list[Any]) -> None:
    value[1]["mapping"]["x"]["message"]["content"]["parts"] = [7]


def no_current(value: list[Any]) -> None:
    del value[0]["current_node"]


def no_object(value: list[Any]) -> None:
    value.append("?")


def surrogate(value: list[Any]) -> None:
    value[0]["mapping"]["a"]["message"]["id"] = "\ud800"


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (cyclic, "conversation 1: its nodes form a cycle"),
        (missing, "conversation 1: its mapping has no node 'tool'"),
        (huge_time, "conversation 1, node 'a': its time 1000000000"),
        (text_time, "conversation 1, node 'a': its create_time is of the type str"),
        (wrong_part, "conversation 2, node 'x': a part of its content is of the type int"),
        (no_current, "conversation 1: it has no `current_node`"),
        (no_object, "conversation 3: it is no object with `mapping`"),
        (surrogate, "file.json: it is not"),
    ],
)
def test_a_fault_is_named_with_its_place(damage: Any, fault: str) -> None:
    """A damaged export is refused completely, with the conversation and the node in which the fault is."""
    value = export()
    damage(value)
    with pytest.raises(BadInput, match=r"Nothing of the file was imported") as error:
        read(value)
    assert fault in str(error.value)


PATHS = [
    ("agents",), ("blocks",), ("agents", 0, "messages"), ("agents", 0, "messages", 2), ("agents", 0, "block_ids"),
    ("agents", 0, "name"), ("agents", 0, "messages", 1, "content"),
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("value", [7, [7], {"a": [1]}, True, 10**30])
def test_a_value_of_a_wrong_type_is_bad_input(path: tuple[Any, ...], value: Any) -> None:
    """A wrong type in an agent file is BadInput, and no other error, wherever it is."""
    whole = copy.deepcopy(agent_file())
    at: Any = whole
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(BadInput, match="Nothing"):
        chosen(read(whole), "tim", None, "file.json")


def test_json_lines_are_still_recognized() -> None:
    """A file of JSON lines is read as before, whether it has one line or many."""
    line = json.dumps({"role": "user", "content": "Hi", "time": "2024-01-01T10:00:00Z"}).encode()
    for data in (line, line + b"\n" + line, b"\xef\xbb\xbf\n" + line):
        (one,) = read_conversations(data, "talk.jsonl", "auto")
        assert len(one.messages) == data.count(b"Hi")


def test_deep_nesting_is_bad_input() -> None:
    """A file that is nested without end is refused."""
    with pytest.raises(BadInput, match=r"nested too deeply|not JSON"):
        read_conversations(b"[" * 100_000, "deep.json", "auto")


def test_one_of_several_conversations_must_be_chosen() -> None:
    """Without a choice the titles are named; a title, an id, or `{n}` in the name chooses."""
    found = read(export())
    with pytest.raises(BadInput, match=r"2 conversations: 'Weather', 'Knots'. Choose one with --conversation"):
        chosen(found, "ann", None, "file.json")
    assert list(chosen(found, "ann", "Knots", "file.json")) == ["ann"]
    assert chosen(found, "ann", "c1", "file.json")["ann"].title == "Weather"
    assert list(chosen(found, "chat-{n}", None, "file.json")) == ["chat-1", "chat-2"]
    with pytest.raises(BadInput, match="0 conversations with the title"):
        chosen(found, "ann", "Nope", "file.json")


def test_the_command_imports_an_export_once(cli: Line, tmp_path) -> None:
    """`everlog import 'chat-{n}'` makes an agent of each conversation; repeated, it imports nothing again."""
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(export()))
    told = cli.ok("import", "chat-{n}", str(path))
    assert "Imported 3 messages of 2023-11-14 into chat-1.\n" in told
    assert "Left out: 1 function calls, 1 images" in told
    assert "Imported 1 message of 2020-09-13 into chat-2.\n" in told
    assert cli.ok("import", "chat-{n}", str(path)) == (
        "chat-1 has these messages already.\nchat-2 has these messages already.\n"
    )
    assert "imported already" in cli.fails("import", "chat-1", str(path), "--conversation", "Weather")
    assert "It rains." in cli.ok("search", "chat-1", "rains")


def test_the_command_imports_an_agent_file_with_its_blocks(cli: Line, tmp_path) -> None:
    """`everlog import tim tim.af` gives a new agent the memory blocks of the file."""
    path = tmp_path / "tim.af"
    path.write_text(json.dumps(agent_file()))
    shape = cli.json("import", "tim", str(path))
    assert (shape["messages"], shape["left_out"]["tools"]) == (3, 1)
    assert "Ann sails." in cli.ok("memory", "tim")


def test_a_bad_file_leaves_no_agent(cli: Line, tmp_path) -> None:
    """A fault in the last conversation leaves no agent of the first."""
    value = export()
    wrong_part(value)
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(value))
    assert "conversation 2, node 'x'" in cli.fails("import", "chat-{n}", str(path))
    assert not (tmp_path / "store" / "agents").exists()
