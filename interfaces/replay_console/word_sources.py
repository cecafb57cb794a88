"""Find the words of a text in the texts that its author had in sight. Pure.

Equal words are a trace and no proof: a model may have said the same without them. Used by the console, to lead from the
words of an answer or of a summary to the records that had them first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

RARE_TEXTS = 3
"""Most texts of others in which a word may be, for the word alone to tell something; of many texts, a tenth."""
TELLING_CHARS = 6
"""Shortest word that alone tells something, characters. A name or a number may be shorter."""
PHRASE_WORDS = 4
"""Number of words in a row that tell something, however common each of them is."""
PLACES_MAX = 50
"""Places of a pair of words that are compared, the oldest first."""
NEAR_CHARS = 120
"""Characters around shared words that an excerpt shows."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_ENDS = re.compile(r"[.!?:\n\u2026\u201c\"]")
"""Sign between two words after which a capital does not make a name."""

SeenKind = Literal["memory", "summary", "user", "agent", "function", "system"]


class SeenText(NamedTuple):
    """Text that a model had in sight, with the record that put it there."""

    seq: int
    kind: SeenKind
    who: str
    """Sender, function, or label of the memory block."""
    at: int
    """Microseconds UTC."""
    text: str


class WordRun(NamedTuple):
    """Part of a text."""

    text: str
    source: int | None
    """Number of the text in sight that has the same words; None: no text has them."""


class SharedWords(NamedTuple):
    """Text in sight with the places that it shares."""

    seen: SeenText
    pieces: Sequence[tuple[bool, str]]
    """Excerpt in parts. True: these words are shared."""


class _Word(NamedTuple):
    word: str
    start: int
    end: int
    tells: bool
    """True: long, a number, or written with a capital within a sentence, as names are."""


class _Place(NamedTuple):
    source: int
    at: int


def trace_words(text: str, seen: Sequence[SeenText]) -> tuple[Sequence[WordRun], Mapping[int, SharedWords]]:
    """Return a text in parts that together are the text, each with the text in sight that has the same words; and the
    texts that have some, by number. `seen`: oldest first. Of texts that have the same words, one of others comes before
    one that the agent itself wrote, and then the oldest.
    """
    words, sources = _words(text), [_words(one.text) for one in seen]
    find = _Finder(seen, sources)
    runs: list[WordRun] = []
    spans: dict[int, list[tuple[int, int]]] = {}
    done, at = 0, 0
    while at < len(words):
        found, count = find.longest(words, at)
        if found is None:
            at += 1
            continue
        start, end = words[at].start, words[at + count - 1].end
        if start > done:
            runs.append(WordRun(text[done:start], None))
        runs.append(WordRun(text[start:end], found.source))
        own = sources[found.source]
        spans.setdefault(found.source, []).append((own[found.at].start, own[found.at + count - 1].end))
        done, at = end, at + count
    if done < len(text):
        runs.append(WordRun(text[done:], None))
    shared = {
        source: SharedWords(seen[source], list(_excerpt(seen[source].text, sorted(set(places)))))
        for source, places in sorted(spans.items())
    }
    return runs, shared


class _Finder:
    """Places of words and of pairs of words in the texts in sight."""

    def __init__(self, seen: Sequence[SeenText], sources: Sequence[Sequence[_Word]]) -> None:
        self._sources = sources
        self._pairs: dict[tuple[str, str], list[_Place]] = {}
        self._places: dict[str, _Place] = {}
        self._texts: dict[str, int] = {}
        others = [number for number, one in enumerate(seen) if one.kind != "agent"]
        self._rare = max(RARE_TEXTS, len(others) // 10)
        for source in others:
            for word in {one.word for one in sources[source]}:
                self._texts[word] = self._texts.get(word, 0) + 1
        for source in sorted(range(len(sources)), key=lambda number: seen[number].kind == "agent"):
            words = sources[source]
            for at, one in enumerate(words):
                self._places.setdefault(one.word, _Place(source, at))
                if at + 1 < len(words):
                    self._pairs.setdefault((one.word, words[at + 1].word), []).append(_Place(source, at))

    def longest(self, words: Sequence[_Word], at: int) -> tuple[_Place | None, int]:
        """Return the place of the most words that begin at `at`, and their number; None if they tell nothing."""
        best = self._places.get(words[at].word)
        most = self._telling(words, at, best, 1) if best is not None else 0
        pair = (words[at].word, words[at + 1].word) if at + 1 < len(words) else None
        for place in self._pairs.get(pair, ())[:PLACES_MAX] if pair else ():
            count = self._telling(words, at, place, self._equal(words, at, place))
            if count > most:
                best, most = place, count
        return (best, most) if most else (None, 0)

    def _equal(self, words: Sequence[_Word], at: int, place: _Place) -> int:
        pairs = zip(words[at:], self._sources[place.source][place.at :], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0].word == pair[1].word, pairs))

    def _telling(self, words: Sequence[_Word], at: int, place: _Place, count: int) -> int:
        """Return how many of some equal words tell something: all of a long phrase, or from one telling word to the
        last one.
        """
        if count >= PHRASE_WORDS:
            return count
        own = self._sources[place.source]
        telling = [
            (words[at + step].tells or own[place.at + step].tells)
            and self._texts.get(words[at + step].word, 0) <= self._rare
            for step in range(count)
        ]
        return max((step + 1 for step, tells in enumerate(telling) if tells), default=0) if telling[0] else 0


def _words(text: str) -> list[_Word]:
    found: list[_Word] = []
    begins = True
    for match in _WORD.finditer(text):
        word = match.group()
        if found:
            begins = bool(_ENDS.search(text, found[-1].end, match.start()))
        tells = len(word) >= TELLING_CHARS or (word[0].isupper() and not begins) or any(map(str.isdigit, word))
        found.append(_Word(word.casefold(), match.start(), match.end(), tells))
    return found


def _excerpt(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[bool, str]]:
    """Yield the shared parts of a text with what is around them. `spans`: starts and ends, ascending."""
    done = 0
    for start, end in spans:
        if end <= done:
            continue
        start = max(start, done)
        if start - done > 2 * NEAR_CHARS:
            yield False, f"{text[done : done + NEAR_CHARS] if done else ''}… {text[start - NEAR_CHARS : start]}"
        elif start > done:
            yield False, text[done:start]
        yield True, text[start:end]
        done = end
    if len(text) - done > 2 * NEAR_CHARS:
        yield False, f"{text[done : done + NEAR_CHARS]}…"
    elif done < len(text):
        yield False, text[done:]
