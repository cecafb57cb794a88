"""`everlog diff`: the differences between two moments of an agent.

Called by `cli.command_run`. docs/reference/cli.md promises the keys of the JSON.
"""

import difflib
import os
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from everlog.actors.agent.local_system import AgentView, LocalSystem
from everlog.actors.gateway.gateway_limits import limits_from
from everlog.actors.prompt.context import is_configured
from everlog.actors.replay.agent_diff import (
    AgentDiff,
    AgentSnapshot,
    BlockSnapshot,
    ChangeCause,
    MessageChange,
    RecordReference,
    ValueChange,
    difference,
)
from everlog.events import BadInput
from everlog.interfaces.common import time_text
from everlog.interfaces.common.as_of import moment_of_option
from everlog.interfaces.common.bootstrap import open_view, system_of
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes, show_pages
from everlog.interfaces.output.terminal_output import one_line
from everlog.interfaces.show import show_commands
from everlog.store import name_of

EARLIER_RECORDS = 256
"""Records before the first moment that are searched for causes and for the beginnings of turns."""
LINES_MAX = 12
"""Messages of each kind that are shown without --full."""
CHARS_MAX = 88
MILLION = 1_000_000


def diff(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog diff` and return its exit code."""
    system = system_of(args, world)
    name = name_of(args.name)
    with open_view(system, name, notify=False) as now:
        head = now.head.seq
    before = _moment(system, name, args.first, world, head)
    after = _moment(system, name, args.last, world, head)
    found = compare(system, name, before, after)
    if args.json:
        print(json_shapes.line(shape(found, name)))
    else:
        show_pages.show(page(found, name, full=args.full))
    return 0


def _moment(system: LocalSystem, name: str, given: str | None, world: CommandEnvironment, head: int) -> AgentSnapshot:
    try:
        moment = moment_of_option(given, world)
    except BadInput as error:
        raise BadInput(f"{error} {name!r} has records 1 to {head}, the head.") from error
    with open_view(system, name, notify=False, as_of=moment) as view:
        return snapshot_of(view)


def snapshot_of(view: AgentView) -> AgentSnapshot:
    """Return the state of the agent that the projections have at the view's moment."""
    configured = is_configured(view.rows("context_window"))
    context = show_commands.context_at(view) if configured else None
    pressure = show_commands.pressure_of(view, context)
    recall, archival = view.counts()
    return AgentSnapshot(
        seq=view.seq,
        time=next(view.reader.read(view.agent_id, view.seq, view.seq)).recorded_at,
        context=context,
        blocks={
            row["label"]: BlockSnapshot(row["value"], row["limit"], row["description"], row["read_only"])
            for row in view.rows("core_memory")
        },
        recall=recall,
        archival=archival,
        tokens=pressure["tokens"],
        estimate=pressure["estimate"],
        window=pressure["window"],
    )


def compare(system: LocalSystem, name: str, before: AgentSnapshot, after: AgentSnapshot) -> AgentDiff:
    """Return the differences between two moments of an agent."""
    low, high = sorted((before.seq, after.seq))
    reader = system.store.reader(name)
    earlier = list(reader.read(name, max(1, low - EARLIER_RECORDS), low))
    return difference(before, after, list(reader.read(name, low + 1, high)), earlier)


def shape(found: AgentDiff, name: str) -> json_shapes.JsonObject:
    """Return the differences in the shape that docs/reference/cli.md promises."""
    sides = {
        key: {"seq": side.seq, "time": time_text.iso(side.time)}
        for key, side in (("before", found.before), ("after", found.after))
    }
    numbers = {
        key: {"before": getattr(found.before, key), "after": getattr(found.after, key)}
        for key in ("recall", "archival", "tokens", "estimate", "window")
    }
    return {
        "agent": name,
        **sides,
        "same": found.is_nothing,
        "events": found.events,
        "turns": found.turns,
        "memory": [_change(change) for change in found.memory],
        "configuration": [_change(change) for change in found.settings],
        "functions": {"added": list(found.functions_in), "removed": list(found.functions_out)},
        "context": {
            "in": [_message(shown) for shown in found.shown_in],
            "out": [_message(shown) for shown in found.shown_out],
            "reworded": [{**_message(shown), "was": shown.was} for shown in found.reworded],
        },
        **numbers,
        "spent": {**msgspec.to_builtins(found.spent), "money": money(found)},
    }


def _change(change: ValueChange) -> json_shapes.JsonObject:
    because = [_cause_json(one) for one in change.because]
    return {"name": change.name, "before": change.before, "after": change.after, "because": because}


def _message(shown: MessageChange) -> json_shapes.JsonObject:
    because = None if shown.because is None else _cause_json(shown.because)
    return {"seq": shown.seq, "role": shown.role, "text": shown.text, "because": because}


def _cause_json(one: ChangeCause) -> json_shapes.JsonObject:
    return {**msgspec.to_builtins(one), "time": time_text.iso(one.time)}


def money(found: AgentDiff) -> float | None:
    """Return the cost of the calls at EVERLOG_GATEWAY_PRICE_IN and _OUT (per million tokens); None if neither is
    set.
    """
    prices = limits_from(os.environ)
    if not (prices.price_in or prices.price_out):
        return None
    return (found.spent.prompt * prices.price_in + found.spent.completion * prices.price_out) / MILLION


def page(found: AgentDiff, name: str, *, full: bool = False) -> RenderableType:
    """Return the differences for people: by block, in colour, each change with its cause."""
    parts: list[RenderableType] = [_heading(found, name)]
    if found.is_nothing:
        parts.append(Text("Nothing is different.", "dim italic"))
        return Group(*parts)
    for style, changes in (("bold cyan", found.memory), ("bold yellow", found.settings)):
        for change in changes:
            parts += [Text(""), Text(one_line(change.name), style), *_value(change), *_reasons(change, full=full)]
    for sign, style, names in (("+", "green", found.functions_in), ("-", "red", found.functions_out)):
        if names:
            parts += [Text(""), Text(f"{sign} functions: {', '.join(map(one_line, names))}", style)]
    parts += _messages("left the context", "-", "red", found.shown_out, full=full)
    parts += _messages("entered the context", "+", "green", found.shown_in, full=full)
    parts += _messages("changed", "~", "yellow", found.reworded, full=full)
    return Group(*parts, Text(""), _numbers(found))


def _heading(found: AgentDiff, name: str) -> Text:
    sides = [f"seq {side.seq} ({time_text.clock(side.time)})" for side in (found.before, found.after)]
    back = ", backwards: the changes in between are reversed" if found.before.seq > found.after.seq else ""
    counted = f"{plural(found.events, 'event')} in {plural(found.turns, 'turn')}{back}"
    return Text.assemble((one_line(name), "bold"), (f" · from {sides[0]} to {sides[1]} · {counted}", "dim"))


def _value(change: ValueChange) -> Iterator[Text]:
    """Yield the lines of a value before and after a change; words that differ are in bold."""
    before, after = (
        None if side is None else sanitize(str(side)).split("\n") for side in (change.before, change.after)
    )
    if before is None or after is None:
        lines, sign, style = (after, "+", "green") if before is None else (before, "-", "red")
        yield from (Text(f"  {sign} {line}", style) for line in lines or ())
        return
    for tag, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (Text(f"    {line}", "dim") for line in before[i:j])
        else:
            gone, come = _words("\n".join(before[i:j]), "\n".join(after[k:m]))
            yield from _signed("-", "red", gone if j > i else [])
            yield from _signed("+", "green", come if m > k else [])


DiffWords = list[tuple[str, bool]]
"""Parts of a text, each with True if the other text does not have it."""


def _words(before: str, after: str) -> tuple[DiffWords, DiffWords]:
    """Split two texts into words, and mark the words that only one of them has."""
    left, right = (re.findall(r"\s+|\w+|[^\w\s]", side) for side in (before, after))
    gone: DiffWords = []
    come: DiffWords = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        gone.append(("".join(left[i:j]), tag != "equal"))
        come.append(("".join(right[k:m]), tag != "equal"))
    return gone, come


def _signed(sign: str, style: str, words: DiffWords) -> Iterator[Text]:
    """Yield the lines of one side of a change."""
    if not words:
        return
    line = Text(f"  {sign} ", style)
    for text, other in words:
        for number, piece in enumerate(text.split("\n")):
            if number:
                yield line
                line = Text(f"  {sign} ", style)
            line.append(piece, f"bold underline {style}" if other else style)
    yield line


def _reasons(change: ValueChange, *, full: bool) -> Iterator[RenderableType]:
    """Yield the last cause of a change and the number of earlier ones; with `full`, every cause."""
    for one in change.because if full else change.because[-1:]:
        yield _indented_text(_cause_text(one))
    if not full and len(change.because) > 1:
        count = plural(len(change.because) - 1, "earlier change")
        yield _indented_text(f"and {count}, from seq {change.because[0].seq}; --full shows all")


def _indented_text(text: str) -> RenderableType:
    return Padding(Text(text, "dim"), (0, 0, 0, 4))


def _cause_text(one: ChangeCause) -> str:
    """Return the cause of a change as text: seq, type, time, and the records that led to it."""
    turn = f" in turn {one.turn}" if one.turn else ""
    why = [_name(named) for named in (one.cause, one.input) if named is not None]
    wording = f", caused by {', '.join(why)}" if why else ""
    return f"seq {one.seq} {one_line(one.type)}{turn}, {time_text.clock(one.time)}{wording}"


def _name(named: RecordReference) -> str:
    said = f' "{one_line(named.text, 48)}"' if named.text and named.type != "model_reply" else ""
    return f"{one_line(named.type)} seq {named.seq}{said}"


def _messages(
    what: str, sign: str, style: str, shown: Sequence[MessageChange], *, full: bool
) -> Iterator[RenderableType]:
    """Yield the messages of one kind. A cause other than their own record follows below the messages that share it."""
    if not shown:
        return
    yield Text("")
    yield Text(f"{plural(len(shown), 'message')} {what}", f"bold {style}")
    some = shown if full else shown[:LINES_MAX]
    for because, each in groupby(some, _foreign_cause):
        for one in each:
            yield _line(one, sign, style, full=full)
        if because is not None:
            yield _indented_text(_cause_text(because))
    if len(some) < len(shown):
        yield Text(f"    and {plural(len(shown) - len(some), 'more message')}; --full shows all", "dim")


def _foreign_cause(one: MessageChange) -> ChangeCause | None:
    """Return the cause that added, removed or changed a message, unless it is the message's own record."""
    return None if one.because is None or one.because.seq == one.seq else one.because


def said_text(content: str) -> str:
    """Return the text inside a JSON envelope of a prompt; any other content unchanged."""
    wording = show_pages.readable(content)
    return content if wording == content else wording.split("\n", 1)[-1]


def _line(one: MessageChange, sign: str, style: str, *, full: bool) -> Text:
    said, was = (sanitize(said_text(text)) for text in (one.text, one.was or ""))
    if not full:
        said, was = one_line(said, CHARS_MAX), one_line(was, CHARS_MAX)
    own = one.because if one.because is not None and one.because.seq == one.seq else None
    place = f"seq {one.seq}" if own is None or own.cause is None else f"seq {one.seq} ← {own.cause.seq}"
    turn = f"turn {own.turn}" if own is not None and own.turn else ""
    line = Text.assemble((f"  {sign} {place:<16} {turn:<9} {one.role:<10} ", style), said)
    if one.was is not None:
        line.append(f"\n    before: {was}", "dim")
    if not full:
        line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _numbers(found: AgentDiff) -> Table:
    """Return a table of the counts on both sides."""
    table = Table.grid(padding=(0, 2))
    for name, key in (("recall memory", "recall"), ("archival memory", "archival"), ("last call", "tokens"),
                      ("next call", "estimate"), ("context window", "window")):  # fmt: skip
        table.add_row(name, *_sides(getattr(found.before, key), getattr(found.after, key), key))
    spent = found.spent
    cost = money(found)
    priced = f", {cost:,.4f} at the configured prices" if cost is not None else ""
    calls = f"{plural(spent.calls, 'model call')}, {spent.prompt:,} + {spent.completion:,} tokens{priced}"
    table.add_row("used in between", calls)
    return table


def _sides(before: int, after: int, key: str) -> tuple[Text, Text]:
    unit = " tokens" if key in ("tokens", "estimate", "window") else ""
    if before == after:
        return Text(f"{after:,}{unit}", "dim"), Text("")
    more: Any = after - before
    return Text(f"{before:,} → {after:,}{unit}"), Text(f"{more:+,}", "green" if more > 0 else "red")
