"""Attribute every character of a text to the edit that put it there, from all values that the text had. Pure.

Used by `everlog blame` and by the console.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
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
    edits = [(0, ""), *values]
    newest = edits[-1][1]
    # From the newest edit back: the words of old edits are seldom still there, and then nothing is left to look for.
    found: list[_Owned] = []
    sought = [_Span(0, len(newest), 0)] if newest else []
    for (_, before), (seq, value) in reversed([*pairwise(edits)]):
        if not sought:
            break
        if value != before and not _is_untouched(before, value, sought[-1].end):
            sought = list(_older(sought, difference(before, value), seq, found))
    found.sort()
    return _merged(BlamedWords(one.seq, newest[one.place : one.place + one.length]) for one in found)


class _Span(NamedTuple):
    """Part of a value whose words are also in the newest value."""

    start: int
    end: int
    place: int
    """Its beginning in the newest value."""


class _Owned(NamedTuple):
    """Part of the newest value whose edit is known."""

    place: int
    length: int
    seq: int


def _is_untouched(before: str, value: str, end: int) -> bool:
    """Return True if an edit left all words up to `end`, where a word of `value` ends, as they were. It is cheaper than
    a comparison of the words, and says the same.
    """
    if not before.startswith(value[:end]):
        return False
    return len(before) == end or (before[end].isspace() and not before[end - 1].isspace())


def _older(
    sought: Iterable[_Span], changes: Iterable[tuple[str, str]], seq: int, found: list[_Owned]
) -> Iterator[_Span]:  # fmt: skip
    """Yield the parts of the value before an edit from which parts of the value after it come, and add those that the
    edit wrote to `found`. `sought`: parts of the value after the edit, in order.
    """
    spans = list(sought)
    first = old = new = 0
    for change, text in changes:
        if change == "removed":
            old += len(text)
            continue
        end = new + len(text)
        while first < len(spans) and spans[first].end <= new:
            first += 1
        for span in islice(spans, first, None):
            if span.start >= end:
                break
            start, stop = max(span.start, new), min(span.end, end)
            place = span.place + start - span.start
            if change == "added":
                found.append(_Owned(place, stop - start, seq))
            else:
                yield _Span(start - new + old, stop - new + old, place)
        new = end
        old += len(text) if change == "same" else 0


def _merged(parts: Iterable[BlamedWords]) -> list[BlamedWords]:
    """Return the parts with neighbours of the same edit merged."""
    found: list[BlamedWords] = []
    for part in parts:
        if found and found[-1].seq == part.seq:
            found[-1] = BlamedWords(part.seq, found[-1].text + part.text)
        else:
            found.append(part)
    return found
