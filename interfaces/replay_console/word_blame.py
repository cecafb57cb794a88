"""Attribute every character of a text to the edit that put it there, from all values that the text had. Pure.

Used by `everlog blame` and by the console.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from everlog.interfaces.replay_console.word_diff import difference


class BlamedWords(NamedTuple):
    """Words next to each other that one edit put there."""

    seq: int
    """Seq of the edit."""
    text: str


class BlockValue(NamedTuple):
    """One value that a memory block had."""

    seq: int
    operation: str
    value: str
    recorded_at: int
    """Microseconds UTC."""


def values_of(rows: Iterable[Mapping[str, Any]], label: str) -> list[BlockValue]:
    """Return all values of a block, oldest first, from rows of the projection `memory_history`."""
    chosen = sorted((row for row in rows if row["label"] == label), key=lambda row: row["seq"])
    return [BlockValue(row["seq"], row["operation"], row["value"], row["recorded_at"]) for row in chosen]


def blamed(values: Iterable[tuple[int, str]]) -> Sequence[BlamedWords]:
    """Return the newest of some values in parts, each with the seq of the edit that put it there. `values`: seq and
    text of each edit, oldest first. The parts together are the newest value.

    Words that an edit leaves where they were keep their edit; words that it moves count as put there by it.
    """
    parts: list[BlamedWords] = []
    before = ""
    for seq, value in values:
        if value != before:
            parts = _merged(_after_edit(parts, seq, difference(before, value)))
            before = value
    return parts


def _after_edit(parts: Sequence[BlamedWords], seq: int, changes: Sequence[tuple[str, str]]) -> Iterator[BlamedWords]:
    """Yield the parts of a text after an edit, from those before it."""
    place, within = 0, 0
    for change, text in changes:
        if change == "added":
            yield BlamedWords(seq, text)
            continue
        left = len(text)
        while left:
            own = parts[place]
            taken = min(left, len(own.text) - within)
            if change == "same":
                yield BlamedWords(own.seq, own.text[within : within + taken])
            left -= taken
            within += taken
            if within == len(own.text):
                place, within = place + 1, 0


def _merged(parts: Iterable[BlamedWords]) -> list[BlamedWords]:
    """Return the parts with neighbours of the same edit merged."""
    found: list[BlamedWords] = []
    for part in parts:
        if found and found[-1].seq == part.seq:
            found[-1] = BlamedWords(part.seq, found[-1].text + part.text)
        elif part.text:
            found.append(part)
    return found
