"""Fit text to a size: lines of exactly so many cells, whatever characters they have. Pure.

Used by `console_frame` and `console_panes`.
"""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

_MEASURE = Console(width=80, color_system=None)
"""Console that rich needs for wrapping, of which it only reads the size of tabs."""


def fit_line(text: Text, width: int) -> Text:
    """Return a line of exactly `width` cells; longer text ends in an ellipsis."""
    line = text.copy()
    line.truncate(max(width, 0), overflow="ellipsis", pad=True)
    return line


def wrap_lines(text: Text, width: int, most: int | None = None) -> list[Text]:
    """Return the text in lines of at most `width` cells; after `most` lines, the last one ends in an ellipsis."""
    room = None if most is None else (most + 1) * max(width, 1)  # characters: wrapping dominates a frame
    lines = list((text if room is None else text[:room]).wrap(_MEASURE, max(width, 1), tab_size=4))
    if most is None or (len(lines) <= most and len(text) == len(text[:room])):
        return lines
    kept = lines[:most]
    if kept:
        kept[-1].truncate(max(width - 2, 0))
        kept[-1].append(" …", "dim")
    return kept


def sides(left: Text, right: Text, width: int) -> Text:
    """Return a line with text at both ends; the left text is shortened if both do not fit."""
    room = width - right.cell_len
    return fit_line(right, width) if room < 1 else Text.assemble(fit_line(left, room), right)


def stack_lines(lines: Sequence[Text], width: int, height: int) -> list[Text]:
    """Return exactly `height` lines of exactly `width` cells, with empty lines at the end."""
    return [fit_line(line, width) for line in [*lines[:height], *[Text()] * (height - len(lines))]]


def side_by_side(left: Sequence[Text], right: Sequence[Text]) -> list[Text]:
    """Return two stacks of equally many lines beside each other, with a rule in between."""
    return [Text.assemble(one, ("│ ", "bright_black"), other) for one, other in zip(left, right, strict=True)]
