"""Text cut to measure: lines of exactly so many cells, whatever is in them. Pure."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

_MEASURE = Console(width=80, color_system=None)
"""Rich wraps by way of a console, of which it reads nothing but how tabs are."""


def fit_line(text: Text, width: int) -> Text:
    """One line of exactly `width` cells, with an ellipsis where the text is longer."""
    line = text.copy()
    line.truncate(max(width, 0), overflow="ellipsis", pad=True)
    return line


def wrap_lines(text: Text, width: int, most: int | None = None) -> list[Text]:
    """The text in lines of at most `width` cells; beyond `most` of them, the last ends in an ellipsis."""
    room = None if most is None else (most + 1) * max(width, 1)  # characters: wrapping costs most of a frame
    lines = list((text if room is None else text[:room]).wrap(_MEASURE, max(width, 1), tab_size=4))
    if most is None or (len(lines) <= most and len(text) == len(text[:room])):
        return lines
    kept = lines[:most]
    if kept:
        kept[-1].truncate(max(width - 2, 0))
        kept[-1].append(" …", "dim")
    return kept


def sides(left: Text, right: Text, width: int) -> Text:
    """One line with words at both of its ends; the left ones give way."""
    room = width - right.cell_len
    return fit_line(right, width) if room < 1 else Text.assemble(fit_line(left, room), right)


def stack_lines(lines: Sequence[Text], width: int, height: int) -> list[Text]:
    """Exactly `height` lines of exactly `width` cells, empty ones at the end."""
    return [fit_line(line, width) for line in [*lines[:height], *[Text()] * (height - len(lines))]]


def side_by_side(left: Sequence[Text], right: Sequence[Text]) -> list[Text]:
    """Two stacks of equally many lines, with a rule between them."""
    return [Text.assemble(one, ("│ ", "bright_black"), other) for one, other in zip(left, right, strict=True)]
