"""What changed from one text to another, word by word. Pure."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate
from typing import Literal

DiffKind = Literal["same", "removed", "added"]
DiffSegment = tuple[DiffKind, str]
"""A stretch of text, and what became of it."""

WORDS_MAX = 300
"""Words between what two texts share at their ends, up to which they are compared; beyond, all of them changed."""
NEAR_CHARS = 24
"""Characters of what stayed that are shown around what changed."""

_WORDS = re.compile(r"\s*\S+|\s+")
"""A word with the blanks before it."""


@lru_cache(maxsize=256)  # a frame is drawn many times
def difference(before: str, after: str) -> Sequence[DiffSegment]:
    """The pieces of which both texts are made: without the added it is the one, without the removed the other."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle = _middle(old[head : len(old) - tail], new[head : len(new) - tail])
    return _merge_neighbours([("same", "".join(old[:head])), *middle, ("same", "".join(old[len(old) - tail :]))])


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many words both begin with."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _middle(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffSegment]:
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
    """Without empty pieces, and neighbours of one kind made one."""
    found: list[DiffSegment] = []
    for change, text in pieces:
        if found and found[-1][0] == change:
            found[-1] = (change, found[-1][1] + text)
        elif text:
            found.append((change, text))
    return found


def around(pieces: Sequence[DiffSegment]) -> list[DiffSegment]:
    """Only what changed, and a few words of what stayed around it."""
    last = len(pieces) - 1
    return [
        piece if piece[0] != "same" else ("same", _shortened(piece[1], first=number == 0, last=number == last))
        for number, piece in enumerate(pieces)
    ]


def _shortened(text: str, *, first: bool, last: bool) -> str:
    """What stayed: its beginning unless it comes `first`, its end unless it comes `last`, in whole words."""
    words = _WORDS.findall(text)
    head = [] if first else _as_many(words)
    tail = [] if last else _as_many(words[::-1])[::-1]
    return text if len(head) + len(tail) >= len(words) else f"{''.join(head)}…{''.join(tail)}"


def _as_many(words: Sequence[str]) -> list[str]:
    """As many words as fit into NEAR_CHARS characters."""
    ends = accumulate(map(len, words))
    return [word for word, end in zip(words, ends, strict=True) if end <= NEAR_CHARS]
