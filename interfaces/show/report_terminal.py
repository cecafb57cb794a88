"""Fleet report in the terminal: each question with its answer and its bars.

Used by `report_command`; `report_html` formats amounts with it.
"""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from everlog.actors.reports.fleet_figures import Chart, ChartPoint, FleetFigures
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output.terminal_output import one_line

BAR_CELLS = 32
LABEL_CHARS = 32
LEVELS = "▁▂▃▄▅▆▇█"


def page(found: FleetFigures, times: str = "") -> RenderableType:
    """Return the whole report. `times`: the limits of the times that it is about; empty for none."""
    parts: list[RenderableType] = [_first(found), *([Text(times, "dim")] if times else [])]
    for chart in found.charts:
        parts += [Text(""), Text(chart.title, "bold"), Text(escape_line(chart.answer))]
        if chart.points:
            parts.append(_over_time(chart, found.by) if chart.form == "time" else _bars(chart))
    return Group(*parts)


def _first(found: FleetFigures) -> Text:
    agents, messages = plural(found.agents, "agent"), plural(found.messages, "message")
    deleted = f" and {found.deleted:,} deleted" if found.deleted else ""
    waiting = f", {plural(found.turns_open, 'open turn')}" if found.turns_open else ""
    return Text(f"{agents}{deleted}, {messages}, {plural(found.calls, 'model call')}{waiting}", "dim")


def amount(value: float, unit: str) -> str:
    """Return a value for people, with as many digits as its unit needs."""
    if unit == "money":
        return f"{value:,.2f}"
    if unit.startswith("%"):
        return f"{value:.1f}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.3g}"


def _bars(chart: Chart) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(no_wrap=True, style="dim", overflow="ellipsis")
    most = max(point.value for point in chart.points)
    for point in chart.points:
        # A column of zeros says nothing; the notes beside it do.
        value = _counted(point.value, chart.unit) if most > 0 else ""
        label = Text(one_line(point.label, LABEL_CHARS))
        grid.add_row(label, Text(bar(point.value, most), "green"), value, Text(escape_line(point.note)))
    return grid


def _counted(value: float, unit: str) -> str:
    """Return an amount with the first word of its unit, in the singular for 1."""
    word = unit.partition(" ")[0]
    return f"{amount(value, unit)} {word[:-1] if value == 1 and word.endswith('s') and len(word) > 2 else word}"


def bar(value: float, most: float) -> str:
    """Return a bar of at most BAR_CELLS cells; a value above 0 has at least one."""
    cells = round(BAR_CELLS * value / most) if most > 0 and value > 0 else 0
    return "█" * max(cells, int(value > 0))


def _over_time(chart: Chart, by: str) -> RenderableType:
    points = chart.points
    ends = Text(
        f"{points[0].label} to {points[-1].label}, per {by}; highest {_counted(_most(points), chart.unit)}", "dim"
    )
    return Group(Text(sparkline(points), "green"), ends)


def _most(points: Sequence[ChartPoint]) -> float:
    return max(point.value for point in points)


def sparkline(points: Sequence[ChartPoint]) -> str:
    """Return one character for each value; a 0 is a dot."""
    most = _most(points)
    return "".join(
        LEVELS[min(len(LEVELS) - 1, int(point.value / most * len(LEVELS)))] if point.value > 0 else "·"
        for point in points
    )
