"""Each rung of the repair, and each shape in which servers send what a model said."""

import json
from typing import Any

import pytest

from actors import parse
from actors.calling import mend
from actors.calling.rungs import LOSSLESS, LOSSY
from events import BadReply

CALL = '{"function": "send_message", "params": {"inner_thoughts": "So.", "message": "Hi."}}'
HI = {"message": "Hi."}


def raw(message: dict[str, Any] | None = None, *, text: str | None = None, finish: str = "stop") -> str:
    """The answer of a server."""
    said = {"message": message} if text is None else {"text": text}
    return json.dumps({"choices": [{**said, "finish_reason": finish}], "usage": {"total_tokens": 9}})


def read(text: str, way: str = "text", **more: Any) -> tuple[str, str, list[tuple[str, Any]]]:
    """The rungs, the monologue and the calls of a text."""
    reply = parse.reply(raw(text=text, **more) if way == "text" else raw({"content": text}, **more), 8192, way)
    assert reply.lossy == any(rung in LOSSY for rung in reply.repair.split(", "))
    return reply.repair, reply.text, [(call.name, parse.arguments(call.arguments)) for call in reply.calls]


@pytest.mark.parametrize(("text", "repair", "thought"), [
    (CALL, "", "So."),
    (f"```json\n{CALL}\n```", "fence", "So."),
    (f"Here you are: {CALL}", "words", "Here you are:\nSo."),
    (CALL + "}", "braces", "So."),
    (CALL[:-1], "closed", "So."),
    (CALL.replace('"}}', '",}}'), "comma", "So."),
    (f"<think>Hm {{x}}.</think>\n{CALL}", "think", "Hm {x}.\nSo."),
    (f"Hm.</think>{CALL}", "think", "Hm.\nSo."),
    (f"{CALL}<|im_end|>\n<|im_start|>user\nNo.", "stop", "So."),
    ('{"name": "send_message", "arguments": {"message": "Hi."}}', "names", ""),
    ('{"function": "functions.send_message", "params": {"message": "Hi."}}', "names", ""),
    ('{"function": {"name": "send_message", "arguments": {"message": "Hi."}}}', "names", ""),
    ('{"function": "send_message", "message": "Hi."}', "flat", ""),
    (r'{"function": "send_message", "params": "{\"message\": \"Hi.\"}"}', "nested", ""),
    (r'{"function": "send\_message", "params": {"message": "Hi."}}', "escapes", ""),
    ("{'function': 'send_message', 'params': {'message': 'Hi.'}}", "quotes", ""),
    ('{function: "send_message", params: {"message": "Hi."}}', "bare", ""),
    ("Hi.", "prose", ""),
])  # fmt: skip
def test_each_rung_has_its_name(text: str, repair: str, thought: str) -> None:
    """What was done is told, and all of them read the same call."""
    rungs, said, calls = read(text)
    assert set(rungs.split(", ")) == {repair}
    assert said == thought
    assert calls == [("send_message", HI)]


@pytest.mark.parametrize(("text", "repair", "message"), [
    ('{"function": "send_message", "params": {"message": "Hi', "cut", "Hi"),
    ('{"function": "send_message", "params": {"message": "He said "no" twice"}}', "inner", 'He said "no" twice'),
    ('{"function": "send_message", "params": {"message": "C:\\dir"}}', "backslash", "C:\\dir"),
    ('{"function": "send_message", "params": {"message": "a\nb"}}', "breaks", "a\nb"),
    ('{"function": "send_message", "params": {"message": True}}', "literals", True),
])  # fmt: skip
def test_a_text_is_mended_and_nothing_is_taken_out_of_it(text: str, repair: str, message: object) -> None:
    """Quotes, emoji and commas stay: what cannot be known for sure is a loss."""
    rungs, _, calls = read(text)
    assert repair in rungs.split(", ")
    assert calls == [("send_message", {"message": message})]


def test_a_cut_that_the_server_tells_of_is_a_loss_even_behind_something_whole() -> None:
    """Missing braces alone are none, unless more was to come."""
    assert read(CALL[:-2])[0] == "closed"
    assert read(CALL[:-2], finish="length")[0] == "closed, cut"


@pytest.mark.parametrize("text", ['{"function": ]', '{"message": "Hi."}', '"params": {"message": "Hi."}}'])
def test_broken_json_is_never_said_to_a_user(text: str) -> None:
    """It is monologue, and a loss: the model is asked once more."""
    assert read(text) == ("unread", text, [])


@pytest.mark.parametrize("text", ["", " \n", "<think>Hm.</think>"])
def test_silence_is_asked_about(text: str) -> None:
    """A reply without a word or a call is a loss."""
    rungs, _, calls = read(text)
    assert "nothing" in rungs and calls == []


