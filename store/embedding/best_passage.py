"""Choose the passage of a long text that shows best why a search found it. Pure.

Used by `projections/archival_memory.py` and `actors/memory/agent_search.py`. Everything that shows a result of a search
shows this passage, so that models, people and programs see the same part of a text.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from everlog.store.base.stemming import stems
from everlog.store.embedding.chunks import chunks

MARK = "…"
"""Sign of text that was left out before or after a passage."""
LOOKED_CHARS_MAX = 100_000
"""Characters of a text, from its beginning, among which a passage is chosen: a message of ten million costs no more."""
_MARKS_CHARS = 2 * (len(MARK) + 1)


class Passage(msgspec.Struct, frozen=True):
    """Part of a text, and which stems of a query are in that part."""

    text: str
    stems: frozenset[str]


class _Span(msgspec.Struct, frozen=True):
    """Piece of a text: its place, and its stems that the query has too, in order."""

    start: int
    end: int
    stems: Sequence[str]


def passage_around(text: str, weights: Mapping[str, float], chars_max: int, phrases: Sequence[str] = ()) -> Passage:
    """Return the part of `text` with most of a query, of at most `chars_max` characters, its marks included.

    `weights`: weight of each stem of the query; `phrases`: lower-case texts that should be in the part. A text that is
    short enough is returned whole. The part consists of whole sentences where they fit. "… " stands where text before
    it is left out, and " …" where text after it is. Of parts that are equally good the first is returned: the beginning
    of the text if no part has a word of the query.
    """
    if len(text) <= chars_max:
        return Passage(text, frozenset(weights.keys() & set(stems(text))))
    best = max(_runs(text, weights, chars_max - _MARKS_CHARS), key=lambda run: _worth(text, run, weights, phrases))
    begin, end = best[0].start, best[-1].end
    before = f"{MARK} " if text[:begin].strip() else ""
    after = f" {MARK}" if text[end:].strip() else ""
    return Passage(f"{before}{text[begin:end]}{after}", frozenset(stem for span in best for stem in span.stems))


def stems_shown(text: str, chars_max: int) -> frozenset[str]:
    """Return all stems that a passage of `text` can have, whatever the query: see `passage_around`."""
    if len(text) <= chars_max:
        return frozenset(stems(text))
    parts = chunks(text[:LOOKED_CHARS_MAX], _piece_chars(chars_max - _MARKS_CHARS))
    return frozenset(stem for part in parts for stem in stems(part))


def _piece_chars(chars_max: int) -> int:
    return max(chars_max // 2, 1)


def _runs(text: str, weights: Mapping[str, float], chars_max: int) -> Iterator[Sequence[_Span]]:
    """Yield, from each piece of the text on, as many pieces as fit into `chars_max`, in order."""
    spans = list(_spans(text[:LOOKED_CHARS_MAX], weights, _piece_chars(chars_max)))
    last = 0
    for first, span in enumerate(spans):
        last = max(last, first)
        while last + 1 < len(spans) and spans[last + 1].end - span.start <= chars_max:
            last += 1
        yield spans[first : last + 1]


def _spans(text: str, weights: Mapping[str, float], chars_max: int) -> Iterator[_Span]:
    """Yield the pieces of a text, split at natural breaks."""
    end = 0
    for part in chunks(text, chars_max):
        start = text.index(part, end)
        end = start + len(part)
        yield _Span(start, end, [stem for stem in stems(part) if stem in weights])


def _worth(
    text: str, run: Sequence[_Span], weights: Mapping[str, float], phrases: Sequence[str]
) -> tuple[int, float, int]:
    """Return how good a run of pieces is: its phrases, the weight of its different stems, and how many it has."""
    found = [stem for span in run for stem in span.stems]
    shown = text[run[0].start : run[-1].end].lower() if phrases else ""
    return sum(phrase in shown for phrase in phrases), sum(weights[stem] for stem in sorted(set(found))), len(found)
