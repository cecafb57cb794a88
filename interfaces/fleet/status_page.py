"""Format the status of a cluster for `everlog cluster status`: totals, nodes and hosts, the busiest first; or JSON.

Used by `cluster_commands`. docs/reference/cli.md promises the keys of the JSON.

Rates are computed from two measurements. Everything here is pure, except that it reads the width of the terminal.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from everlog.actors.hosting.cluster_status import (
    ArchiveStatus,
    ClusterStatus,
    HostRates,
    HostStatus,
    ScalingStatus,
    rates,
    sum_rates,
)
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common import time_text
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output.json_shapes import JsonObject, size
from everlog.interfaces.output.terminal_output import console, one_line

HOSTS_SHOWN = 20
"""Most hosts with a line of their own; the others are only counted."""
PLACE_CHARS = 32
"""Length of the longest name of a host that is shown in full."""
OPTIONAL_COLUMNS = ("pid", "a tick", "unsealed", "commits/s", "node", "passive", "turns")
"""Columns that are left out on a narrow terminal, in this order."""
AGE_SHOWN_S = 5
"""Age in seconds from which figures of the archive are shown with it."""
COLUMN_GAP = 3
"""Cells between two columns."""

RatesByHost = dict[tuple[str, str, int], HostRates]


def shape(before: ClusterStatus, now: ClusterStatus) -> JsonObject:
    """Return the whole status in JSON; a rate that is not known yet is null."""
    each = rates(before, now)
    found: JsonObject = msgspec.to_builtins(now)
    found |= {"running": True, "at": time_text.iso(now.at), **_rates(sum_rates(each))}
    for host, built in zip(now.hosts, found["hosts"], strict=True):
        built |= _rates(each.get(host.key))
    if now.supervisor is not None and now.supervisor.next_due is not None:
        found["supervisor"]["next_due"] = time_text.iso(now.supervisor.next_due)
    if now.supervisor is not None and now.supervisor.scaling is not None and now.supervisor.scaling.last_at is not None:
        found["supervisor"]["scaling"]["last_at"] = time_text.iso(now.supervisor.scaling.last_at)
    return found


def _rates(found: HostRates | None) -> JsonObject:
    if found is None:
        return {"messages_per_s": None, "commits_per_s": None, "commits_per_tick": None}
    return {
        "messages_per_s": round(found.messages, 2),
        "commits_per_s": round(found.commits, 2),
        "commits_per_tick": None if found.tick is None else round(found.tick, 2),
    }


def line(before: ClusterStatus, now: ClusterStatus) -> str:
    """Return the totals on one line, as --follow prints them if stdout is not a terminal."""
    sums = sum_rates(rates(before, now))
    rate = "–" if sums is None else f"{_rate(sums.messages)} messages/s, {_rate(sums.commits)} commits/s"
    silent = f", {plural(now.silent, 'host')} silent" if now.silent else ""
    return f"{time_text.clock(now.at)}  {plural(len(now.hosts), 'host')}, {_agents(now)}, {_queue(now)}, {rate}{silent}"


def page(before: ClusterStatus, now: ClusterStatus, shown: int = HOSTS_SHOWN) -> RenderableType:
    """Return the whole page; at most `shown` hosts have a line."""
    each = rates(before, now)
    parts: list[RenderableType] = [_heading(now), Text(""), _totals(now, sum_rates(each))]
    if now.nodes:
        parts += [Text(""), _nodes(now)]
    if now.hosts:
        ordered = sorted(now.hosts, key=lambda host: _busiest_first(host, each))
        parts += [Text(""), _hosts(ordered[:shown], each)]
        if ordered[shown:]:
            parts.append(Text(_rest(ordered[shown:], each), "dim"))
    else:
        parts += [Text(""), Text("No host runs: the first message to an agent starts one.", "dim")]
    return Group(*parts)


def _heading(now: ClusterStatus) -> Text:
    return Text.assemble(
        ("everlog cluster", "bold"), (f" · {sanitize(now.address)} · {time_text.clock(now.at)}", "dim")
    )


def _totals(now: ClusterStatus, sums: HostRates | None) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row("agents", f"{_agents(now)} in {plural(len(now.hosts), 'host')}")
    done = sum(host.messages for host in now.hosts)
    table.add_row("messages", f"{_text_or_dash(sums, 'messages')}/s, {done:,} since the hosts started")
    tick = "" if sums is None or sums.tick is None else f", {_rate(sums.tick)} in a tick"
    table.add_row("commits", f"{_text_or_dash(sums, 'commits')}/s{tick}")
    table.add_row("queues", _queue(now))
    table.add_row("hosts", Text(_supervised(now)))
    if now.supervisor is not None:
        table.add_row("timers", _timers(now))
        if now.supervisor.scaling is not None:
            table.add_row("shards", Text(_scaling(now.supervisor.scaling, now.at)))
    if now.gateway is not None:
        table.add_row("models", _gateway(now))
    if now.archive is not None:
        table.add_row("archive", _archive(now.archive))
    if now.silent:
        table.add_row(
            "silent", Text(f"{plural(now.silent, 'host')} did not answer in time; not counted here", "yellow")
        )
    return table


def _agents(now: ClusterStatus) -> str:
    active, passive = sum(host.active for host in now.hosts), sum(host.passive for host in now.hosts)
    return f"{plural(active, 'agent')} active, {passive:,} passive"


def _queue(now: ClusterStatus) -> str:
    waiting, turns = sum(host.waiting for host in now.hosts), sum(host.turns for host in now.hosts)
    lag = max((host.lag_us for host in now.hosts), default=0)
    refused = sum(host.refused for host in now.hosts)
    parts = [plural(turns, "turn") + " in progress", plural(waiting, "input") + " waiting"]
    parts += [f"the oldest for {_lag(lag)}"] if lag else []
    parts += [f"{refused:,} rejected"] if refused else []
    return ", ".join(parts)


def _supervised(now: ClusterStatus) -> str:
    found = now.supervisor
    if found is None:
        return "the supervisor did not answer in time"
    parts = [f"{found.living:,} running"]
    named = (("starting", found.starting), ("waiting for room", found.waiting))
    parts += [f"{count:,} {what}" for what, count in named if count]
    if found.recoveries or found.recovering:
        parts.append(f"{found.recoveries:,} recovered, {found.recovering:,} being recovered")
    return ", ".join(parts)


def _timers(now: ClusterStatus) -> str:
    found = now.supervisor
    if found is None or found.next_due is None:
        return f"{found.timers if found else 0:,}"
    seconds = (found.next_due - now.at) // MICROSECONDS
    return f"{found.timers:,}, the next {f'in {time_text.span(seconds)}' if seconds > 0 else 'is due'}"


def _scaling(found: ScalingStatus, now: int) -> str:
    """Return the range of the number of shards, and the last change because of their load."""
    lines = [f"{found.shards:,} now, {found.shards_min:,} to {found.shards_max:,} by load"] if found.shards_max else []
    if found.last_at is not None:
        lines.append(f"{time_text.span((now - found.last_at) // MICROSECONDS)} ago: {sanitize(found.last)}")
    if found.fault:
        lines.append(f"the shards do not follow their load: {sanitize(found.fault)}")
    return "\n".join(lines)


def _gateway(now: ClusterStatus) -> str:
    assert now.gateway is not None
    parts = [
        f"{sanitize(found.endpoint)}: {found.under_way:,} in progress, {found.waiting:,} waiting, "
        f"{plural(found.asked, 'request')}, {sum(found.failures.values()):,} failed, {plural(found.tokens, 'token')}"
        for found in now.gateway.endpoints
    ]
    return "\n".join(parts) or "no requests yet"


def _archive(found: ArchiveStatus) -> str:
    behind = f", {plural(found.behind, 'log')} behind" if found.behind else ""
    counts = f"{plural(found.memories, 'memory', 'memories')}, {plural(found.messages, 'message')}"
    age = (
        f" (measured {time_text.span(int(found.age_s))} ago: the archive is busy)" if found.age_s >= AGE_SHOWN_S else ""
    )
    lines = [f"{counts}{behind}, {_bytes(found.memory_bytes)}{age}"]
    if found.row_cache_bytes_max:
        rows = f"{_bytes(found.row_cache_bytes)} of {_bytes(found.row_cache_bytes_max)}"
        table = f"{_bytes(found.table_cache_bytes)} of {_bytes(found.table_cache_bytes_max)}"
        files = f"{plural(found.files, 'file')}, {plural(found.versions, 'version')}"
        lines += [f"caches: rows {rows}, table {table}", f"on disk: {_bytes(found.disk_bytes)}, {files}"]
    return "\n".join(lines)


def _nodes(now: ClusterStatus) -> Table:
    table = _table(("node", "hosts", "slots", "free", "memory", "of"))
    for node in sorted(now.nodes, key=lambda node: node.node):
        slots = (f"{node.slots_used:,}", f"{node.slots - node.slots_used:,}") if node.slots else ("–", "–")
        memory = (_bytes(node.memory_used_bytes), _bytes(node.memory_bytes))
        name = Text(one_line(node.node, PLACE_CHARS), "bold cyan" if node.lives else "red")
        table.add_row(name if node.lives else name + Text(" (dead)"), f"{node.hosts:,}", *slots, *memory)
    return table


def _hosts(hosts: Sequence[HostStatus], each: RatesByHost) -> Table:
    rows = [_cells(host, each.get(host.key)) for host in hosts]
    columns = _fitting_columns(rows, console().width)
    table = _table(columns, left=2 if "node" in columns else 1)
    for row in rows:
        table.add_row(*(row[column] for column in columns))
    return table


def _cells(host: HostStatus, found: HostRates | None) -> dict[str, str]:
    """Return the cells of a host by column, in the order of the columns."""
    return {
        "host": one_line(host.place, PLACE_CHARS) + (" (moved)" if host.moved else ""),
        "node": one_line(host.node, PLACE_CHARS),
        "pid": str(host.pid),
        "active": f"{host.active:,}",
        "passive": f"{host.passive:,}",
        "turns": f"{host.turns:,}",
        "waiting": f"{host.waiting:,}",
        "lag": _lag(host.lag_us),
        "messages/s": _text_or_dash(found, "messages"),
        "commits/s": _text_or_dash(found, "commits"),
        "a tick": _text_or_dash(found, "tick"),
        "memory": _bytes(host.memory_bytes),
        "unsealed": _bytes(host.unsealed_bytes),
    }


def _fitting_columns(rows: Sequence[dict[str, str]], width: int) -> list[str]:
    """Return the columns that fit the width, leaving out the least important ones first."""
    widths = {column: max(cell_len(text) for text in (column, *(row[column] for row in rows))) for column in rows[0]}
    for column in OPTIONAL_COLUMNS:
        if sum(widths.values()) + COLUMN_GAP * len(widths) <= width:
            break
        del widths[column]
    return list(widths)


def _table(columns: Sequence[str], left: int = 1) -> Table:
    """Return an empty table; its first `left` columns are names, the others numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        style = "bold cyan" if number == 0 else ""
        table.add_column(column, justify="left" if number < left else "right", style=style, no_wrap=True)
    return table


def _busiest_first(host: HostStatus, each: RatesByHost) -> tuple[Any, ...]:
    rank = each.get(host.key, HostRates()).rank
    return (*(-value for value in rank), -host.waiting, -host.turns, -host.active, host.place)


def _rest(hosts: Sequence[HostStatus], each: RatesByHost) -> str:
    """Return a line about the hosts that have no line of their own."""
    busy = sum(host.busy or any(each.get(host.key, HostRates()).rank) for host in hosts)
    return f"and {plural(len(hosts), 'more host')}, {f'{busy:,} of them busy' if busy else 'idle'}"


def _text_or_dash(found: HostRates | None, what: str) -> str:
    value = getattr(found, what) if found is not None else None
    return "–" if value is None else _rate(value)


def _rate(value: float) -> str:
    """Return the rate as text, with a digit after the point only if it is below 10."""
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def _lag(lag_us: int) -> str:
    if not lag_us:
        return "–"
    seconds = lag_us / MICROSECONDS
    return f"{seconds:.1f} s" if seconds < 100 else time_text.span(int(seconds))


def _bytes(count: int) -> str:
    return size(count) if count else "–"
