"""Each kind of event with every field filled: a golden log also keeps the shapes that no scene writes."""

import types
import typing
from hashlib import sha256
from typing import Any

import msgspec

from everlog.events import CATALOGUE, FunctionRef, draft

REAL = {"agent_created", "agent_forked", "agent_moved", "agent_deleted", "records_erased"}
"""Kinds that the store or a scene acts on; for these kinds, the scenes write real events."""
SCHEMA = '{"name":"fly","description":"Fly.","parameters":{"type":"object","properties":{}}}'
DIGEST = sha256(SCHEMA.encode()).hexdigest()
FIXED: dict[str, Any] = {
    "zone": "Europe/Berlin",
    "window": 8192,
    "renderer": 0,
    "functions": [FunctionRef("fly", DIGEST)],
    "schemas": {DIGEST: SCHEMA},
    "context_sha256": DIGEST,
    "ok": False,
    "withdrawn": False,
}
"""Fields with a restricted value. No renderer has the number 0, so no request is made from the configuration."""

Shape = tuple[str, int, str | None, str]


def every_kind() -> list[Shape]:
    """Return kind, version, text and payload of each shape: the configuration first, and last a known kind in a future
    version.
    """
    kinds = sorted(CATALOGUE.keys() - REAL, key=lambda kind: (kind != "agent_configured", kind))
    return [*map(_shape, kinds), ("user_message", 99, "from a time to come", '{"mood":"calm"}')]


def _shape(kind: str) -> Shape:
    cls = CATALOGUE[kind]
    made = draft(_filled(cls), event_id="", recorded_at=0, turn=0, step=0)
    return kind, made.version, made.text, made.payload


def _filled(cls: type[Any]) -> Any:
    hints = typing.get_type_hints(cls)
    fields = [field.name for field in msgspec.structs.fields(cls)]
    return cls(**{name: FIXED[name] if name in FIXED else _value(name, hints[name]) for name in fields})


def _value(name: str, kind: Any) -> Any:
    """Return a value of a field's type that is not the default of any field."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return args[-1]
    if origin in (types.UnionType, typing.Union):
        return _value(name, next(arg for arg in args if arg is not type(None)))
    if origin is list:
        return [_value(name, args[0])]
    if origin is dict:
        return {_value(name, args[0]): _value(name, args[1])}
    if kind in (str, int, float, bool):
        return {str: f"a {name} \u2014 \u00e9t\u00e9", int: 7, float: 0.5, bool: True}[kind]
    return _filled(kind)
