"""What the reading commands show to people: tables, gauges and blocks, made of the shapes that programs get."""

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
from everlog.interfaces.output.json_shapes import JsonObject, size
from everlog.interfaces.output.terminal_output import call_text, console, indented, one_line
from everlog.store import PartitionStats

GAUGE_CELLS = 32
MESSAGE_CHARS = 400
"""Longest chat message shown whole without --full."""

MEASURED_CELLS = 10_000
"""A width in which every table fits, to measure it."""

NO_CONTEXT = "The configuration was erased: there is no window to fill until the agent is sent something again."

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
    out = console()
    table = _agents(rows, now, forks=any(row["parent"] for row in rows))
    needed = out.measure(table, options=out.options.update(max_width=MEASURED_CELLS)).maximum
    return table if needed <= out.width else _agents(rows, now)


def _agents(rows: Sequence[Mapping[str, Any]], now: int, *, forks: bool = False) -> Table:
    """The table, with a column that says whose `forks` they are."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("agent", style="bold cyan", overflow="ellipsis", no_wrap=True)
    table.add_column("events", justify="right")
    table.add_column("messages", justify="right")
    table.add_column("last active", style="dim", no_wrap=True)
    if forks:
        table.add_column("", style="dim", no_wrap=True)
    for row in rows:
        active = time_text.relative(row["last_active"], now)
        of = [f"fork of {one_line(row['parent'])} at {row['parent_seq']}" if row["parent"] else ""] if forks else []
        table.add_row(one_line(row["agent_id"]), f"{row['events']:,}", f"{row['messages']:,}", active, *of)
    return table


def memory(name: str, as_of: int, rows: Sequence[Mapping[str, Any]], now: int) -> RenderableType:
    """Core memory, block by block."""
    out = console()
    parts: list[RenderableType] = [heading(name, "core memory", as_of)]
    for row in rows:
        edited = f"seq {row['seq']}, {time_text.relative(row['recorded_at'], now)}"
        parts += [
            Text(""),
            Text.assemble(
                (f"{one_line(row['label'])}  ", "bold cyan"),
                gauge(len(row["value"]), row["limit"]),
                "  ",
                (edited, "dim"),
                ("  read-only" if row["read_only"] else "", "yellow"),
            ),
            *([Text(f"  {one_line(row['description'])}", "dim italic")] if row["description"] else []),
            indented(Text(sanitize(row["value"])) if row["value"] else Text("(empty)", "dim italic"), out),
        ]
    if not rows:
        parts.append(Text("no memory blocks", "dim italic"))
    return Group(*parts)


def heading(name: str, what: str, as_of: int) -> Text:
    """The line that says what a page is about."""
    return Text.assemble((one_line(name), "bold"), (f" · {what} · as of seq {as_of}", "dim"))


def pressure(shape: JsonObject) -> RenderableType:
    """How full the window is, and what will happen about it."""
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


def context(shape: JsonObject, *, full: bool = False) -> RenderableType:
    """What the model would see, message by message."""
    parts: list[RenderableType] = [
        heading(shape["agent"], f"{len(shape['messages'])} messages", shape["as_of"]),
        gauge(shape["tokens"], shape["window"]) if shape["window"] else Text(NO_CONTEXT, "dim italic"),
    ]
    for message in shape["messages"]:
        role = message["role"]
        if role == "tool":
            told = _shortened(sanitize(readable(message["content"])), full=full)
            parts.append(Text(f"  → {told}", "dim"))
            continue
        where = f"seq {message['seq']}" if message["seq"] else "prompt, memory and counts"
        style = ROLES.get(role, "bold")
        parts += [
            Text(""),
            Rule(Text.assemble((role, style), (f" · {where}", "dim")), align="left", style="bright_black"),
        ]
        if message.get("content"):
            parts.append(Text(_shortened(sanitize(readable(message["content"])), full=full)))
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


def stats(name: str, found: PartitionStats) -> RenderableType:
    """What one log holds, and what that costs."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2))
    table.add_column()
    for _ in range(2):
        table.add_column(justify="right")
    table.add_column(style="dim")
    rows = (
        ("sealed", found.sealed, "Parquet: the records in their lasting form"),
        ("states", found.states, "derived: where each agent stands"),
        ("frames", found.frames, "closed, to be sealed"),
        ("open", found.open, "where the next records go"),
        ("other", found.other, "manifests, owners, leftovers"),
        ("disk", found.all, "everything in the folder"),
    )
    for what, files, told in rows:
        bold = "bold" if files == found.all else ""
        count = f"{files.files:,} file{'s' * (files.files != 1)}" if files.files else ""
        table.add_row(Text(what, bold), Text(count, "dim"), Text(size(files.bytes) if files.files else "–", bold), told)
    table.add_row(Text("words", "bold"), "", Text(size(found.text_bytes), "bold"), "text and payload of all records")
    agents_ = f"{found.agents:,} agents, " if found.agents != 1 else ""
    held = f"{agents_}{found.records:,} records in {found.commits:,} commits"
    head = Text.assemble((one_line(name), "bold"), (f" · {held}", "dim"))
    return Group(head, Text(""), table, Text(""), Text.assemble("amplification  ", (_ratio(found), "bold cyan"),
                 ("  bytes on the disk for each byte of words", "dim")))  # fmt: skip


