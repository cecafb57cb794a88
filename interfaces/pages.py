"""What the reading commands show to people: tables, gauges and blocks, made of the shapes that programs get."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from . import times
from .complaints import plain
from .shapes import Shape
from .terminal import call_text, console, indented, one_line

GAUGE_CELLS = 32
MESSAGE_CHARS = 400
"""Longest chat message shown whole without --full."""

ROLES = {"system": "yellow", "user": "bold green", "assistant": "bold cyan", "tool": "magenta", "archival": "magenta"}


def show(page: RenderableType) -> None:
    """Print a page. Where the output is no terminal, no line ends in spaces."""
    out = console()
    if out.is_terminal:
        out.print(page)
        return
    with out.capture() as capture:
        out.print(page)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n"))


def gauge(value: int, limit: int, mark: float | None = None) -> Text:
    """How full something is: green, yellow from half of it, red from `mark` (a fraction) or nine tenths."""
    share = value / limit if limit else 0.0
    full = min(GAUGE_CELLS, round(share * GAUGE_CELLS) or int(value > 0))
    style = "red" if share >= (mark or 0.9) else "yellow" if share >= 0.5 else "green"
    bar = Text.assemble(("━" * full, style), ("─" * (GAUGE_CELLS - full), "bright_black"))
    if not console().is_terminal:
        bar = Text("█" * full + "░" * (GAUGE_CELLS - full))
    return bar + Text.assemble(f" {value:,}", (f" of {limit:,}", "dim"), (f"  {share:.0%}", style))


def agents(rows: Sequence[Mapping[str, Any]], now: int) -> RenderableType:
    """The agents of a store."""
    if not rows:
        return Text("No agents yet. `everlog chat sam` begins one.", "dim")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("agent", style="bold cyan", overflow="ellipsis", no_wrap=True)
    table.add_column("events", justify="right")
    table.add_column("messages", justify="right")
    table.add_column("last active", style="dim", no_wrap=True)
    for row in rows:
        active = times.relative(row["last_active"], now)
        table.add_row(one_line(row["agent_id"]), f"{row['events']:,}", f"{row['messages']:,}", active)
    return table


def memory(name: str, as_of: int, rows: Sequence[Mapping[str, Any]], now: int) -> RenderableType:
    """Core memory, block by block."""
    out = console()
    parts: list[RenderableType] = [heading(name, "core memory", as_of)]
    for row in rows:
        edited = f"seq {row['seq']}, {times.relative(row['recorded_at'], now)}"
        parts += [
            Text(""),
            Text.assemble(
                (f"{one_line(row['label'])}  ", "bold cyan"),
                gauge(len(row["value"]), row["limit"]),
                "  ",
                (edited, "dim"),
            ),
            indented(Text(plain(row["value"])) if row["value"] else Text("(empty)", "dim italic"), out),
        ]
    if not rows:
        parts.append(Text("no memory blocks", "dim italic"))
    return Group(*parts)


def heading(name: str, what: str, as_of: int) -> Text:
    """The line that says what a page is about."""
    return Text.assemble((one_line(name), "bold"), (f" · {what} · as of seq {as_of}", "dim"))


def pressure(shape: Shape) -> RenderableType:
    """How full the window is, and what will happen about it."""
    window, mark = shape["window"], shape["fraction"]
    table = Table.grid(padding=(0, 2))
    table.add_row("last call", gauge(shape["tokens"], window, mark))
    table.add_row("next call", gauge(shape["estimate"], window, mark) + Text("  estimated", "dim"))
    warned = "yes, since the last summary" if shape["warned"] else f"no; at {mark:.0%}, {int(window * mark):,} tokens"
    table.add_row("warned", warned)
    last = f", the last at seq {shape['summary_seq']}" if shape["summaries"] and shape["summary_seq"] else ""
    table.add_row("summaries", f"{shape['summaries']}{last}")
    return Group(heading(shape["agent"], "memory pressure", shape["as_of"]), Text(""), table)


def context(shape: Shape, *, full: bool = False) -> RenderableType:
    """What the model would see, message by message."""
    parts: list[RenderableType] = [
        heading(shape["agent"], f"{len(shape['messages'])} messages", shape["as_of"]),
        gauge(shape["tokens"], shape["window"]),
    ]
    for message in shape["messages"]:
        role = message["role"]
        if role == "tool":
            told = _shortened(plain(_readable(message["content"])), full=full)
            parts.append(Text(f"  → {told}", "dim"))
            continue
        where = f"seq {message['seq']}" if message["seq"] else "prompt, memory and counts"
        style = ROLES.get(role, "bold")
        parts += [
            Text(""),
            Rule(Text.assemble((role, style), (f" · {where}", "dim")), align="left", style="bright_black"),
        ]
        if message.get("content"):
            parts.append(Text(_shortened(plain(_readable(message["content"])), full=full)))
        for call in message.get("tool_calls", ()):
            function = call["function"]
            words = (
                call_text(function["name"], function["arguments"], MESSAGE_CHARS) if not full else _whole_call(function)
            )
            parts.append(Text(f"ƒ {plain(words)}", "cyan"))
    return Group(*parts)


def _whole_call(function: Mapping[str, str]) -> str:
    return f"{function['name']} {function['arguments']}"


def _readable(content: str) -> str:
    """An envelope of JSON as "time · words"; anything else as it is."""
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content
    if not isinstance(value, dict):
        return content
    known = [str(value[key]) for key in ("type", "name", "status", "time") if value.get(key)]
    words = next((value[key] for key in ("message", "reason") if isinstance(value.get(key), str)), None)
    return "\n".join(part for part in (" · ".join(known), words) if part) or content


def _shortened(text: str, *, full: bool) -> str:
    if full or len(text) <= MESSAGE_CHARS:
        return text
    return f"{text[:MESSAGE_CHARS].rstrip()} … ({len(text) - MESSAGE_CHARS:,} more characters: --full)"


def search(query: str, found: Shape, now: int, *, more: bool = True) -> RenderableType:
    """One page of results, the best first."""
    if not found["results"]:
        what = "no such page" if found["total"] else "nothing found"
        return Text(f"{what} for “{plain(query)}”", "dim italic")
    words = [word for word in query.split() if len(word) > 2]
    out = console()
    parts: list[RenderableType] = []
    for result in found["results"]:
        at = times.microseconds(result["time"])
        who = result["name"] or result["role"]
        ref = f" · ref {one_line(result['ref'], 40)}" if result["ref"] else ""
        text = Text(plain(result["text"]))
        text.highlight_words(words, "bold yellow", case_sensitive=False)
        parts += [
            Text.assemble(
                (one_line(who), ROLES.get(result["role"], "bold")),
                (f" · {times.clock(at)} · {times.relative(at, now)} · seq {result['seq']}{ref}", "dim"),
            ),
            indented(text, out),
            Text(""),
        ]
    last = found["pages"] - 1
    where = f"{found['total']:,} found" + (f" · page {found['page']} of 0 to {last}" if last else "")
    hint = f" · --page {found['page'] + 1} has more" if more and found["page"] < last else ""
    parts.append(Text(where + hint, "dim"))
    return Group(*parts)
