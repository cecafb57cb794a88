"""Tables of many agents for people: one row for each agent.

Used by `everlog agents`, `pressure` and `cost`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from everlog.actors.models.daily_usage import BYTES_PER_TOKEN
from everlog.interfaces.common import time_text
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output.terminal_output import console, one_line

MEASURED_CELLS = 10_000
"""Width in which every table fits; used to measure tables."""
NO_AGENTS = Text("No agents yet. Start one with `everlog chat sam`.", "dim")


def agents(rows: Sequence[Mapping[str, Any]], now: int, *, more: int = 0, otherwise: str = "") -> RenderableType:
    """Return the table of a store's agents. `more`: number of agents that it leaves out; `otherwise`: words in place of
    a table without rows, if the store may have other agents.
    """
    if not rows:
        return Text(otherwise, "dim") if otherwise else NO_AGENTS
    out = console()
    table = _agents(rows, now, forks=any(row["parent"] for row in rows))
    needed = out.measure(table, options=out.options.update(max_width=MEASURED_CELLS)).maximum
    return with_rest(table if needed <= out.width else _agents(rows, now), more)


def pressure(rows: Sequence[Mapping[str, Any]], *, more: int = 0) -> RenderableType:
    """Return how full the context windows are, red for agents at the point where they are warned."""
    if not rows:
        return NO_AGENTS
    table = fleet_table("last call", "window", "used", "warned", "summaries")
    for row in rows:
        used = row["used"]
        style = "red" if used is not None and used >= row["fraction"] else ""
        share = Text("" if used is None else f"{used:.0%}", style)
        window = "" if row["window"] is None else f"{row['window']:,}"
        warned = "yes" if row["warned"] else ""
        table.add_row(one_line(row["agent_id"]), f"{row['tokens']:,}", window, share, warned, f"{row['summaries']:,}")
    return with_rest(table, more)


def cost(
    rows: Sequence[Mapping[str, Any]], total: Mapping[str, Any], currency: str, *, more: int = 0
) -> RenderableType:
    """Return the tokens and costs of each agent, and of all that were selected, those that are left out included."""
    if not rows:
        return NO_AGENTS
    table = fleet_table("calls", "prompt", "cached", "completion", currency)
    for row in rows:
        table.add_row(one_line(row["agent_id"]), *money(row))
    table.add_section()
    table.add_row("all", *money(total))
    return Group(with_rest(table, more), *[Text(line) for line in money_notes(total)])


def money(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of calls, tokens and cost; "?" for calls without a known price."""
    unknown = "?" if row["unpriced"] else f"{0:,.4f}"
    cost = unknown if row["cost"] is None else f"{row['cost']:,.4f}{'+' if row['unpriced'] else ''}"
    keys = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens")
    return [*(f"{row[key]:,}" for key in keys), cost]


def money_notes(total: Mapping[str, Any]) -> list[str]:
    """Return what the sums leave out or estimate, a line each."""
    notes = []
    if total["unpriced"]:
        notes.append("?: no known price, so these calls are in no sum; add a price to models.toml")
    if total["estimated"]:
        notes.append(
            f"{plural(total['estimated'], 'call')} without a token count: estimated, "
            f"a token for {BYTES_PER_TOKEN} bytes, as for budgets"
        )
    return notes


def with_rest(table: Table, more: int) -> RenderableType:
    """Return a table, with a line that says how many agents it leaves out."""
    return Group(table, Text(f"... and {more:,} more; --limit 0 lists all", "dim")) if more else table


def fleet_table(*columns: str) -> Table:
    """Return an empty table: the agent, then columns of numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("agent", style="bold cyan", overflow="ellipsis", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _agents(rows: Sequence[Mapping[str, Any]], now: int, *, forks: bool = False) -> Table:
    """Return the table; with `forks`, a column names the parent of each fork."""
    table = fleet_table("events", "messages")
    table.add_column("last active", style="dim", no_wrap=True)
    groups = any("group" in row for row in rows)
    if groups:
        table.add_column("group")
    if forks:
        table.add_column("", style="dim", no_wrap=True)
    for row in rows:
        active = time_text.relative(row["last_active"], now)
        of = [f"fork of {one_line(row['parent'])} at {row['parent_seq']}" if row["parent"] else ""] if forks else []
        group = [_group(row["group"])] if groups else []
        renamed = f" ({one_line(row['agent_id'])})" if row["name"] != row["agent_id"] else ""
        table.add_row(
            one_line(row["name"]) + renamed, f"{row['events']:,}", f"{row['messages']:,}", active, *group, *of
        )
    return table


def _group(group: Mapping[str, Any]) -> str:
    """Return the rule of a group, with its members and its manager."""
    manager = f" (manager {one_line(group['manager'])})" if group["manager"] else ""
    return f"{group['rule']}: {', '.join(map(one_line, group['members']))}{manager}"
