"""Short descriptions of MemGPT's functions for agents with a small context window: fewer functions and parameters.

A function takes the same arguments under either description. Used by `agent_setup.py`, for the preset `small`. The
texts are hashed and recorded in the log: a changed text is a new configuration of every agent that has it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.functions.tools import HEARTBEAT, Tool

_TEXT, _NUMBER = "string", "integer"
_BLOCK = ("name", _TEXT, "block")
_PAGE = ("page", _NUMBER, "from 0")

_SHORT: Mapping[str, tuple[str, Sequence[tuple[str, str, str]]]] = {
    "send_message": ("Say something to the user.", (("message", _TEXT, ""),)),
    "pause_heartbeats": ("Pause timed heartbeats.", (("minutes", _NUMBER, "360 at most"),)),
    "core_memory_append": ("Add a line to core memory.", (_BLOCK, ("content", _TEXT, ""))),
    "core_memory_replace": (
        "Replace a text in core memory.",
        (_BLOCK, ("old_content", _TEXT, "exact text"), ("new_content", _TEXT, "")),
    ),
    "core_memory_remove": ("Delete a text from core memory.", (_BLOCK, ("content", _TEXT, "exact text"))),
    "conversation_search": ("Search what was said.", (("query", _TEXT, ""), _PAGE)),
    "conversation_search_date": (
        "List what was said on these days.",
        (("start_date", _TEXT, "YYYY-MM-DD"), ("end_date", _TEXT, "YYYY-MM-DD"), _PAGE),
    ),
    "archival_memory_insert": ("Keep a text in archival memory.", (("content", _TEXT, ""),)),
    "archival_memory_search": ("Search archival memory and documents.", (("query", _TEXT, ""), _PAGE)),
    "core_memory_item_add": ("Add an item to a list in core memory.", (_BLOCK, ("item", _TEXT, "one line"))),
    "core_memory_item_replace": (
        "Replace an item of a list in core memory.",
        (_BLOCK, ("item", _TEXT, "exact line"), ("new_item", _TEXT, "one line")),
    ),
    "core_memory_item_remove": ("Remove an item of a list in core memory.", (_BLOCK, ("item", _TEXT, "exact line"))),
}
"""Description and parameters (name, type, description) of each function that a small window has room for."""


def shortened(tools: Iterable[Tool], own: Iterable[str]) -> list[Tool]:
    """Return the functions with short descriptions. `own`: names of everlog's functions of memory; those that have no
    short description are left out. Users' functions stay as they are.
    """
    names = frozenset(own)
    return [
        _short(tool) if tool.name in _SHORT else tool for tool in tools if tool.name in _SHORT or tool.name not in names
    ]


def is_short(name: str, sha256: str, tools: Mapping[str, Tool]) -> bool:
    """Return True if an agent's function, recorded by name and sha256 of its schema, has the short description."""
    return name in _SHORT and name in tools and _short(tools[name]).sha256 == sha256


def _short(tool: Tool) -> Tool:
    description, parameters = _SHORT[tool.name]
    properties: dict[str, Any] = {
        name: {"type": kind, **({"description": about} if about else {})} for name, kind, about in parameters
    }
    required = [name for name, _, _ in parameters if name != "page"]
    if tool.heartbeat:
        properties[HEARTBEAT] = {"type": "boolean"}
        required.append(HEARTBEAT)
    shape = {"type": "object", "properties": properties, "required": required}
    schema = msgspec.json.encode({"name": tool.name, "description": description, "parameters": shape}).decode()
    return msgspec.structs.replace(tool, schema=schema)
