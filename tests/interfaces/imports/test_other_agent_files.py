"""Agent files of earlier programs: Letta's flat file of early 2025, a file inside of a text, MemGPT's saved agents."""

import json
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import InitialBlock
from everlog.events import BadInput
from everlog.events.times import since_epoch
from everlog.interfaces.imports.past_conversation import PastConversation, recognized
from everlog.interfaces.imports.read_conversations import named, read_agents, read_conversations

AT = "2025-04-01T03:47:27"


def flat_file() -> dict[str, Any]:
    """Return a file of Letta 0.6: one agent at the top, blocks inside of it, and messages without ids."""
    send = {
        "id": "c1", "type": "function",
        "function": {"name": "send_message", "arguments": json.dumps({"message": "Hello Ann!"})},
    }  # fmt: skip
    packed = json.dumps({"status": "OK", "message": "None", "time": "2025-04-01 03:47:29 AM UTC+0000"})
    return {
        "agent_type": "memgpt_agent",
        "core_memory": [
            {"label": "persona", "value": "I am Sam.", "limit": 5000, "created_at": AT, "is_template": False},
            {"label": "human", "value": "Ann sails.", "limit": 3, "description": "Who\nshe is"},
        ],
        "created_at": AT,
        "in_context_message_indices": [0, 1, 2],
        "llm_config": {"model": "gpt-4-0613", "context_window": 8192, "handle": "openai/gpt-4", "temperature": 0.7},
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "You are..."}], "created_at": AT},
            {"role": "user", "content": [{"type": "text", "text": "I am Ann."}], "created_at": AT},
            {"role": "assistant", "content": [{"type": "text", "text": "A guest."}], "tool_calls": [send],
             "created_at": "2025-04-01T03:47:28"},
            {"role": "tool", "content": [{"type": "text", "text": packed}], "tool_call_id": "c1",
             "created_at": "2025-04-01T03:47:29"},
        ],
        "name": "tim",
        "system": "You are Letta.",
        "tags": [{"tag": "old"}],
        "tools": [{"name": "send_message"}, {"name": "roll", "source_code": "import os"}],
        "tool_rules": [{"tool_name": "send_message", "type": "exit_loop"}, {"tool_name": "roll", "type": "run_first"}],
        "version": "0.6.47",
    }  # fmt: skip


def memgpt_state() -> dict[str, Any]:
    """Return an agent as MemGPT 0.1 saved it, with the start-up, a login, a failed call and a summary."""

    def says(message: str, thought: str = "Hm.") -> dict[str, Any]:
        call = {"name": "send_message", "arguments": json.dumps({"message": message})}
        return {"role": "assistant", "content": thought, "function_call": call}

    def result(time: str, status: str = "OK", name: str = "send_message") -> dict[str, Any]:
        return {
            "role": "function",
            "name": name,
            "content": json.dumps({"status": status, "message": None, "time": time}),
        }

    def user(kind: str, time: str, **more: str) -> dict[str, Any]:
        return {"role": "user", "content": json.dumps({"type": kind, **more, "time": time})}

    return {
        "model": "gpt-4",
        "system": "You are MemGPT.",
        "functions": [{"name": "send_message"}, {"name": "message_chatgpt"}],
        "messages": [
            {"role": "system", "content": "You are MemGPT. ### Memory"},
            user("system_alert", "2023-11-04 05:20:00 PM PDT-0700", message="prior messages"),
            says("More human than human."),
            result("2023-11-04 05:20:01 PM PDT-0700"),
            user("login", "2023-11-04 05:21:00 PM PDT-0700"),
            user("user_message", "2023-11-04 05:22:13 PM PDT-0700", message="Hi!", name="Ann"),
            says("Never sent."),
            result("2023-11-04 05:22:14 PM PDT-0700", "Failed"),
            says("Hello, Ann."),
            result("2023-11-04 05:22:15 PM PDT-0700"),
        ],
        "messages_total": 40,
        "memory": {"persona": "I am Sam.", "human": "Chad."},
    }  # fmt: skip


def read(value: Any) -> PastConversation:
    (one,) = read_conversations(json.dumps(value).encode(), "file.json", "auto")
    return one


def words(one: PastConversation) -> list[tuple[str, str | None, str]]:
    return [
        (message.event.kind, message.event.text, message.said_at.isoformat().removesuffix("+00:00"))
        for message in one.messages
    ]


def test_the_flat_file_of_early_2025_is_one_agent() -> None:
    """Blocks come from `core_memory`, settings and words as from the later file, and messages get numbers as refs."""
    tim = read(flat_file())
    assert words(tim) == [
        ("user_message", "I am Ann.", "2025-04-01T03:47:27"),
        ("message_sent", "Hello Ann!", "2025-04-01T03:47:29"),
    ]
    assert [message.event.ref for message in tim.messages] == ["message-1", "message-2"]
    assert tim.blocks == [
        InitialBlock("persona", "I am Sam.", 5000), InitialBlock("human", "Ann sails.", 10, "Who she is")
    ]  # fmt: skip
    assert (tim.title, tim.settings.model, tim.settings.window, tim.settings.system) == (
        "tim", "gpt-4-0613", 8192, "You are Letta.",
    )  # fmt: skip
    assert tim.settings.sampling is not None
    assert tim.settings.sampling.temperature == 0.7
    assert tim.left_out == {
        "tools": 1, "tool rules": 1, "tags": 1, "raised limits": 1, "system messages": 1, "thoughts": 1,
        "tool messages": 1,
    }  # fmt: skip


