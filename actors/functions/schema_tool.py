"""Offer a function that is known by a JSON schema alone, and not by the signature of a Python function. Pure.

Used for functions that another program carries out: those of MCP servers, and questions to remote agents. The names of
arguments are checked here; the other program checks the values.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from everlog.actors.functions.tools import HEARTBEAT, Tool
from everlog.events import FunctionError


class NoArguments(msgspec.Struct):
    """Arguments that are described by a schema, and by no Struct."""


class SchemaTool(Tool, frozen=True, kw_only=True):
    """A function whose arguments are described by its schema alone."""

    arguments: type[msgspec.Struct] = NoArguments
    aliases: Mapping[str, str] = {}
    takes_memory: bool = False
    searches: bool = False
    takes_key: bool = False
    heartbeat: bool = True
    whole: bool = False
    faults: tuple[type[BaseException], ...] = (Exception,)

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check the names of the arguments of a call. Raise FunctionError, in words for the model."""
        names, required, takes_more = _parameters(self.schema)
        given = {self.aliases.get(name, name): value for name, value in arguments.items()}
        unknown = sorted(given.keys() - names)
        if unknown and not takes_more:
            raise FunctionError(
                f"{self.name} has no parameter {', '.join(unknown)}; it takes {', '.join(sorted(names)) or 'none'}"
            )
        missing = sorted(required - given.keys())
        if missing:
            raise FunctionError(f"{self.name} needs {', '.join(missing)}")
        return given


@lru_cache(maxsize=1024)
def _parameters(schema: str) -> tuple[frozenset[str], frozenset[str], bool]:
    """Return the names of the parameters, those that are required, and True if any others are taken."""
    parameters = json.loads(schema)["parameters"]
    names = frozenset(parameters["properties"]) - {HEARTBEAT}
    required = frozenset(parameters.get("required", ())) & names
    return names, required, parameters.get("additionalProperties", False) is not False