def test_a_reply_may_only_think() -> None:
    """No function is a thing to say, not a fault; parameters without one are."""
    assert read('{"inner_thoughts": "Hm.", "function": null}', "schema") == ("", "Hm.", [])
    assert read('{"function": null, "params": {"inner_thoughts": "Hm."}}') == ("", "Hm.", [])
    assert read('{"function": null, "params": {"message": "Hi."}}')[0] == "nameless"


@pytest.mark.parametrize(("content", "repair"), [
    ('So.<tool_call>\n{"name": "send_message", "arguments": {"message": "Hi."}}\n</tool_call>', "tags"),
    ('So.<tool_call>{"name": "send_message", "arguments": {"message": "Hi."}', "tags, closed"),
    ('So.[TOOL_CALLS][{"name": "send_message", "arguments": {"message": "Hi."}}]', "tags"),
    ('So.[TOOL_CALLS]send_message[ARGS]{"message": "Hi."}', "tags"),
    ('So.<|python_tag|>{"name": "send_message", "parameters": {"message": "Hi."}}<|eom_id|>', "tags"),
    ('So.<function=send_message>{"message": "Hi."}</function>', "tags"),
])  # fmt: skip
def test_calls_that_a_server_passed_on_as_text_are_found(content: str, repair: str) -> None:
    """Whatever the template marks them with; the words before are monologue."""
    assert read(content, "native") == (repair, "So.", [("send_message", HI)])


def test_a_text_that_is_a_call_and_nothing_else_is_one() -> None:
    """And a text that shows one among words is not."""
    alone = '{"name": "send_message", "parameters": {"message": "Hi."}}'
    assert read(alone, "native") == ("content", "", [("send_message", HI)])
    assert read(f"I would write {alone}.", "native") == ("", f"I would write {alone}.", [])


@pytest.mark.parametrize("message", [
    {"content": "So.", "tool_calls": [{"function": {"name": "send_message", "arguments": '{"message": "Hi."}'}}]},
    {"content": "So.", "tool_calls": [
        {"id": "", "function": {"name": "send_message", "arguments": {"message": "Hi."}}}]},
    {"content": "So.", "function_call": {"name": "send_message", "arguments": '{"message": "Hi."}'}},
    {"content": [{"type": "text", "text": "So."}], "tool_calls": [
        {"id": "x", "type": "function", "function": {"name": "send_message", "arguments": '{"message": "Hi."}'}}]},
    {"content": None, "reasoning_content": "So.", "tool_calls": [
        {"id": "x", "function": {"name": "send_message", "arguments": '{"message": "Hi."}'}}]},
    {"content": "<think>So.</think>", "tool_calls": [
        {"id": "x", "function": {"name": "send_message", "arguments": '{"message": "Hi."}'}}]},
])  # fmt: skip
@pytest.mark.parametrize("way", ["native", "schema", "text"])
def test_what_servers_send_is_read_in_each_way(message: dict[str, Any], way: str) -> None:
    """Ids that are missing, arguments that are an object, the older function_call, text in parts, thoughts aloud."""
    reply = parse.reply(raw(message), 8192, way)
    assert (reply.text, reply.lossy) == ("So.", False)
    assert [(call.name, parse.arguments(call.arguments)) for call in reply.calls] == [("send_message", HI)]
    assert all(call.id for call in reply.calls)


def test_arguments_of_the_servers_calls_stay_the_models_own_text() -> None:
    """What it takes to read them is told, and they are kept as they came."""
    for text, repair in (("{'message': 'Hi.'}", "quotes"), ('"{\\"message\\": \\"Hi.\\"}"', "nested")):
        message = {"tool_calls": [{"id": "x", "function": {"name": "send_message", "arguments": text}}]}
        reply = parse.reply(raw(message), 8192)
        assert (reply.calls[0].arguments, reply.repair) == (text, repair)
        assert parse.arguments(text) == HI


def test_an_answer_without_a_message_or_a_text_is_none() -> None:
    """Nothing is made of it."""
    with pytest.raises(BadReply):
        parse.reply(json.dumps({"choices": [{"finish_reason": "stop"}]}), 8192, "text")


def test_what_is_nested_without_end_is_refused_in_no_time() -> None:
    """A hundred thousand brackets or braces are no object, and no recursion either."""
    for text in ("[" * 100_000, '{"a":' * 100_000, "{" * 100_000):
        with pytest.raises(mend.Unreadable):
            mend.begun(text, 0)
        assert read(text)[0] == "unread"


def test_cached_tokens_are_counted_where_the_server_tells() -> None:
    """The first reader did not know of them, and still does not."""
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
    text = json.dumps({"choices": [{"message": {"content": "Hm."}}], "usage": usage})
    assert parse.reply(text, 8192).usage.cached == 4
    assert parse.reply(text, 8192, "native", 1).usage.cached == 0


def test_the_page_names_every_rung() -> None:
    """docs/calling.md has each with its words, and no other."""
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "calling.md").read_text()
    for name, words in {**LOSSLESS, **LOSSY}.items():
        assert f"| `{name}` | {words} |" in page
