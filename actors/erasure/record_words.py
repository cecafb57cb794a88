"""Take the words out of records, and find them in other records. Pure.

Used by `selection.py`, `derivation.py` and `stream_scan.py`. Words are compared case-folded, in Unicode NFC, and white
space of any length counts as one blank. A reply holds its words up to three times as JSON inside of JSON, so each
string is compared as it is and with its escapes resolved. A form that is left out here is a copy that is not found.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from everlog.events import Record

RUN_WORDS = 5
"""Number of consecutive words that two records must share to say the same."""
SHORT_CHARS_MIN = 8
"""Characters of a text below RUN_WORDS words that is looked for as a whole. A shorter one must have a digit."""
RUNS_MAX = 1_000_000
"""Most runs of words that one erasure looks for. They take about 200 MB."""
ESCAPES_MAX = 3
"""Levels of JSON inside of JSON: arguments, in a reply, in a payload."""

_WORD = re.compile(r"\w+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANKS = frozenset("ntrbf")

Words = Sequence[str]
"""Words of a text, in order."""


def normalized(text: str) -> str:
    """Return a text case-folded, in NFC, and with one blank for each run of white space."""
    return " ".join(unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).split())


def words_of(text: str) -> Words:
    """Return the words of a text, normalized."""
    return _WORD.findall(normalized(text))


def forms_of(text: str) -> Iterator[str]:
    """Yield a text, and the same text with its JSON escapes resolved once, twice and so on."""
    yield text
    for _ in range(ESCAPES_MAX):
        if "\\" not in text:
            return
        text = _ESCAPE.sub(_character, text)
        # Two escapes may be the halves of one character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        yield text


def _character(found: re.Match[str]) -> str:
    code, sign = found.groups()
    if code is not None:
        return chr(int(code, 16))
    return " " if sign in _BLANKS else str(sign)


def payload_of(record: Record) -> Mapping[str, Any]:
    """Return the fields of a record without its text."""
    fields: Mapping[str, Any] = msgspec.json.decode(record.payload)
    return fields


def strings_of(record: Record, payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield every string in a record: its text, and all strings of its payload, keys of objects included."""
    if record.text:
        yield record.text
    yield from _strings(payload)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, held in value.items():
            yield key
            yield from _strings(held)
    elif isinstance(value, list):
        for held in value:
            yield from _strings(held)


def pieces_of_json(text: str) -> Iterator[str]:
    """Yield the strings inside a JSON text, without keys; the whole text if it is no JSON."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        yield text
        return
    yield from _values(value)


def _values(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for held in value.values():
            yield from _values(held)
    elif isinstance(value, list):
        for held in value:
            yield from _values(held)


def runs_of(words: Words) -> Iterator[str]:
    """Yield each run of RUN_WORDS consecutive words."""
    for first in range(len(words) - RUN_WORDS + 1):
        yield " ".join(words[first : first + RUN_WORDS])


def added_words(before: str, after: str) -> Words:
    """Return the words that an edit added: `after` without the words that both texts begin and end with."""
    old, new = words_of(before), words_of(after)
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    return new[first : len(new) - last]


class SoughtWords:
    """Phrases and runs of words that an erasure looks for, each with the record that said it."""

    def __init__(self, phrases: Iterable[str] = ()) -> None:
        """Look for the `phrases` as they are, wherever they begin and end."""
        self._phrases = [normalized(phrase) for phrase in phrases]
        self._runs: dict[int, dict[str, str]] = {}
        self._common: set[str] = set()
        self.count = 0
        """Number of runs that are looked for."""
        self.is_full = False
        """True if runs were left out because there were more than RUNS_MAX."""

    def __bool__(self) -> bool:
        return bool(self._phrases or self.count)

    def exclude(self, texts: Iterable[str]) -> None:
        """Never look for runs of these texts: the prompt and the first memory say them to every agent."""
        for text in texts:
            words = words_of(text)
            self._common.update(runs_of(words))
            if len(words) < RUN_WORDS:
                self._common.add(" ".join(words))

    def add(self, words: Words, said_by: str, carried: frozenset[str] | None = None) -> None:
        """Look for the runs of `words`, or for all of them if they are fewer than a run.

        `carried`: look only for runs that hold one of these words; None: for all. `said_by` describes the record.
        """
        whole = " ".join(words)
        if len(words) >= RUN_WORDS:
            runs: Iterable[str] = runs_of(words)
        elif len(whole) >= SHORT_CHARS_MIN or any(sign.isdigit() for sign in whole):
            runs = [whole]
        else:
            return
        length = min(len(words), RUN_WORDS)
        held = self._runs.setdefault(length, {})
        for run in runs:
            if run in self._common or run in held:
                continue
            if carried is not None and carried.isdisjoint(run.split(" ")):
                continue
            if self.count >= RUNS_MAX:
                self.is_full = True
                return
            held[run] = said_by
            self.count += 1

    def found_in(self, record: Record, payload: Mapping[str, Any]) -> str | None:
        """Return why a record says what is looked for, in words for people; None if it does not."""
        if not self:
            return None
        for text in strings_of(record, payload):
            for form in forms_of(text):
                if why := self._found(form):
                    return why
        return None

    def _found(self, text: str) -> str | None:
        plain = normalized(text)
        for phrase in self._phrases:
            if phrase in plain:
                return f"says {phrase!r}"
        words = _WORD.findall(plain)
        for length, held in self._runs.items():
            for first in range(len(words) - length + 1):
                run = " ".join(words[first : first + length])
                if run in held:
                    return f"says the words of {held[run]}"
        return None
