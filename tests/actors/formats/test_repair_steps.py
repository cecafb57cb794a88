"""Each repair step, and each shape in which servers send a model's reply."""

import json
from typing import Any

import pytest

from everlog.actors.formats import json_repair, parse_reply
from everlog.actors.formats.repair_steps import LOSSLESS, LOSSY
from everlog.actors.models.token_usage import usage_of
from everlog.events import BadReply, ContextOverflow

CALL = '{"function": "send_message", "params": {"inner_thoughts": "So.", "message": "Hi."}}'
HI = {"message": "Hi."}


def raw(message: dict[str, Any] | None = None, *, text: str | None = None, finish: str = "stop") -> str:
    """Return a server's response with one choice."""
    said = {"message": message} if text is None else {"text": text}
    return json.dumps({"choices": [{**said, "finish_reason": finish}], "usage": {"total_tokens": 9}})


def read(text: str, way: str = "text", **more: Any) -> tuple[str, str, list[tuple[str, Any]]]:
    """Return the repair steps, the monologue and the calls of a text."""
    reply = parse_reply.reply(raw(text=text, **more) if way == "text" else raw({"content": text}, **more), 8192, way)
    assert reply.lossy == any(repair_step in LOSSY for repair_step in reply.repair.split(", "))
    return reply.repair, reply.text, [(call.name, parse_reply.arguments(call.arguments)) for call in reply.calls]


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
def test_each_repair_step_is_named(text: str, repair: str, thought: str) -> None:
    """Each repair step is named, and all spellings are read as the same call."""
    repairs, said, calls = read(text)
    assert set(repairs.split(", ")) == {repair}
    assert said == thought
    assert calls == [("send_message", HI)]


@pytest.mark.parametrize("way", ["native", "schema", "text"])
@pytest.mark.parametrize("text", [
    '{"type": "function", "function": {"type": "function", "name": "send_message", "parameters": {"message": "Hi."}}}',
    '{"id": "1", "function": {"id": "2", "name": "send_message", "arguments": {"message": "Hi."}}}',
    '{"name": "send_message", "function": {"name": "send_message", "arguments": {"message": "Hi."}}}',
])  # fmt: skip
def test_a_nested_call_with_repeated_fields_is_read(text: str, way: str) -> None:
    """A field that is given twice with equal content counts once."""
    repair, _, calls = read(text, way)
    assert repair == ("content" if way == "native" else "names")
    assert calls == [("send_message", HI)]


def test_a_nested_call_that_differs_from_its_object_is_lossy() -> None:
    """If outer and inner content differ, the inner one is read and the reading is lossy."""
    text = '{"name": "core_memory_append", "function": {"name": "send_message", "arguments": {"message": "Hi."}}}'
    assert read(text) == ("names, repeated", "", [("send_message", HI)])


def test_parameters_may_have_names_of_the_format() -> None:
    """An `id` or `type` next to a call without nested parameters is a parameter of the call."""
    text = '{"function": "timer_cancel", "id": "t1", "type": "daily"}'
    assert read(text) == ("flat", "", [("timer_cancel", {"id": "t1", "type": "daily"})])


@pytest.mark.parametrize(("message", "way"), [
    (message, way)
    for message in ("use <s>x</s>.", "a </think> b", "the <|python_tag|> mark", "a [TOOL_CALLS] b", "Say ```x``` now")
    for way in ("native", "schema", "text")
])  # fmt: skip
def test_delimiters_inside_a_parameter_are_text(message: str, way: str) -> None:
    """A token that is a delimiter elsewhere is plain text in a parameter."""
    text = json.dumps({"name": "send_message", "arguments": {"message": message}})
    repair, _, calls = read(text, way)
    assert (repair, calls) == ("content" if way == "native" else "names", [("send_message", {"message": message})])
    if "TOOL" not in message:
        assert read(f"[TOOL_CALLS][{text}]</s>", way) == ("tags", "", [("send_message", {"message": message})])


def test_a_fence_after_an_unescaped_quote_is_lossy() -> None:
    """A quote and a fence inside a text do not end the text, and the reading is lossy."""
    repair, _, calls = read('{"function": "send_message", "params": {"message": "Say "```hello``` to me')
    assert {"inner", "cut"} <= set(repair.split(", "))
    assert calls == [("send_message", {"message": 'Say "```hello``` to me'})]