def test_a_file_inside_of_a_text_is_read() -> None:
    """Letta's client gave an agent file as a text, and programs wrote that text as JSON: it is the same file."""
    assert read(json.dumps(flat_file())) == read(flat_file())


def test_a_saved_agent_of_memgpt_comes_with_its_times() -> None:
    """Times are those inside of the packed texts, of what the agent said those of the returns; a failed call said
    nothing.
    """
    sam = read(memgpt_state())
    assert words(sam) == [
        ("message_sent", "More human than human.", "2023-11-05T00:20:01"),
        ("user_message", "Hi!", "2023-11-05T00:22:13"),
        ("message_sent", "Hello, Ann.", "2023-11-05T00:22:15"),
    ]
    assert [getattr(message.event, "name", "") for message in sam.messages] == ["", "Ann", ""]
    assert sam.blocks == [InitialBlock("persona", "I am Sam."), InitialBlock("human", "Chad.")]
    assert (sam.settings.model, sam.settings.system) == ("gpt-4", "You are MemGPT.")
    assert sam.left_out == {
        "tools": 1, "earlier messages": 31, "system messages": 1, "system events": 2, "thoughts": 3,
        "failed calls": 1, "function messages": 3,
    }  # fmt: skip


def test_a_list_of_memgpts_messages_is_read() -> None:
    """The list of messages alone has the words, and no blocks."""
    state = memgpt_state()
    sam = read(state["messages"])
    assert words(sam) == words(read(state))
    assert sam.blocks == []


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (flat_file(), "letta"),
        (json.dumps(flat_file()), "letta"),
        (memgpt_state(), "memgpt"),
        (memgpt_state()["messages"], "memgpt"),
        ([{"mapping": {}}], "chatgpt"),
        ([], "chatgpt"),
        ({"role": "user", "content": "a", "time": AT}, "jsonl"),
    ],
    ids=["flat", "text", "state", "list", "chatgpt", "empty", "line"],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_the_format_is_recognized_by_its_content(value: Any, found: str, indent: int | None) -> None:
    """Each format is recognized, on one line or on many."""
    many = found == "jsonl" and indent
    assert many or recognized(b"\xef\xbb\xbf  " + json.dumps(value, indent=indent).encode()) == found


def no_time(value: dict[str, Any]) -> None:
    for message in value["messages"]:
        message.pop("created_at")
        message["content"] = "plain"
    del value["created_at"]


def bad_blocks(value: dict[str, Any]) -> None:
    value["core_memory"] = {"persona": "x"}


def twice(value: dict[str, Any]) -> None:
    value["core_memory"].append(value["core_memory"][0])


def silent_call(value: dict[str, Any]) -> None:
    value["messages"][2]["tool_calls"][0]["function"]["arguments"] = "{]"


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (no_time, "messages[0]: no message has a time, and the file has no created_at"),
        (bad_blocks, "its memory_blocks is of the type dict"),
        (twice, "it has two blocks with the label 'persona'"),
        (silent_call, "messages[2]: its call of send_message has no message"),
    ],
)
def test_a_fault_of_a_flat_file_is_named(damage: Any, fault: str) -> None:
    """A file is understood completely or not at all."""
    value = flat_file()
    damage(value)
    with pytest.raises(BadInput) as caught:
        read(value)
    assert fault in str(caught.value)


def test_settings_that_are_unusable_here_are_counted() -> None:
    """A window, a time zone and a temperature that everlog refuses are left out, and the rest is used."""
    value = flat_file()
    value["llm_config"].update(context_window=10, temperature=7.5, max_tokens=100)
    value["timezone"] = "Mars/Olympus"
    tim = read(value)
    assert (tim.settings.window, tim.settings.zone) == (None, None)
    assert tim.settings.sampling is not None
    assert (tim.settings.sampling.temperature, tim.settings.sampling.max_tokens) == (None, 100)
    assert {"context windows": 1, "time zones": 1, "sampling settings": 1}.items() <= tim.left_out.items()


def test_agents_are_named_as_in_the_file_or_by_the_user() -> None:
    """A name in the file is used unless another is given; missing and doubled names are errors."""
    one = read(flat_file())
    assert list(named([one], None, "f")) == ["tim"]
    assert list(named([one], "bo", "f")) == ["bo"]
    assert list(named([one, one], "bo-{n}", "f")) == ["bo-1", "bo-2"]
    nameless = read(memgpt_state())
    for found, name, fault in (
        ([one, one], "bo", "has 2 agents"), ([nameless], None, "has no name"), ([], None, "has no agent"),
        ([one, read(flat_file())], None, "two agents named 'tim'"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=fault):
            named(found, name, "f")


def test_a_conversation_without_an_agent_is_not_restored() -> None:
    """JSON lines and ChatGPT's exports are conversations, and the error names the command that reads them."""
    for data in (b'{"role": "user", "content": "a", "time": "2024-01-01"}\n', b"[]"):
        with pytest.raises(BadInput, match="everlog import NAME talk"):
            read_agents(data, "talk.json")


def test_times_are_in_microseconds() -> None:
    """A time of Letta keeps its microseconds."""
    value = flat_file()
    value["messages"][1]["created_at"] = "2025-04-01T03:47:27.514261+00:00"
    assert since_epoch(read(value).messages[0].said_at) % 1_000_000 == 514261
