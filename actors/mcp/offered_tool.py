"""Hold what a server says of one of its functions, and conclude from its hints how the function is treated. Pure.

The hints are claims of the server. They choose defaults only, and the operator's word comes before them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec

from everlog.actors.functions.tools import HEARTBEAT, HEARTBEAT_SCHEMA
from everlog.actors.mcp.function_names import function_name
from everlog.actors.mcp.server_entry import ActingEffect, ServerEntry

NAME_CHARS_MAX = 256
DESCRIPTION_CHARS_MAX = 20_000
SCHEMA_CHARS_MAX = 50_000
TOOLS_MAX = 100
"""Most functions of one server that agents get: every schema is part of every request to the model."""


class ServerHints(msgspec.Struct, frozen=True, omit_defaults=True):
    """Claims of a server about a function; None: it says nothing, and the protocol's own default holds."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @property
    def effect(self) -> ActingEffect:
        """Effect class that the hints suggest."""
        if self.read_only is True:
            return "read_only"
        return "idempotent" if self.idempotent is True else "at_most_once"

    @property
    def approval(self) -> bool:
        """True if calls wait for a person: the function may destroy something, or reaches an open world. The protocol
        says that both hold of a function without hints.
        """
        destroys = self.read_only is not True and self.destructive is not False
        return destroys or self.open_world is not False


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A function as its server describes it."""

    name: str
    """The server's own name, with which it is called."""
    description: str = ""
    schema: str
    """Schema of the arguments, as JSON text with sorted keys."""
    hints: ServerHints = ServerHints()

    @cached_property
    def sha256(self) -> str:
        """Digest of all that the server says of the function: of what the operator consents to."""
        return sha256(msgspec.json.encode([self.name, self.description, self.schema, self.hints])).hexdigest()

    def public_name(self, server: str) -> str:
        """Return the name that models call the function by."""
        return function_name(server, self.name)

    def effect(self, entry: ServerEntry) -> ActingEffect:
        """Return the effect class: the operator's word, else that of the hints."""
        return entry.rule_of(self.name).effect or self.hints.effect

    def approval(self, entry: ServerEntry) -> bool:
        """Return True if calls wait for a person: the operator's word, else that of the hints. An operator who says
        that a function only reads has thereby said that it destroys nothing.
        """
        rule = entry.rule_of(self.name)
        if rule.approval is not None:
            return rule.approval
        if rule.effect == "read_only":
            return msgspec.structs.replace(self.hints, read_only=True).approval
        return self.hints.approval

    def fault(self) -> str:
        """Return why agents cannot get the function; empty if they can. Needs the packages of the extra `mcp`."""
        if not self.name or len(self.name) > NAME_CHARS_MAX:
            return f"its name has {len(self.name)} characters; 1 to {NAME_CHARS_MAX} can be used"
        if len(self.description) > DESCRIPTION_CHARS_MAX:
            return f"its description is longer than {DESCRIPTION_CHARS_MAX:,} characters"
        if len(self.schema) > SCHEMA_CHARS_MAX:
            return f"its schema is longer than {SCHEMA_CHARS_MAX:,} characters"
        return _schema_fault(json.loads(self.schema))

    def shown_schema(self, server: str) -> str:
        """Return the JSON text that the model sees: name, description and parameters, with the request for a heartbeat.

        The same description always gives the same text: its digest is in the log.
        """
        shape = json.loads(self.schema)
        properties = {name: _readable(about) for name, about in shape.get("properties", {}).items()}
        wanted = shape.get("required", ())
        required = [name for name in properties if isinstance(wanted, list) and name in wanted]
        properties[HEARTBEAT] = HEARTBEAT_SCHEMA
        more = {key: value for key, value in shape.items() if key in _KEPT}
        parameters = {"type": "object", "properties": properties, "required": [*required, HEARTBEAT], **more}
        description = self.description.strip() or f"The function {self.name} of the server {server}."
        shown = {"name": self.public_name(server), "description": description, "parameters": parameters}
        return msgspec.json.encode(shown).decode()


def _schema_fault(shape: Any) -> str:
    """Return why a schema cannot be used; empty if it can. One wrong schema would make endpoints refuse whole
    requests.
    """
    from jsonschema import SchemaError, validators

    try:
        validators.validator_for(shape, validators.Draft202012Validator).check_schema(shape)
    except (SchemaError, ValueError, RecursionError) as error:
        return f"its schema is none: {str(getattr(error, 'message', error))[:200]}"
    if not isinstance(shape, dict) or shape.get("type", "object") != "object":
        return "its schema does not describe an object"
    if HEARTBEAT in shape.get("properties", {}):
        return f"it has a parameter {HEARTBEAT}, which is everlog's own"
    if any(not reference.startswith("#") for reference in _references(shape)):
        return "its schema refers to another document"
    return ""


def _references(shape: Any) -> Iterator[str]:
    """Yield the references of a schema to other schemas."""
    inner = list(shape.values()) if isinstance(shape, dict) else shape if isinstance(shape, list) else []
    if isinstance(shape, dict) and isinstance(shape.get("$ref"), str):
        yield shape["$ref"]
    for one in inner:
        yield from _references(one)


_KEPT = ("$defs", "definitions", "additionalProperties")
"""Keys of a schema, besides those of its parameters, that change what they mean."""


def _readable(about: Any) -> Mapping[str, Any]:
    """Return the schema of a parameter as the calling formats read it: an object, whose description is text."""
    if not isinstance(about, dict):
        return {}
    described = isinstance(about.get("description", ""), str)
    return about if described else {key: value for key, value in about.items() if key != "description"}


def offered_tool(name: str, description: str | None, schema: Mapping[str, Any], hints: ServerHints) -> OfferedTool:
    """Return a function from the parts of its description. Half characters, which no text may hold, become "?"."""
    text = json.dumps(schema, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return OfferedTool(name=_whole(name), description=_whole(description or ""), schema=text, hints=hints)


def _whole(text: str) -> str:
    return text.encode(errors="replace").decode()


class Offer(msgspec.Struct, frozen=True):
    """All that a server offers, and who it says it is."""

    tools: Sequence[OfferedTool]
    server: str = ""
    """Name and version of the server's program, as it says."""
    protocol: str = ""
    """Revision of the protocol that was agreed on."""
    doubled: Sequence[str] = ()
    """Names that the server gives to several functions: the first of them counts."""

    @property
    def by_name(self) -> Mapping[str, OfferedTool]:
        """Functions by the server's own names."""
        return {tool.name: tool for tool in self.tools}


def offer_of(tools: Sequence[OfferedTool], server: str = "", protocol: str = "") -> Offer:
    """Return an offer. Of several functions of one name the first counts."""
    first: dict[str, OfferedTool] = {}
    doubled = []
    for tool in tools:
        if first.setdefault(tool.name, tool) is not tool:
            doubled.append(tool.name)
    return Offer(list(first.values()), server, protocol, sorted(set(doubled)))
