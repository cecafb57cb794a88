"""Native calling format: the endpoint's own tools, with calls in the text as a fallback. Pure.

Used through `calling.py`. Raise `agent_constants.RENDERER` if requests change, and `parse_reply.READER` if a reply may
be parsed differently.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from everlog.actors.formats import call_dialects
from everlog.actors.formats import chat_messages as shown
from everlog.actors.formats.call_arguments import arguments_read
from everlog.actors.formats.call_extraction import bare_name, compact
from everlog.actors.formats.calling_format import (
    AssistantMessage,
    ParsedReply,
    ToolCall,
    encode_fields,
    join_texts,
    numbered_calls,
    options,
    split_thoughts,
    summary_options,
)
from everlog.actors.formats.chat_messages import (
    ChatMessages,
    RequestFunction,
    RequestToolCall,
    ResultsByCall,
    RoleMessage,
    ToolMessage,
)
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.prompt import message_format
from everlog.actors.prompt.context import Context, ContextMessage
from everlog.events import Call, FunctionResult, ModelReply

_json = msgspec.json.Encoder()


class NativeFormat:
    """Calling format that uses `tools` and `tool_calls`."""

    def shown(self, context: Context, system: str) -> ChatMessages:
        """Return the messages, with results in the role `tool`."""
        return shown.shown(context, system, _show_reply, _show_imported)

    def described(self, schemas: Sequence[str]) -> str:
        """Return nothing: `tools` describes the functions."""
        return ""

    def body(self, context: Context, system: str, schemas: Sequence[str]) -> tuple[ChatMessages, bytes, bytes]:
        """Return a chat completion with `tools`, whose bytes are shared by all agents with the same functions."""
        chat = self.shown(context, system)
        body = _json.encode({"model": context.model, "messages": [message for _, message in chat]})
        functions = _functions(tuple(schemas))
        return chat, body[:-1] + functions + options(context) + b"}", functions

    def summary(self, context: Context, instructions: str, transcript: str) -> bytes:
        """Return a chat completion without tools."""
        body = _json.encode(
            {
                "model": context.summarizer,
                "messages": [
                    {"role": "system", "content": instructions},
                    {"role": "user", "content": transcript},
                ],
            }
        )
        return body[:-1] + summary_options(context) + b"}"

    def read(self, said: AssistantMessage) -> ParsedReply:
        """Parse the calls of the server, else those in the text."""
        thought, text, repairs = split_thoughts(said.text)
        if not said.calls:
            found = call_dialects.find_marked_calls(text)
            if found is not None:
                calls = numbered_calls([(None, one.name, one.arguments) for one in found.asked])
                return ParsedReply(
                    join_texts(said.reasoning, thought, found.thought), calls, [*repairs, *found.repairs]
                )
        calls = _calls(said.calls, repairs)
        return ParsedReply(join_texts(said.reasoning, thought, text), calls, repairs)


def _calls(asked: Sequence[ToolCall], repairs: list[str]) -> list[Call]:
    """Return calls with the model's own arguments, and note the repair steps that reading them needs."""
    calls = []
    for call in asked:
        name, was_wrapped = bare_name(call.function.name)
        arguments = call.function.arguments
        text = arguments if isinstance(arguments, str) else "" if arguments is None else compact(arguments)
        calls.append((call.id, name, text or "{}"))
        repairs += ["names"] if was_wrapped else []
        read = arguments_read(text or "{}")
        repairs += read.repairs if read is not None else []
    return numbered_calls(calls)


@lru_cache(maxsize=256)
def _functions(schemas: tuple[str, ...]) -> bytes:
    """Encode the functions as the end of a request."""
    return encode_fields({"tools": [_tool(schema) for schema in schemas], "tool_choice": "auto"}) if schemas else b""


def _tool(schema: str) -> msgspec.Raw:
    """Wrap the schema of a function for a request."""
    return msgspec.Raw(_json.encode({"type": "function", "function": msgspec.Raw(schema.encode())}))


def _show_reply(chat: ChatMessages, context: Context, message: ContextMessage, results: ResultsByCall) -> None:
    reply = message.event
    if not isinstance(reply, ModelReply):
        return
    calls = [_call(message, call) for call in reply.calls] or None
    chat.append((message.seq, RoleMessage("assistant", shown.monologue(context, message), calls)))
    for seq, call_id, result in shown.results_of(message, reply, results):
        chat.append((seq, ToolMessage("tool", call_id, _result(context, message, result))))


def _result(context: Context, message: ContextMessage, result: ContextMessage | None) -> str:
    zone = context.config.zone
    if result is None or not isinstance(result.event, FunctionResult):
        return message_format.no_result(message.at, zone)
    return message_format.function_result(result.event, result.at, zone, shown.words(result))


def _call(message: ContextMessage, call: Call) -> RequestToolCall:
    cut = shown.arguments(message, call.arguments)
    arguments = call.arguments if cut is None else _json.encode({"shown": cut}).decode()
    return _tool_call(call.id, call.name, arguments)


def _tool_call(call_id: str, name: str, arguments: str) -> RequestToolCall:
    return RequestToolCall(call_id, "function", RequestFunction(name, arguments))


def _show_imported(chat: ChatMessages, context: Context, message: ContextMessage, _: ResultsByCall) -> None:
    """Show an imported answer as if it had been sent with `send_message`, the only way in which an agent speaks."""
    call_id = f"import_{message.seq}"
    arguments = _json.encode({"message": shown.words(message)}).decode()
    time = message_format.format_time(message.at, context.config.zone)
    calls = [_tool_call(call_id, SEND_MESSAGE, arguments)]
    chat.append((message.seq, RoleMessage("assistant", "", calls)))
    chat.append((message.seq, ToolMessage("tool", call_id, message_format.plain_ok(time))))
