"""Show the functions of servers: as rows, and as the difference between what was accepted and what is offered."""

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from everlog.actors.mcp.accepted_tools import ComparedTool
from everlog.actors.mcp.offered_tool import OfferedTool
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.output import show_pages

EFFECTS = {"read_only": "reads", "idempotent": "acts, repeatable", "at_most_once": "acts once"}
DESCRIPTION_CHARS = 70


def accepted_row(server: str, entry: ServerEntry, tool: OfferedTool) -> dict[str, Any]:
    """Return a function as a row: its name for models, its own name, and how it is treated."""
    return {
        "name": tool.public_name(server), "tool": tool.name, "effect": tool.effect(entry),
        "approval": tool.approval(entry), "description": tool.description, "sha256": tool.sha256,
    }  # fmt: skip


def change_row(server: str, entry: ServerEntry, change: ComparedTool) -> dict[str, Any]:
    """Return a function as a row, with how it differs from what was accepted."""
    fault = change.offered.fault() if change.offered else ""
    return {**accepted_row(server, entry, change.newest), "change": change.change, "fault": fault}


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the functions as a table."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("function", no_wrap=True)
    for heading in ("effect", "calls", "is", "description"):
        table.add_column(heading)
    for row in rows:
        description = " ".join(row["description"].split())
        short = description if len(description) <= DESCRIPTION_CHARS else f"{description[:DESCRIPTION_CHARS]}..."
        waits = "waits for a person" if row["approval"] else ""
        cells = (row["name"], EFFECTS[row["effect"]], waits, row.get("fault") or row.get("change", "accepted"), short)
        table.add_row(*(Text(sanitize(cell)) for cell in cells))
    show_pages.show(table)


def difference_lines(change: ComparedTool) -> Sequence[str]:
    """Return the lines in which a function differs, marked by - and +."""
    before, after = _lines(change.accepted), _lines(change.offered)
    lines = list(difflib.unified_diff(before, after, lineterm="", n=0))
    return [line for line in lines[2:] if not line.startswith("@@")]


def _lines(tool: OfferedTool | None) -> list[str]:
    """Return all that a server says of a function, as lines."""
    if tool is None:
        return []
    hints = {name: value for name, value in msgspec.structs.asdict(tool.hints).items() if value is not None}
    said = [f"{name}: {str(value).lower()}" for name, value in hints.items()]
    return [*tool.description.splitlines(), *json.dumps(json.loads(tool.schema), indent=1).splitlines(), *said]
