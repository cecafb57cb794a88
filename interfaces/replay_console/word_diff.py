"""Compare two texts word by word. Pure.

Used by `record_entries`, `console_panes` and `plain_output`.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate
from typing import Literal

DiffKind = Literal["same", "removed", "added"]
DiffSegment = tuple[DiffKind, str]
"""A part of a text with its kind."""

WORDS_MAX = 300
"""Most words between the common ends of two texts that are compared; in longer texts, all of them count as changed."""
NEAR_CHARS = 24
"""Unchanged characters that are shown around a change."""

_WORDS = re.compile(r"\s*\S+|\s+")
"""A word with the white space before it."""


@lru_cache(maxsize=256)  # a frame is drawn many times
def difference(before: str, after: str) -> Sequence[DiffSegment]:
    """Return the parts of both texts: the first text is the same and removed parts, the second the same and added
    ones.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle = _compare_middle(old[head : len(old) - tail], new[head : len(new) - tail])
    return _merge_neighbours([("same", "".join(old[:head])), *middle, ("same", "".join(old[len(old) - tail :]))])


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of words that both texts begin with."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _compare_middle(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffSegment]:
    if max(len(old), len(new)) > WORDS_MAX:
        yield ("removed", "".join(old))
        yield ("added", "".join(new))
        return
    for _, from_old, to_old, from_new, to_new in _blocks(old, new):
        if old[from_old:to_old] == new[from_new:to_new]:
            yield ("same", "".join(old[from_old:to_old]))
        else:
            yield ("removed", "".join(old[from_old:to_old]))
            yield ("added", "".join(new[from_new:to_new]))


def _blocks(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _merge_neighbours(pieces: Sequence[DiffSegment]) -> list[DiffSegment]:
    """Return the parts without empty ones, with neighbours of one kind merged."""
    found: list[DiffSegment] = []
    for change, text in pieces:
        if found and found[-1][0] == change:
            found[-1] = (change, found[-1][1] + text)
        elif text:
            found.append((change, text))
    return found


def around(pieces: Sequence[DiffSegment]) -> list[DiffSegment]:
    """Return the parts with unchanged text shortened to a few words around each change."""
    last = len(pieces) - 1
    return [
        piece if piece[0] != "same" else ("same", _shortened(piece[1], first=number == 0, last=number == last))
        for number, piece in enumerate(pieces)
    ]


def _shortened(text: str, *, first: bool, last: bool) -> str:
    """Shorten unchanged text to the words next to a change: its beginning unless it is `first`, its end unless it is
    `last`.
    """
    words = _WORDS.findall(text)
    head = [] if first else _words_that_fit(words)
    tail = [] if last else _words_that_fit(words[::-1])[::-1]
    return text if len(head) + len(tail) >= len(words) else f"{''.join(head)}…{''.join(tail)}"


def _words_that_fit(words: Sequence[str]) -> list[str]:
    """Return as many words as fit into NEAR_CHARS characters."""
    ends = accumulate(map(len, words))
    return [word for word, end in zip(words, ends, strict=True) if end <= NEAR_CHARS]
