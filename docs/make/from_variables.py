"""Make the tables of the environment variables and of the keys of the files of defaults."""

import ast

from docs.make.blocks import UnknownBlock, escaped, table
from docs.make.from_source import fields, found_definition
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.interfaces.defaults import variables
from everlog.interfaces.defaults.default_keys import KEYS
from everlog.interfaces.defaults.variables import EnvironmentVariable

TABLES = {"everlog": variables.VARIABLES, "developers": variables.DEVELOPERS, "others": variables.OTHERS}


def variables_block(name: str, _: str) -> str:
    """Return a table of variables, or for `gateway` and `keys` those of the limits and of the files of defaults."""
    if name == "keys":
        return _keys()
    if name == "gateway":
        return _gateway()
    if name not in TABLES:
        raise UnknownBlock(f"there is no table of variables {name!r}")
    return table(("variable", "meaning", "default", "key"), [_row(one) for one in TABLES[name]])


def _row(one: EnvironmentVariable) -> tuple[str, str, str, str]:
    return f"`{one.name}`", escaped(one.meaning), escaped(one.default), f"`{one.key}`" if one.key else ""


def _gateway() -> str:
    limits = GatewayLimits()
    definition = found_definition("GatewayLimits")
    assert isinstance(definition, ast.ClassDef)
    rows = [
        (f"`{variables.GATEWAY_PREFIX}{name.upper()}`", escaped(meaning), f"`{getattr(limits, name)}`")
        for name, _, _, meaning in fields(definition)
    ]
    return table(("variable", "meaning", "default"), rows)


def _keys() -> str:
    rows = [
        (
            f"`{key.name}`", f"`{key.option}`", escaped(key.meaning), escaped(key.built_in),
            f"`{key.variable}`" if key.variable else "", "both" if key.scope == "any" else "the user's",
        )
        for key in KEYS
    ]  # fmt: skip
    return table(("key", "default of", "meaning", "built-in", "variable", "file"), rows)
