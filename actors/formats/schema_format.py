"""A reply that the endpoint holds to a JSON schema, made of the schemas of the functions. Pure."""

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
"""llama.cpp refuses a grammar that repeats something more often: a longer limit of monologues is not in the schema."""

_json = msgspec.json.Encoder()


class SchemaFormat:
    """The way of `response_format`."""

    def shown(self, context: Context, system: str) -> ChatMessages:
        """The messages; replies are the JSON that the schema asks for."""
        return json_call_format.chat(context, system, SHAPE)

    def described(self, schemas: Sequence[str]) -> str:
        """What the system message says of the functions."""
        return json_call_format.describe_functions(tuple(schemas), SHAPE)

    def body(self, context: Context, system: str, schemas: Sequence[str]) -> tuple[ChatMessages, bytes, bytes]:
        """A chat completion with a `response_format`."""
        chat = self.shown(context, system)
        body = _json.encode({"model": context.model, "messages": [message for _, message in chat]})
        limit = context.config.monologue_chars_max
        held = _format(tuple(schemas), limit if limit <= GRAMMAR_CHARS_MAX else 0)
        return chat, body[:-1] + held + options(context) + b"}", held

    def summary(self, context: Context, instructions: str, transcript: str) -> bytes:
        """A summary is plain text, asked for like any."""
        return NativeFormat().summary(context, instructions, transcript)

    def read(self, said: AssistantMessage) -> ParsedReply:
        """The call in the text."""
        return json_call_format.read_calls(said, SHAPE)


@lru_cache(maxsize=256)
def _format(schemas: tuple[str, ...], chars_max: int) -> bytes:
    """The schema as a request ends with it."""
    held = {"name": "reply", "strict": False, "schema": reply_schema(schemas, chars_max)}
    return encode_fields({"response_format": {"type": "json_schema", "json_schema": held}})


def reply_schema(schemas: Sequence[str], chars_max: int = 0) -> dict[str, Any]:
    """One shape for each function: that its name and its parameters belong together is a part of the schema.

    So its root is a choice, which OpenAI's strict mode does not take: `strict` is off.
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
