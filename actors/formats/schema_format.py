"""Schema calling format: the endpoint enforces a JSON schema, made from the schemas of the functions. Pure.

Used through `calling.py`. Raise `agent_constants.RENDERER` if requests change, and `parse_reply.READER` if a reply may
be parsed differently.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from everlog.actors.formats import json_call_format
from everlog.actors.formats.call_extraction import THOUGHTS
from everlog.actors.formats.calling_format import AssistantMessage, ParsedReply, encode_fields, options
from everlog.actors.formats.chat_messages import ChatMessages
from everlog.actors.formats.native_format import NativeFormat
from everlog.actors.prompt.context import Context

SHAPE = json_call_format.CallSyntax(within=False)

GRAMMAR_CHARS_MAX = 2000
"""Most repetitions in a grammar that llama.cpp accepts: a longer limit of monologues is left out of the schema."""

_json = msgspec.json.Encoder()


class SchemaFormat:
    """Calling format that uses `response_format`."""

    def shown(self, context: Context, system: str) -> ChatMessages:
        """Return the messages; replies are JSON as the schema demands."""
        return json_call_format.chat(context, system, SHAPE)

    def described(self, schemas: Sequence[str]) -> str:
        """Describe the functions for the system message."""
        return json_call_format.describe_functions(tuple(schemas), SHAPE)

    def body(self, context: Context, system: str, schemas: Sequence[str]) -> tuple[ChatMessages, bytes, bytes]:
        """Return a chat completion with a `response_format`."""
        chat = self.shown(context, system)
        body = _json.encode({"model": context.model, "messages": [message for _, message in chat]})
        limit = context.config.monologue_chars_max
        held = _format(tuple(schemas), limit if limit <= GRAMMAR_CHARS_MAX else 0)
        return chat, body[:-1] + held + options(context) + b"}", held

    def summary(self, context: Context, instructions: str, transcript: str) -> bytes:
        """Return the native request: a summary is plain text."""
        return NativeFormat().summary(context, instructions, transcript)

    def read(self, said: AssistantMessage) -> ParsedReply:
        """Parse the call in the text."""
        return json_call_format.read_calls(said, SHAPE)


@lru_cache(maxsize=256)
def _format(schemas: tuple[str, ...], chars_max: int) -> bytes:
    """Encode the schema as the end of a request."""
    held = {"name": "reply", "strict": False, "schema": reply_schema(schemas, chars_max)}
    return encode_fields({"response_format": {"type": "json_schema", "json_schema": held}})


def reply_schema(schemas: Sequence[str], chars_max: int = 0) -> dict[str, Any]:
    """Return a schema with one shape for each function, so that a function's name and its parameters belong together.

    The root is therefore a choice, which OpenAI's strict mode does not accept: `strict` is off.
    """
    thought: dict[str, Any] = {"type": "string"}
    if chars_max:
        thought["maxLength"] = chars_max
    shapes = [_shape(thought, json.loads(schema)) for schema in schemas]
    if not shapes:
        return _object({THOUGHTS: thought, "function": {"type": "null"}})
    return {"type": "object", "anyOf": shapes} if len(shapes) > 1 else shapes[0]


def _shape(thought: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
    params = function.get("parameters") or {"type": "object", "properties": {}}
    params = {**params, "additionalProperties": False}
    return _object({THOUGHTS: thought, "function": {"type": "string", "enum": [function["name"]]}, "params": params})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
