"""Shared parts of the formats without the endpoint's tools: functions are described in the system message, a call is
JSON in the model's text, and a result is rendered like an input. Pure.

Used by `schema_format.py` and `text_format.py`. Raise `agent_constants.RENDERER` if requests change, and
`parse_reply.READER` if a reply may be parsed differently.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from everlog.actors.formats import call_dialects, call_extraction, chat_messages
from everlog.actors.formats.calling_format import (
    AssistantMessage,
    ParsedReply,
    join_texts,
    numbered_calls,
    split_thoughts,
)
from everlog.actors.formats.chat_messages import ChatMessages, ResultsByCall, RoleMessage
from everlog.actors.formats.native_format import NativeFormat
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.prompt import message_format
from everlog.actors.prompt.context import Context, ContextMessage
from everlog.events import Call, FunctionResult, ModelReply


class CallSyntax(msgspec.Struct, frozen=True):
    """Layout of a call."""

    within: bool
    """True: the monologue is the first parameter; False: it comes before the call."""

    def call(self, thought: str, name: str | None, params: Any) -> dict[str, Any]:
        """Return a call in the layout that the model is to write."""
        if not self.within:
            return {call_extraction.THOUGHTS: thought, "function": name, "params": params}
        within = {call_extraction.THOUGHTS: thought, **params} if isinstance(params, dict) else params
        return {"function": name, "params": within}


class FunctionResultMessage(msgspec.Struct, omit_defaults=True, gc=False):
    """Result of a function, rendered like an input."""

    type: str
    function: str
    status: str
    message: str | None = None
    time: str = ""


SEVERAL = 'To call several functions at once, answer with a list of such objects. With "function": null you only think.'

_json = msgspec.json.Encoder()


def chat(context: Context, system: str, shape: CallSyntax) -> ChatMessages:
    """Return the chat messages: replies as the JSON that they were, results as inputs."""

    def reply(chat: ChatMessages, context: Context, message: ContextMessage, results: ResultsByCall) -> None:
        _show_reply(chat, context, message, results, shape)

    def imported(chat: ChatMessages, _context: Context, message: ContextMessage, _: ResultsByCall) -> None:
        said = shape.call("", SEND_MESSAGE, {"message": chat_messages.words(message)})
        chat.append((message.seq, RoleMessage("assistant", call_extraction.compact(said))))

    return chat_messages.shown(context, system, reply, imported)


def _show_reply(
    chat: ChatMessages, context: Context, message: ContextMessage, results: ResultsByCall, shape: CallSyntax
) -> None:
    reply = message.event
    if not isinstance(reply, ModelReply):
        return
    thought = chat_messages.monologue(context, message)
    calls = [
        shape.call("" if number else thought, call.name, _params(message, call))
        for number, call in enumerate(reply.calls)
    ]
    value = calls if len(calls) > 1 else calls[0] if calls else shape.call(thought, None, {})
    chat.append((message.seq, RoleMessage("assistant", call_extraction.compact(value))))
    names = {call.id: call.name for call in reply.calls}
    for seq, call_id, result in chat_messages.results_of(message, reply, results):
        chat.append((seq, RoleMessage("user", _result(context, message, names[call_id], result))))


def _params(message: ContextMessage, call: Call) -> Any:
    cut = chat_messages.arguments(message, call.arguments)
    if cut is not None:
        return {"shown": cut}
    try:
        return json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments


def _result(context: Context, message: ContextMessage, name: str, result: ContextMessage | None) -> str:
    zone = context.config.zone
    if result is None or not isinstance(result.event, FunctionResult):
        result_message = FunctionResultMessage(
            "function_result",
            name,
            "Failed",
            "The call has no result yet.",
            message_format.format_time(message.at, zone),
        )
    else:
        words = chat_messages.words(result) or None
        status = "OK" if result.event.ok else "Failed"
        result_message = FunctionResultMessage(
            "function_result", name, status, words, message_format.format_time(result.at, zone)
        )
    return _json.encode(result_message).decode()


@lru_cache(maxsize=256)
def describe_functions(schemas: tuple[str, ...], shape: CallSyntax) -> str:
    """Describe the functions, and the layout of a call, for the system message; empty without functions."""
    if not schemas:
        return ""
    example = shape.call("what you think", "the name of a function", {"a parameter": "its value"})
    lines = [
        "",
        "### Functions",
        (
            "You act by calling functions. Answer with one JSON object and nothing else: "
            f"{call_extraction.compact(example)}"
        ),
        *([SEVERAL] if shape.within else []),
        "These are the functions:",
        *(line for schema in schemas for line in _function(json.loads(schema))),
    ]
    return "\n".join(lines)


def _function(schema: Mapping[str, Any]) -> list[str]:
    """Render a function as lines in the style of YAML."""
    lines = [f"- {schema['name']}:", f"    description: {_line(schema.get('description', ''))}"]
    properties = schema.get("parameters", {}).get("properties", {})
    if properties:
        lines.append("    params:")
    required = schema.get("parameters", {}).get("required", [])
    for name, about in properties.items():
        kind = about.get("type", "any")
        needed = "" if name in required else ", may be left out"
        lines.append(f"      {name} ({kind}{needed}): {_line(about.get('description', ''))}")
    return lines


def _line(text: str) -> str:
    return " ".join(text.split())


def read_calls(said: AssistantMessage, shape: CallSyntax) -> ParsedReply:
    """Parse the calls in the model's message; plain text is taken for a message to the user, which is a guess.

    Calls that the server parsed itself are accepted as they are.
    """
    if said.calls:
        return NativeFormat().read(said)
    thought, text, repairs = split_thoughts(said.text)
    found = (
        call_extraction.strict(text, within=shape.within)
        or call_dialects.tagged(text)
        or call_extraction.find_calls(text, within=shape.within)
    )
    if found is not None:
        calls = numbered_calls([(None, one.name, one.arguments) for one in found.asked])
        return ParsedReply(join_texts(said.reasoning, thought, found.thought), calls, [*repairs, *found.repairs])
    before = join_texts(said.reasoning, thought)
    if not text.strip():
        return ParsedReply(before, [], [*repairs, "nothing"])
    if call_extraction.looks_like_json(text):
        return ParsedReply(join_texts(before, text), [], [*repairs, "unread"])
    arguments = call_extraction.compact({"message": text.strip()})
    return ParsedReply(before, numbered_calls([(None, SEND_MESSAGE, arguments)]), [*repairs, "prose"])
