"""Show a rerun on a terminal: for each turn the recorded side and the rerun, in two columns if the terminal is wide.

Used by `rerun_command`. Text of records is escaped before it is printed: it may hold control characters.
"""

import difflib
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from everlog.actors.rerun.rerun import RerunOutcome
from everlog.actors.rerun.rerun_comparison import (
    BlockDifference,
    CallCosts,
    FunctionCall,
    RerunComparison,
    TurnPair,
    TurnTrace,
)
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common import time_text
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.output import show_pages
from everlog.interfaces.output.terminal_output import RESULT_CHARS, call_text, console, one_line
from everlog.store import typed

SIDE_BY_SIDE_COLUMNS = 90
"""Width of a terminal from which both sides are shown next to each other; below it, one above the other."""

RECORDED, RERUN = "recorded", "rerun"
"""Names of the two sides."""
ANSWERED = {"own": "", "recorded": "recorded result", "ran": "ran", "refused": "refused"}
INPUTS = {
    "user_login": "(login)", "heartbeat": "(heartbeat)", "system_alert": "(alert)", "approval_decided": "(approval)",
}  # fmt: skip
PARTS = {
    "answers": "answers",
    "calls": "function calls",
    "results": "results of functions",
    "memory": "core memory",
    "end": "end of the turn",
}


def show_turn(pair: TurnPair) -> None:
    """Print a turn that has ended."""
    show_pages.show(turn(pair, console()))
    print()


def show_end(comparison: RerunComparison, done: RerunOutcome | None = None) -> None:
    """Print the totals, the first difference and, with `done`, notes about the run."""
    show_pages.show(end(comparison, done))


def turn(pair: TurnPair, out: Console) -> RenderableType:
    """Return the view of a turn: its input, and what followed from it on both sides."""
    differs = ", ".join(PARTS[part] for part in pair.differs)
    title = Text.assemble(
        (f"turn {pair.turn}", "bold"),
        (f"  {time_text.clock(pair.at)}  ", "dim"),
        (f"differs in: {differs}", "yellow") if differs else ("the same", "green"),
    )
    label = INPUTS.get(pair.input, "")
    said = Text.assemble(("> ", "bold green"), (f"{label} " if label else "", "dim"), sanitize(pair.said))
    return Group(Rule(title, align="left", style="dim"), said, _sides(pair, out))


def _sides(pair: TurnPair, out: Console) -> RenderableType:
    then, now = _side(pair.baseline, RECORDED), _side(pair.variant, RERUN)
    if out.width < SIDE_BY_SIDE_COLUMNS:
        return Group(then, now) if pair.differs else Group(then.split("\n")[0], now)
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    table.add_row(then, now)
    return table


def _side(side: TurnTrace | None, name: str) -> Text:
    if side is None:
        return Text.assemble((name, "bold"), ("  no such turn", "dim"))
    lines = [Text.assemble((name, "bold"), (f"  seq {side.seq}  ", "dim"), (_cost_text(side.costs), "dim"))]
    lines += [Text(sanitize(answer), "cyan") for answer in side.answers] or [Text("(no message)", "dim italic")]
    lines += [_call(call) for call in side.calls]
    lines += [line for edit in side.memory for line in _edit(edit)]
    lines += [Text(one_line(side.ended, RESULT_CHARS), "red")] if side.ended else []
    return Text("\n").join(lines)


def _cost_text(costs: CallCosts) -> str:
    money = "" if costs.cost is None else f", {costs.cost:,.4f}"
    return f"{costs.tokens:,} tokens{money}, {costs.latency_us / MICROSECONDS:,.1f} s"


def _call(call: FunctionCall) -> Text:
    style = "green" if call.outcome == "ok" else "red"
    how = ANSWERED.get(call.answered or "", "")
    result = one_line(call.result, RESULT_CHARS) if call.answered != "refused" else ""
    call_notes = [
        word for word in (how, call.outcome if call.outcome != "ok" and how != "refused" else "", result) if word
    ]
    return Text.assemble(
        (call_text(call.name, call.arguments), "magenta"),
        (" → " if call_notes else "", "dim"),
        (", ".join(call_notes), style),
    )


def _edit(edit: BlockDifference) -> list[Text]:
    """Return the removed and the added lines of a memory block."""
    lines = [Text(f"memory {one_line(edit.label)}", "bold")]
    for line in difflib.ndiff(sanitize(edit.before).split("\n"), sanitize(edit.after).split("\n")):
        if line[:1] in "+-" and line[2:]:
            lines.append(Text(line, "green" if line[0] == "+" else "red"))
    return lines


def end(comparison: RerunComparison, done: RerunOutcome | None) -> RenderableType:
    """Return the view after the last turn: the costs of both sides, the first difference, and how to continue."""
    parts: list[RenderableType] = [Rule(Text("in all", "bold"), align="left", style="dim"), _totals(comparison)]
    first = comparison.diverged
    if first is None:
        parts.append(Text("No turn differs.", "green"))
    else:
        which = ", ".join(PARTS[part] for part in first.parts)
        seqs = f"{RECORDED} seq {first.baseline_seq}, " if first.baseline_seq else ""
        where = f"turn {first.turn} ({seqs}{RERUN} seq {first.variant_seq})"
        parts.append(Text(f"The first difference is in {where}: {which}.", "yellow"))
    parts.append(Text(_answer_counts(comparison), "dim"))
    if done is not None:
        parts += _notes(done)
    parts.append(Text(escape_line(f"To continue with the fork: everlog chat {typed(comparison.fork)}"), "dim"))
    return Group(*parts)


def _totals(comparison: RerunComparison) -> Table:
    then, now = comparison.baseline, comparison.variant
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name in ("", RECORDED, RERUN, "difference"):
        table.add_column(name, justify="right" if name else "left", style="" if name else "dim")
    rows: Sequence[tuple[str, float, float, str]] = (
        ("model calls", then.steps, now.steps, "{:,.0f}"),
        ("function calls", then.calls, now.calls, "{:,.0f}"),
        ("tokens", then.tokens, now.tokens, "{:,.0f}"),
        ("model seconds", then.latency_us / MICROSECONDS, now.latency_us / MICROSECONDS, "{:,.1f}"),
    )
    for name, before, after, form in rows:
        table.add_row(
            name,
            form.format(before),
            form.format(after),
            form.replace(":", ":+").format(round(after - before, 1) + 0.0),
        )
    if then.cost is not None and now.cost is not None:
        table.add_row("cost", f"{then.cost:,.4f}", f"{now.cost:,.4f}", f"{now.cost - then.cost:+,.4f}")
    return table


def _answer_counts(comparison: RerunComparison) -> str:
    counts = comparison.answered
    return (
        f"Function calls of the rerun: {counts['own']:,} of memory, {counts['recorded']:,} with a recorded result, "
        f"{counts['ran']:,} run, {counts['refused']:,} refused."
    )


def _notes(done: RerunOutcome) -> list[RenderableType]:
    notes: list[RenderableType] = []
    if done.left_out:
        which = ", ".join(f"{record.type} (seq {record.seq})" for record in done.left_out)
        notes.append(Text(f"Not repeated: {sanitize(which)}.", "yellow"))
    if done.diverged is not None:
        notes.append(Text(sanitize(str(done.diverged)), "bold yellow"))
        for line in done.diverged.difference:
            style = {"-": "red", "+": "green", "@": "dim"}.get(line[:1], "")
            notes.append(Text(sanitize(line), style, overflow="fold"))
    return notes
