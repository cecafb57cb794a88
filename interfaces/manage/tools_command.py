"""`everlog tools`: list the functions that an agent may call, with their effects, and which of them wait for a person.

Called by `cli.command_run`. A log grants nothing: a function of the user is described by its schema in the log, and is
missing here unless --tools, --mcp or --a2a gives it.
"""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from everlog.actors.a2a.remote_functions import RemoteFunction
from everlog.actors.functions.extras import NAMES as EXTRAS
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.functions.memory_functions import NAMES as MEMORY_NAMES
from everlog.actors.functions.tools import Tool
from everlog.actors.mail.mail_functions import NAMES as MAIL_NAMES
from everlog.actors.mcp.mcp_functions import McpFunction
from everlog.actors.rules.approval_rules import action_for
from everlog.actors.rules.rule_checks import rule_text
from everlog.events import AgentConfigured
from everlog.interfaces.common.bootstrap import open_view, system_of
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes

_OWN = frozenset(tool.name for tool in BUILTIN)
_EFFECTS = {
    "pure": "its own memory", "read_only": "reads", "idempotent": "acts, repeatable", "at_most_once": "acts once",
}  # fmt: skip
"""Effect classes in words."""
_APPROVALS = {"ask": "waits for a person", "allow": "", "refuse": "refused"}


def tools(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `tools`."""
    system = system_of(args, world)
    with open_view(system, args.name) as view:
        rows = rows_of(view.context().config, system.tools)
    if args.json:
        print(json_shapes.line(rows))
        return 0
    from everlog.interfaces.output import show_pages

    heads = ["function", "from", "effect", "calls"] + (["rules"] if any(row["rules"] for row in rows) else [])
    table = Table(*heads, box=box.SIMPLE_HEAD)
    for row in rows:
        effect = _EFFECTS[row["effect"]] if row["effect"] else "unknown: give --tools, --mcp or --a2a"
        words = _APPROVALS[row["approval"]] + (" (some, by argument)" if row["by_argument"] else "")
        cells = (row["name"], row["source"], effect, words, "\n".join(row["rules"]))
        table.add_row(*(Text(sanitize(cell)) for cell in cells[: len(heads)]))
    show_pages.show(table)
    return 0


def rows_of(config: AgentConfigured, given: Mapping[str, Tool]) -> Sequence[dict[str, Any]]:
    """Return a row for each function of a configuration. `given`: the functions that are here, by name.

    `approval` is what the rules say of a call without arguments; `by_argument`: a rule depends on them.
    """
    rows = []
    for function in config.functions:
        name, tool = function.name, given.get(function.name)
        rows.append({
            "name": name, "source": _source(name, tool), "effect": tool.effect if tool else None,
            "timeout_s": tool.timeout_s if tool else None, "approval": action_for(config, name, {}),
            "by_argument": any(rule.arguments for rule in config.approvals if fnmatchcase(name, rule.function)),
            "rules": [rule_text(rule) for rule in config.rules if rule.function == name],
        })  # fmt: skip
    return rows


def _source(name: str, tool: Tool | None) -> str:
    """Return where a function comes from. `tool`: the function, if it is here."""
    if isinstance(tool, McpFunction):
        return f"MCP server {tool.server}"
    if isinstance(tool, RemoteFunction):
        return f"remote agent {tool.remote}"
    if name in _OWN:
        return "everlog"
    if name in MEMORY_NAMES:
        return "derived memory"
    if name in MAIL_NAMES:
        return "other agents"
    return "preset, by grants" if name in EXTRAS else "yours"