def cut_for_length(prompt: int, completion: int, content: str = "So.") -> str:
    """Return a response that was truncated for length, without token counts if `prompt` is 0."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    choice = {"message": {"content": content}, "finish_reason": "length"}
    return json.dumps({"choices": [choice], **({"usage": usage} if prompt else {})})


@pytest.mark.parametrize(("prompt", "completion", "content"), [(8000, 192, "So."), (7400, 0, ""), (0, 0, "")])
def test_a_request_that_leaves_no_room_is_an_overflow_and_keeps_its_answer(
    prompt: int, completion: int, content: str
) -> None:
    """The error keeps the raw response, so that it can be recorded."""
    came = cut_for_length(prompt, completion, content)
    with pytest.raises(ContextOverflow) as caught:
        parse_reply.reply(came, 8192)
    assert caught.value.raw == came


@pytest.mark.parametrize(("prompt", "completion"), [(2000, 6100), (0, 0), (100, 50)])
def test_a_long_reply_is_cut_and_no_overflow(prompt: int, completion: int) -> None:
    """A truncated reply whose request left room, or that has no token counts but some content, is a lossy reply and no
    overflow.
    """
    reply = parse_reply.reply(cut_for_length(prompt, completion), 8192)
    assert (reply.text, reply.repair, reply.lossy) == ("So.", "cut", True)


def test_unusual_but_readable_replies_are_accepted() -> None:
    """A byte order mark, a number as id and text as a token count do not make a reply invalid."""
    call = {"id": 5, "type": "function", "function": {"name": "send_message", "arguments": {"message": "Hi."}}}
    usage = {"prompt_tokens": "12", "completion_tokens": "1", "total_tokens": "many"}
    choice = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": "stop"}
    reply = parse_reply.reply("\ufeff" + json.dumps({"choices": [choice], "usage": usage}), 8192)
    assert [(one.id, parse_reply.arguments(one.arguments)) for one in reply.calls] == [("5", HI)]
    assert (reply.usage.prompt, reply.usage.total, usage_of(reply.raw).prompt) == (12, 13, 12)


@pytest.mark.parametrize(("text", "repair", "message"), [
    ('{"function": "send_message", "params": {"message": "Hi', "cut", "Hi"),
    ('{"function": "send_message", "params": {"message": "He said "no" twice"}}', "inner", 'He said "no" twice'),
    ('{"function": "send_message", "params": {"message": "C:\\dir"}}', "backslash", "C:\\dir"),
    ('{"function": "send_message", "params": {"message": "a\nb"}}', "breaks", "a\nb"),
    ('{"function": "send_message", "params": {"message": True}}', "literals", True),
])  # fmt: skip
def test_a_repaired_text_loses_no_character(text: str, repair: str, message: object) -> None:
    """Quotes, line breaks and backslashes stay in the text; a repair that has to guess is marked as lossy."""
    repairs, _, calls = read(text)
    assert repair in repairs.split(", ")
    assert calls == [("send_message", {"message": message})]


def test_a_truncated_reply_is_lossy_even_if_only_braces_are_missing() -> None:
    """Missing closing braces are lossless, unless the server reports truncation."""
    assert read(CALL[:-2])[0] == "closed"
    assert read(CALL[:-2], finish="length")[0] == "closed, cut"


@pytest.mark.parametrize("text", ['{"function": ]', '{"message": "Hi."}', '"params": {"message": "Hi."}}'])
def test_broken_json_is_never_sent_to_a_user(text: str) -> None:
    """Unreadable JSON becomes monologue and is lossy, so the model is asked again."""
    assert read(text) == ("unread", text, [])


@pytest.mark.parametrize("text", ["", " \n", "<think>Hm.</think>"])
def test_an_empty_reply_is_lossy(text: str) -> None:
    """A reply without text and without a call is lossy, so the model is asked again."""
    repairs, _, calls = read(text)
    assert "nothing" in repairs and calls == []


def test_a_reply_may_only_think() -> None:
    """A reply without a function is valid; parameters without a function name are a fault."""
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
    """Calls are read with any markers of a template; the words before them are monologue."""
    assert read(content, "native") == (repair, "So.", [("send_message", HI)])


def test_only_a_text_that_is_exactly_one_call_is_read_as_a_call() -> None:
    """A text that is exactly one call is read as a call; a call inside other text is not."""
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
def test_shapes_of_calls_are_read_in_each_calling_format(message: dict[str, Any], way: str) -> None:
    """Missing ids, arguments as an object, the older `function_call`, text in parts, and separate or tagged thoughts
    are all read.
    """
    reply = parse_reply.reply(raw(message), 8192, way)
    assert (reply.text, reply.lossy) == ("So.", False)
    assert [(call.name, parse_reply.arguments(call.arguments)) for call in reply.calls] == [("send_message", HI)]
    assert all(call.id for call in reply.calls)


def test_arguments_of_the_servers_calls_stay_the_models_own_text() -> None:
    """The repair steps are named, and the recorded arguments are the model's own text."""
    for text, repair in (("{'message': 'Hi.'}", "quotes"), ('"{\\"message\\": \\"Hi.\\"}"', "nested")):
        message = {"tool_calls": [{"id": "x", "function": {"name": "send_message", "arguments": text}}]}
        reply = parse_reply.reply(raw(message), 8192)
        assert (reply.calls[0].arguments, reply.repair) == (text, repair)
        assert parse_reply.arguments(text) == HI


def test_a_choice_without_message_or_text_is_a_bad_reply() -> None:
    """A choice without a message or a text raises BadReply."""
    with pytest.raises(BadReply):
        parse_reply.reply(json.dumps({"choices": [{"finish_reason": "stop"}]}), 8192, "text")


def test_endless_nesting_is_refused_quickly() -> None:
    """A hundred thousand open brackets or braces are refused quickly and without deep recursion."""
    for text in ("[" * 100_000, '{"a":' * 100_000, "{" * 100_000):
        with pytest.raises(json_repair.UnrepairableJson):
            json_repair.begun(text, 0)
        assert read(text)[0] == "unread"


def test_cached_tokens_are_counted_if_the_server_reports_them() -> None:
    """`usage.cached` is the number of prompt tokens that the server had in its cache."""
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
    text = json.dumps({"choices": [{"message": {"content": "Hm."}}], "usage": usage})
    assert parse_reply.reply(text, 8192).usage.cached == 4


def test_the_page_names_every_rung() -> None:
    """docs/reference/calling_formats.md has each with its words, and no other."""
    from pathlib import Path

    page = (Path(__file__).parents[3] / "docs" / "reference" / "calling_formats.md").read_text()
    for name, words in {**LOSSLESS, **LOSSY}.items():
        assert f"| `{name}` | {words} |" in page
