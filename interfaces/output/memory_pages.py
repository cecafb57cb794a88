"""Pages of derived memories for people: a list with reasons, the tree of one memory, facts and plans.

Used by `memories/list_commands.py` and by the commands that derive.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from everlog.actors.recollection.memory_tree import MemoryTree, TreeNode
from everlog.interfaces.common import time_text
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output.show_pages import heading
from everlog.interfaces.output.terminal_output import console, indented, one_line

Reasons = Mapping[int, Sequence[int]]
"""For each outdated memory the ended facts that it rests on."""

_STYLES = {"insight": "bold cyan", "fact": "bold green", "plan": "bold yellow", "message": "dim", "archival": "magenta"}
_PRECISIONS = {"day": 10, "month": 7, "year": 4}
"""Characters of an ISO time that a precision shows."""


def memories(name: str, as_of: int, rows: Sequence[Mapping[str, Any]], reasons: Reasons, now: int) -> RenderableType:
    """Return memories in the order of time, each with when and by which deriver it was noted, and what it rests on."""
    parts: list[RenderableType] = [heading(name, plural(len(rows), "memory", "memories"), as_of)]
    for row in rows:
        head = _head(
            row["kind"], row["seq"], reasons, f"  {time_text.relative(row['time'], now)}", ended=row["outdated"]
        )
        parts += [Text(""), head, _words(row)]
        if row["sources"]:
            rests = ", ".join(map(str, row["sources"]))
            parts.append(Text(f"  from {rests} · {row['deriver']}", "dim"))
    if not rows:
        parts.append(Text(f"Nothing was concluded yet. `everlog reflect {name}` derives memories.", "dim italic"))
    return Group(*parts)


def _head(kind: str, seq: int, reasons: Reasons, more: str = "", *, ended: bool) -> Text:
    because = reasons.get(seq, ())
    outdated = f"  outdated: fact {', '.join(map(str, because))} has ended" if because else ""
    over = "  ended" if ended and kind == "fact" and not because else ""
    return Text.assemble((f"{kind} {seq}", _STYLES.get(kind, "bold")), (more, "dim"), (outdated + over, "red"))


def _words(row: Mapping[str, Any]) -> RenderableType:
    speaker = f"{row['name'] or row['role']}: " if row["kind"] == "message" else ""
    return indented(Text(sanitize(f"{speaker}{row['text']}")), console())


def tree(name: str, as_of: int, found: MemoryTree, reasons: Reasons) -> RenderableType:
    """Return a memory with everything that it rests on, down to messages. What is shown twice has its sources once."""
    drawn = Tree(_label(found.root, reasons), guide_style="bright_black")
    _grow(drawn, found, found.root, reasons, set())
    return Group(heading(name, f"memory {found.seq} and what it rests on", as_of), Text(""), drawn)


def _grow(drawn: Tree, found: MemoryTree, node: TreeNode, reasons: Reasons, shown: set[int]) -> None:
    if node.seq in shown:
        return
    shown.add(node.seq)
    for source in (found.nodes[seq] for seq in node.sources if seq in found.nodes):
        _grow(drawn.add(_label(source, reasons)), found, source, reasons, shown)


def _label(node: TreeNode, reasons: Reasons) -> Text:
    speaker = f"{node.name}: " if node.kind == "message" and node.name else ""
    withdrawn = Text("  withdrawn", "red") if node.withdrawn else Text()
    words = Text(f"  {sanitize(one_line(speaker + node.text))}")
    return _head(node.kind, node.seq, reasons, ended=node.outdated) + withdrawn + words


def facts(name: str, as_of: int, rows: Sequence[Mapping[str, Any]], zone: str) -> RenderableType:
    """Return facts by subject and predicate, with the time in which each holds."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("fact", "subject", "predicate", "object", "from", "to", "rests on"):
        table.add_column(column, justify="right" if column == "fact" else "left")
    for row in rows:
        to = _moment(row["valid_to"], row["to_precision"], zone) or ("" if row["believed"] else "ended")
        table.add_row(
            str(row["seq"]), sanitize(one_line(row["subject"])), row["predicate"], sanitize(one_line(row["object"])),
            _moment(row["valid_from"], row["from_precision"], zone), to, ", ".join(map(str, row["sources"])),
            style="" if row["believed"] else "dim",
        )  # fmt: skip
    head = heading(name, plural(len(rows), "fact"), as_of)
    return Group(head, Text(""), table) if rows else Group(head, Text("no facts", "dim italic"))


def _moment(at: int | None, precision: str, zone: str) -> str:
    """Return a time as exactly as it is known: 2024, 2024-05, 2024-05-03, or with its time of day."""
    if at is None:
        return ""
    clock = time_text.clock(at, zone)
    return clock[: _PRECISIONS[precision]] if precision in _PRECISIONS else clock


def plans(name: str, as_of: int, rows: Sequence[Mapping[str, Any]], zone: str) -> RenderableType:
    """Return items of plans in the order of their starts."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("plan", "start", "minutes", "what", "where", "status"):
        table.add_column(column, justify="right" if column == "minutes" else "left")
    for row in rows:
        status = f"{row['status']}: {row['reason']}" if row["reason"] else row["status"]
        outdated = " (outdated)" if row["outdated"] else ""
        table.add_row(
            f"{row['plan']}/{row['item']}", time_text.clock(row["start"], zone), str(row["minutes"]),
            sanitize(one_line(row["text"])), sanitize(one_line(row["place"])), sanitize(one_line(status)) + outdated,
        )  # fmt: skip
    head = heading(name, plural(len(rows), "item") + " of plans", as_of)
    return Group(head, Text(""), table) if rows else Group(head, Text("no plans", "dim italic"))


def compared(name: str, generation: int, found: Mapping[str, Any]) -> RenderableType:
    """Return what two generations of derived memories have in common, and what only one of them has."""
    first, second = found["generations"]
    parts: list[RenderableType] = [
        Text.assemble((one_line(name), "bold"), (f" · generation {first} and {second}", "dim"))
    ]
    for kind in ("facts", "insights"):
        both, left, right = (found[kind][key] for key in ("both", "only_first", "only_second"))
        parts += [
            Text(""),
            Text(f"{kind}: {len(both)} in both, {len(left)} only in {first}, {len(right)} only in {second}"),
        ]
        parts += [Text(sanitize(f"  - {one_line(text)}"), "red") for text in left]
        parts += [Text(sanitize(f"  + {one_line(text)}"), "green") for text in right]
    parts += [Text(""), Text(f"`everlog derive {name} --generation {generation} --use` puts it in use.", "dim")]
    return Group(*parts)
