"""Choose two columns of an answer for a chart: labels, and numbers as bars. The table below the chart has the same."""

import math
from collections.abc import Sequence

import msgspec

BARS_MAX = 120
"""Rows of a chart: more have no room for a bar each."""


class SqlChart(msgspec.Struct, frozen=True, kw_only=True):
    """Bars for two columns."""

    label: str
    """Name of the column of labels."""
    value: str
    """Name of the column of numbers."""
    labels: Sequence[str]
    values: Sequence[float]
    values_offered: Sequence[str]
    """Names of all columns of numbers."""
    labels_offered: Sequence[str]


def chart_of(
    columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str | None]], label: str = "", value: str = ""
) -> SqlChart | None:
    """Return the chart of an answer; None if it has no two columns or rows for one, or negative numbers.

    `columns`: names, each with True for numbers. `label`, `value`: names that were chosen; empty, or not there: the
    first that fits.
    """
    numbers = [name for name, is_number in columns if is_number]
    names = [name for name, _ in columns]
    if len(columns) < 2 or not numbers or not 2 <= len(rows) <= BARS_MAX or len(set(names)) < len(names):
        return None
    value = value if value in numbers else numbers[0]
    offered = [name for name in names if name != value]
    plain = [name for name in offered if name not in numbers]
    label = label if label in offered else (plain or offered)[0]
    values = [float(row[names.index(value)] or 0) for row in rows]
    if min(values) < 0 or not all(map(math.isfinite, values)):
        return None
    return SqlChart(
        label=label, value=value, labels=[row[names.index(label)] or "" for row in rows], values=values,
        values_offered=numbers, labels_offered=offered,
    )  # fmt: skip