def stats_of_all(counted: Sequence[tuple[str, PartitionStats]], total: PartitionStats) -> RenderableType:
    """What the logs of a store hold, and what that costs: a line for each, and the sum."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_footer=len(counted) != 1)
    sums = [f"{len(counted):,} logs", *_figures(total)]
    table.add_column("log", sums[0], style="bold cyan", overflow="ellipsis", no_wrap=True)
    for what, footer in zip(("records", "words", "open", "sealed", "states", "disk", "ampl."), sums[1:], strict=True):
        table.add_column(what, footer, justify="right", no_wrap=True)
    for name, found in counted:
        table.add_row(one_line(name), *_figures(found))
    return table if counted else Text("No logs yet. `everlog chat sam` begins one.", "dim")


def _figures(found: PartitionStats) -> list[str]:
    growing = found.open.bytes + found.frames.bytes
    held = (found.text_bytes, growing, found.sealed.bytes, found.states.bytes, found.all.bytes)
    return [f"{found.records:,}", *(size(count) if count else "–" for count in held), _ratio(found)]


def _ratio(found: PartitionStats) -> str:
    return "–" if found.amplification is None else f"{found.amplification:.2f}"


def search(query: str, found: JsonObject, now: int, *, more: bool = True, scores: bool = False) -> RenderableType:
    """One page of results, the best first."""
    if not found["results"]:
        what = "no such page" if found["total"] else "nothing found"
        return Text(f"{what} for “{sanitize(query)}”" if query else what, "dim italic")
    last = found["pages"] - 1
    shown = f"Showing {len(found['results'])} of {found['total']:,} results (page {found['page']}/{last})"
    parts: list[RenderableType] = [Text(shown, "dim"), Text("")]
    words = [word for word in query.split() if len(word) > 2]
    for result in found["results"]:
        parts += [one(result, now, words, score=scores), Text("")]
    if more and found["page"] < last:
        parts.append(Text(f"--page {found['page'] + 1} has more", "dim"))
    return Group(*parts)


def one(result: JsonObject, now: int, words: Sequence[str] = (), *, score: bool = False) -> RenderableType:
    """A result of a search, with what is known of it; `words` are made to stand out."""
    at = time_text.microseconds(result["time"])
    known = [
        time_text.clock(at),
        time_text.relative(at, now),
        f"seq {result['seq']}",
        f"ref {one_line(result['ref'], 40)}" if result["ref"] else "",
        f"tags {one_line(', '.join(result['tags']), 60)}" if result["tags"] else "",
        f"source {one_line(result['source'], 40)}" if result["source"] else "",
        f"document {one_line(result['document'], 60)}" if result["document"] else "",
        f"part {result['part']} of {result['parts']}" if result["parts"] > 1 else "",
        f"score {result['score']:.2f}" if score else "",
    ]
    text = Text(sanitize(result["text"]))
    text.highlight_words(words, "bold yellow", case_sensitive=False)
    return Group(
        Text.assemble(
            (one_line(result["name"] or result["role"]), ROLES.get(result["role"], "bold")),
            (f" · {' · '.join(part for part in known if part)}", "dim"),
        ),
        indented(text, console()),
    )
