"""Fleet report as one HTML page: no script, no requests, charts as SVG, for light and dark screens.

Used by `report_command`. Text from outside must be escaped by `text` before it enters the page.
"""

import html
import math
from collections.abc import Sequence

from everlog.actors.reports.fleet_figures import Chart, ChartPoint, FleetFigures
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.show.report_terminal import amount

WIDTH, LEFT, RIGHT = 720, 230, 90
ROW = 28
TALL, BELOW, MARGIN = 200, 44, 64
ABOVE = 30
LABEL_CHARS = 30
CHAR_WIDE, BETWEEN = 6.6, 26
"""Width of a character and least space between two labels of an axis, in units of the SVG."""

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1c2330; --dim: #5b6576; --line: #d8dde6; --bar: #2f6fb5; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181f; --ink: #e6eaf1; --dim: #9aa5b6; --line: #333c4a; --bar: #6ea8e6; }
}
body { background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 760px; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 0; }
p { margin: .2rem 0 .6rem; }
.dim { color: var(--dim); }
svg { display: block; height: auto; max-width: 100%; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .dim { fill: var(--dim); }
svg rect { fill: var(--bar); }
svg line { stroke: var(--line); }
"""


def text(words: str) -> str:
    """Return `words` for the page, with markup and control characters escaped."""
    return html.escape(sanitize(words))


def page(found: FleetFigures, *, of: str, records: int, times: str = "") -> str:
    """Return the whole page. `of` is the time of the figures, `times` the limits of the times that they are about."""
    agents, messages = plural(found.agents, "agent"), plural(found.messages, "message")
    head = f"{agents}, {messages}, {plural(found.calls, 'model call')}; {plural(records, 'record')}, as of {of}"
    head += f"; {times}" if times else ""
    charts = "\n".join(_section(chart) for chart in found.charts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>everlog report</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Fleet report</h1>
<p class="dim">{text(head)}</p>
{charts}
</body>
</html>
"""


def _section(chart: Chart) -> str:
    drawn = ""
    if chart.points and chart.form == "time":
        drawn = _over_time(chart)
    elif any(point.value > 0 for point in chart.points):
        drawn = _bars(chart)
    return f"<section>\n<h2>{text(chart.title)}</h2>\n<p>{text(chart.answer)}</p>\n{drawn}</section>"


def _svg(chart: Chart, height: int, parts: Sequence[str]) -> str:
    label = text(f"{chart.title} {chart.answer}")
    inside = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{label}">\n{inside}\n</svg>\n'


def _text(x: float, y: float, words: str, *, anchor: str = "start", dim: bool = False) -> str:
    kind = ' class="dim"' if dim else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{text(words)}</text>'


def _rect(x: float, y: float, width: float, height: float, title: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f"<rect {place}><title>{text(title)}</title></rect>"


def _title(point: ChartPoint, unit: str) -> str:
    note = f" ({point.note})" if point.note else ""
    return f"{point.label}: {amount(point.value, unit)} {unit}{note}"


def _short(label: str) -> str:
    return label if len(label) <= LABEL_CHARS else label[: LABEL_CHARS - 1] + "…"


def nice(most: float) -> float:
    """Return a round number that is at least `most`, for the end of an axis."""
    if most <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= most)


def _bars(chart: Chart) -> str:
    """Return horizontal bars, each with its label and value, above an axis with its unit."""
    end = nice(max(point.value for point in chart.points))
    wide = WIDTH - LEFT - RIGHT
    floor = len(chart.points) * ROW + 6
    parts: list[str] = []
    for part in (0.0, 0.5, 1.0):
        x = LEFT + wide * part
        parts.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{floor}"/>')
        parts.append(_text(x, floor + 16, amount(end * part, chart.unit), anchor="middle", dim=True))
    for number, point in enumerate(chart.points):
        y = number * ROW + 4
        length = wide * point.value / end
        parts.append(_text(LEFT - 8, y + 15, _short(point.label), anchor="end"))
        parts.append(_rect(LEFT, y, max(length, 1 if point.value > 0 else 0), ROW - 8, _title(point, chart.unit)))
        parts.append(_text(LEFT + length + 6, y + 15, amount(point.value, chart.unit)))
    parts.append(_text(LEFT + wide / 2, floor + 32, chart.unit, anchor="middle", dim=True))
    parts.append(_text(LEFT - 8, floor + 32, chart.over, anchor="end", dim=True))
    return _svg(chart, floor + BELOW, parts)


def _over_time(chart: Chart) -> str:
    """Return vertical bars, one for each day, week or month."""
    points = chart.points
    end = nice(max(point.value for point in points))
    wide, floor = WIDTH - MARGIN - 8, TALL
    each = min(wide / len(points), 48)
    parts = []
    for part in (0.0, 0.5, 1.0):
        y = floor - (floor - ABOVE) * part
        parts.append(f'<line x1="{MARGIN}" y1="{y:.1f}" x2="{WIDTH - 8}" y2="{y:.1f}"/>')
        parts.append(_text(MARGIN - 6, y + 4, amount(end * part, chart.unit), anchor="end", dim=True))
    parts.append(_text(0, 10, chart.unit, dim=True))
    for number, point in enumerate(points):
        height = (floor - ABOVE) * point.value / end
        x = MARGIN + number * each + each * 0.1
        parts.append(_rect(x, floor - height, each * 0.8, height, _title(point, chart.unit)))
    parts += [_text(x, floor + 18, label, anchor=anchor, dim=True) for x, label, anchor in _named_buckets(points, each)]
    parts.append(_text(MARGIN + min(wide, each * len(points)) / 2, floor + 38, chart.over, anchor="middle", dim=True))
    return _svg(chart, floor + BELOW, parts)


def _named_buckets(points: Sequence[ChartPoint], each: float) -> list[tuple[float, str, str]]:
    """Choose the buckets with a label: the last, and as many others as fit. Return place, label and anchor of each."""
    wide = CHAR_WIDE * max(len(point.label) for point in points)
    named = []
    for number in range(0, len(points) - 1, math.ceil((wide + BETWEEN) / each)):
        named.append((MARGIN + each * (number + 0.1), points[number].label, "start"))
    begin, end = MARGIN + each * (len(points) - 0.9), MARGIN + each * (len(points) - 0.1)
    at_its_end = begin + wide > WIDTH
    begin = end - wide if at_its_end else begin
    named = [one for one in named if one[0] + wide + BETWEEN <= begin]
    return [*named, (end, points[-1].label, "end") if at_its_end else (begin, points[-1].label, "start")]
