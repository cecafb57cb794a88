"""Find the words of a text in the texts that its author had in sight. Pure.

Equal words are a trace and no proof: a model may have said the same without them. Used by the console, to lead from the
words of an answer or of a summary to the records that had them first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

RARE_TEXTS = 3
"""Most texts in which a word may be, for the word alone to tell something; in many texts, a tenth of them."""
RARE_CHARS = 4
"""Shortest word that alone tells something, characters."""
PHRASE_WORDS = 4
"""Number of words in a row that tell something, however common each of them is."""
PLACES_MAX = 50
"""Places of a pair of words that are compared, the oldest first."""
NEAR_CHARS = 120
"""Characters around shared words that an excerpt shows."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")

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
        self._places: dict[str, list[_Place]] = {}
        self._texts: dict[str, int] = {}
        self._rare = max(RARE_TEXTS, len(sources) // 10)
        for source in sorted(range(len(sources)), key=lambda number: seen[number].kind == "agent"):
            words = sources[source]
            for word in {one.word for one in words}:
                self._texts[word] = self._texts.get(word, 0) + 1
            for at, one in enumerate(words):
                self._places.setdefault(one.word, []).append(_Place(source, at))
                if at + 1 < len(words):
                    self._pairs.setdefault((one.word, words[at + 1].word), []).append(_Place(source, at))

    def longest(self, words: Sequence[_Word], at: int) -> tuple[_Place | None, int]:
        """Return the place of the most words that follow `at`, and their number; None if they tell nothing."""
        best: _Place | None = None
        most = 0
        pair = (words[at].word, words[at + 1].word) if at + 1 < len(words) else None
        for place in self._pairs.get(pair, ())[:PLACES_MAX] if pair else ():
            count = self._equal(words, at, place)
            if count > most:
                best, most = place, count
        if best is None and words[at].word in self._places:
            best, most = self._places[words[at].word][0], 1
        tells = most >= PHRASE_WORDS or any(self._is_rare(one.word) for one in words[at : at + most])
        return (best, most) if tells else (None, 0)

    def _equal(self, words: Sequence[_Word], at: int, place: _Place) -> int:
        count, own = 0, self._sources[place.source]
        while (
            at + count < len(words)
            and place.at + count < len(own)
            and words[at + count].word == own[place.at + count].word
        ):
            count += 1
        return count

    def _is_rare(self, word: str) -> bool:
        return len(word) >= RARE_CHARS and 0 < self._texts.get(word, 0) <= self._rare


def _words(text: str) -> list[_Word]:
    return [_Word(found.group().casefold(), found.start(), found.end()) for found in _WORD.finditer(text)]


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
