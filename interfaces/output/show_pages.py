"""Pages of the reading commands for people: tables, gauges and blocks, made from the shapes that programs get.

Used by the commands of `interfaces/show` and some of `interfaces/manage` without --json.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from everlog.interfaces.common import time_text
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output.json_shapes import JsonObject, size
from everlog.interfaces.output.terminal_output import call_text, console, indented, one_line
from everlog.store import PartitionStats

SHARE_MAX = 11
"""Share of a limit from which a gauge does not write the exact percentage."""
GAUGE_CELLS = 32
MESSAGE_CHARS = 400
"""Longest chat message that is shown whole without --full."""

MEASURED_CELLS = 10_000
"""Width in which every table fits; used to measure tables."""

NO_CONTEXT = "The configuration was erased: the agent has no context window until it gets its next message."

ROLES = {"system": "yellow", "user": "bold green", "assistant": "bold cyan", "tool": "magenta", "archival": "magenta"}


def show(page: RenderableType) -> None:
    """Print a page. If the output is not a terminal, trailing spaces are removed."""
    out = console()
    if out.is_terminal:
        out.print(page)
        return
    with out.capture() as capture:
        out.print(page)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n"))


def gauge(value: int, limit: int, mark: float | None = None) -> Text:
    """Return a bar with its numbers: yellow from half of the limit, red from `mark` (a fraction) or nine tenths
    of it.
    """
    share = value / limit if limit else 0.0
    full = min(GAUGE_CELLS, round(share * GAUGE_CELLS) or int(value > 0))
    style = "red" if share >= (mark or 0.9) else "yellow" if share >= 0.5 else "green"
    bar = Text.assemble(("━" * full, style), ("─" * (GAUGE_CELLS - full), "bright_black"))
    if not console().is_terminal:
        bar = Text("█" * full + "░" * (GAUGE_CELLS - full))
    return bar + Text.assemble(f" {value:,}", (f" of {limit:,}", "dim"), (f"  {_percent(share)}", style))


def _percent(share: float) -> str:
    """Return a share as a percentage; a provider may report more tokens than any window has."""
    return f"{share:.0%}" if share < SHARE_MAX else f"over {SHARE_MAX - 1:.0%}"


def memory(name: str, as_of: int, rows: Sequence[Mapping[str, Any]], now: int) -> RenderableType:
    """Return core memory, block by block."""
    out = console()
    parts: list[RenderableType] = [heading(name, "core memory", as_of)]
    heads = [
        Text.assemble(
            (f"{one_line(row['label'])}  ", "bold cyan"),
            gauge(len(row["value"]), row["limit"]),
            ("  read-only" if row["read_only"] else "", "yellow"),
        )
        for row in rows
    ]
    edits = [Text(f"  seq {row['seq']}, {time_text.relative(row['recorded_at'], now)}", "dim") for row in rows]
    fits = all(head.cell_len + edit.cell_len <= out.width for head, edit in zip(heads, edits, strict=True))
    for row, head, edit in zip(rows, heads, edits, strict=True):
        parts += [
            Text(""),
            *([head + edit] if fits else [head, edit]),
            *([Text(f"  {one_line(row['description'])}", "dim italic")] if row["description"] else []),
            indented(Text(sanitize(row["value"])) if row["value"] else Text("(empty)", "dim italic"), out),
        ]
    if not rows:
        parts.append(Text("no memory blocks", "dim italic"))
    return Group(*parts)


def heading(name: str, what: str, as_of: int) -> Text:
    """Return the first line of a page: the agent, the subject, and the seq."""
    return Text.assemble((one_line(name), "bold"), (f" · {what} · as of seq {as_of}", "dim"))


def pressure(shape: JsonObject) -> RenderableType:
    """Return how full the context window is, and at which point the agent is warned."""
    if not shape["window"]:
        return Group(heading(shape["agent"], "memory pressure", shape["as_of"]), Text(NO_CONTEXT, "dim italic"))
    window, mark = shape["window"], shape["fraction"]
    table = Table.grid(padding=(0, 2))
    cached = f"  {shape['cached']:,} of them cached" if shape["cached"] else ""
    table.add_row("last call", gauge(shape["tokens"], window, mark) + Text(cached, "dim"))
    table.add_row("next call", gauge(shape["estimate"], window, mark) + Text("  estimated", "dim"))
    warned = "yes, since the last summary" if shape["warned"] else f"no; at {mark:.0%}, {int(window * mark):,} tokens"
    table.add_row("warned", warned)
    last = f", the last at seq {shape['summary_seq']}" if shape["summaries"] and shape["summary_seq"] else ""
    table.add_row("summaries", f"{shape['summaries']}{last}")
    return Group(heading(shape["agent"], "memory pressure", shape["as_of"]), Text(""), table)


def context(shape: JsonObject, *, full: bool = False, more: str = "--full") -> RenderableType:
    """Return the chat messages that the model would see; long ones only if `full`. `more`: how to get the rest."""
    parts: list[RenderableType] = [
        heading(shape["agent"], plural(len(shape["messages"]), "message"), shape["as_of"]),
        gauge(shape["tokens"], shape["window"]) if shape["window"] else Text(NO_CONTEXT, "dim italic"),
    ]
    for message in shape["messages"]:
        role = message["role"]
        if role == "tool":
            shown_text = _shortened(sanitize(readable(message["content"])), "" if full else more)
            parts.append(Text(f"  → {shown_text}", "dim"))
            continue
        where = f"seq {message['seq']}" if message["seq"] else "prompt, memory and counts"
        style = ROLES.get(role, "bold")
        parts += [
            Text(""),
            Rule(Text.assemble((role, style), (f" · {where}", "dim")), align="left", style="bright_black"),
        ]
        if message.get("content"):
            parts.append(Text(_shortened(sanitize(readable(message["content"])), "" if full else more)))
        for call in message.get("tool_calls", ()):
            function = call["function"]
            words = (
                call_text(function["name"], function["arguments"], MESSAGE_CHARS) if not full else _whole_call(function)
            )
            parts.append(Text(f"ƒ {sanitize(words)}", "cyan"))
    return Group(*parts)


def _whole_call(function: Mapping[str, str]) -> str:
    return f"{function['name']} {function['arguments']}"


def readable(content: str) -> str:
    """Return a JSON envelope of a prompt as its type, name and time and, below, its text; any other content
    unchanged.
    """
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content
    if not isinstance(value, dict):
        return content
    known = [str(value[key]) for key in ("type", "name", "status") if value.get(key)]
    if value.get("time"):
        known.append(time_text.clock_of_prompt(str(value["time"])))
    words = next((value[key] for key in ("message", "reason") if isinstance(value.get(key), str)), None)
    return "\n".join(part for part in (" · ".join(known), words) if part) or content


def _shortened(text: str, more: str) -> str:
    if not more or len(text) <= MESSAGE_CHARS:
        return text
    return f"{text[:MESSAGE_CHARS].rstrip()} … ({len(text) - MESSAGE_CHARS:,} more characters: {more})"


def stats(name: str, found: PartitionStats) -> RenderableType:
    """Return the contents of one log and their size on disk."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2))
    table.add_column()
    for _ in range(2):
        table.add_column(justify="right")
    table.add_column(style="dim")
    rows = (
        ("sealed", found.sealed, "records in Parquet files, which never change again"),
        ("states", found.states, "derived: the state of each agent"),
        ("frames", found.frames, "closed files that will be sealed"),
        ("open", found.open, "file that new records are appended to"),
        ("other", found.other, "manifests, owner files, leftovers"),
        ("disk", found.all, "everything in the folder"),
    )
    for what, files, shown_text in rows:
        bold = "bold" if files == found.all else ""
        count = plural(files.files, "file") if files.files else ""
        table.add_row(
            Text(what, bold), Text(count, "dim"), Text(size(files.bytes) if files.files else "–", bold), shown_text
        )
    table.add_row(Text("content", "bold"), "", Text(size(found.text_bytes), "bold"), "text and payload of all records")
    agents_ = f"{plural(found.agents, 'agent')}, " if found.agents != 1 else ""
    held = f"{agents_}{plural(found.records, 'record')} in {plural(found.commits, 'commit')}"
    head = Text.assemble((one_line(name), "bold"), (f" · {held}", "dim"))
    return Group(head, Text(""), table, Text(""), Text.assemble("amplification  ", (_ratio(found), "bold cyan"),
                 ("  bytes on disk for each byte of content", "dim")))  # fmt: skip


def stats_of_all(counted: Sequence[tuple[str, PartitionStats]], total: PartitionStats) -> RenderableType:
    """Return the contents of a store's logs and their size on disk: a row for each log, and the sum."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_footer=len(counted) != 1)
    sums = [plural(len(counted), "log"), *_figures(total)]
    table.add_column("log", sums[0], style="bold cyan", overflow="ellipsis", no_wrap=True)
    columns = ("records", "content", "open", "sealed", "states", "disk", "ampl.")
    for what, footer in zip(columns, sums[1:], strict=True):
        table.add_column(what, footer, justify="right", no_wrap=True)
    for name, found in counted:
        table.add_row(one_line(name), *_figures(found))
    return table if counted else Text("No logs yet. Start an agent with `everlog chat sam`.", "dim")


def _figures(found: PartitionStats) -> list[str]:
    growing = found.open.bytes + found.frames.bytes
    held = (found.text_bytes, growing, found.sealed.bytes, found.states.bytes, found.all.bytes)
    return [f"{found.records:,}", *(size(count) if count else "–" for count in held), _ratio(found)]


def _ratio(found: PartitionStats) -> str:
    return "–" if found.amplification is None else f"{found.amplification:.2f}"
