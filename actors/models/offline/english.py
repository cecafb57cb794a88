"""English for the offline model: words, stems, sentences, days, and the exchange of "I" and "you". Pure, no state.

Used by the other files of this folder.
"""

import re
from contextlib import suppress
from datetime import date, timedelta
from functools import lru_cache

TEXT_CHARS_MAX = 4000
"""Maximum characters of a message that the rules read, so that a reply takes a bounded time."""


def any_case(pattern: str) -> re.Pattern[str]:
    """Return a pattern that matches in any letter case, across lines."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_STOP = frozenset(
    """
    a about again all also am an and any anything are as ask asked at back be been before but by call can could
    day did do does doing done ever find for from get give going had has have he hello her here hey hi him his how i
    if in into is it its just keep kept know last let like'd look me mean mention mentioned mine much my myself
    no not now of off often on once one or our out please really recall remember remind said say search see
    she should so some something talk talked tell than that the their them then there these they thing things
    this those time to told too up us very was we were what whats when where which who whom whose why will
    with would yes you your yours
    """.split()  # noqa: SIM905 - one word a line would be longer than the rules
)
_WORD = re.compile(r"\w+(?:['-]\w+)*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|;\s+")
_ENDINGS = ("ing", "ed", "es", "s", "e")
_SAME = {"called": "nam", "old": "ag", "job": "work", "home": "liv", "moved": "liv", "city": "liv"}

_ISO = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_NEAR = {"yesterday": 1, "today": 0, "last week": 7}
"""Days before today."""
_NEAR_WORDS = any_case(rf"\b(?:{'|'.join(_NEAR)})\b")
_TALK = any_case(
    r"\b(?:please|(?:can|could|do|did) you (?:tell me|remember|recall|remind me)|tell me|remind me|remember|recall"
    r"|(?:did|have|has) \w+ (?:ever )?(?:say|said|tell you|told you|mention|mentioned|talk|talked)(?: about)?)\b"
)

_SWAPPED = {
    "i am": "you are", "i was": "you were", "you are": "I am", "you're": "I'm", "your": "my", "you": "me",
    "i": "you", "i'm": "you're", "i've": "you've", "i'll": "you'll", "i'd": "you'd", "am": "are", "my": "your",
    "me": "you", "mine": "yours", "myself": "yourself", "we": "you", "we're": "you're", "we've": "you've",
    "our": "your", "us": "you", "ours": "yours",
}  # fmt: skip
_SWAP = any_case(rf"(?<![\w'-])(?:{'|'.join(sorted(_SWAPPED, key=lambda word: -len(word)))})(?![\w-]|'\w)")


def normalize(text: str) -> str:
    """Return the beginning of `text`, with straight apostrophes and single spaces; line breaks stay."""
    lines = text[:TEXT_CHARS_MAX].replace("\u2019", "'").splitlines()
    return "\n".join(" ".join(line.split()) for line in lines).strip()


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of `text`."""
    return [stripped for part in _SENTENCE.split(text) if (stripped := part.strip())]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return where each sentence begins and ends (exclusive) in `text`; one span if there is no border."""
    borders = [(match.start(), match.end()) for match in _SENTENCE.finditer(text)]
    begins, ends = [0, *(end for _, end in borders)], [*(start for start, _ in borders), len(text)]
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end] or [(0, len(text))]


def words(text: str) -> list[str]:
    """Return all words, in lower case."""
    return _WORD.findall(text.lower())


def content(text: str) -> list[str]:
    """Return the words that carry meaning, once each, in order."""
    found = (word.removesuffix("'s") for word in words(text))
    return list(dict.fromkeys(word for word in found if word not in _STOP and (len(word) > 1 or word.isdecimal())))


@lru_cache(maxsize=10_000)
def _stem(word: str) -> str:
    """Return a word without its ending. Words that the rules treat as equal have the same stem."""
    ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= 2), "")
    stem = word.removesuffix(ending)
    return _SAME.get(word, stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem)


def stems(text: str) -> set[str]:
    """Return the stems of the words that carry meaning."""
    return {_stem(word) for word in content(text)}


def without_days(text: str) -> str:
    """Return `text` without the days that `days` finds."""
    return _NEAR_WORDS.sub(" ", _ISO.sub(" ", text))


def asked_for(question: str) -> str:
    """Return a question as a search understands it best: as it stands, but without words about asking and saying."""
    return " ".join(_TALK.sub(" ", question).split()).strip(" ?!.,")


def days(text: str, today: str) -> tuple[str, str] | None:
    """Return the first and last day that `text` names, as YYYY-MM-DD;
    None if it names none. `today` begins with the date.
    """
    found = [match[0] for match in _ISO.finditer(text)]
    ago = next((ago for name, ago in _NEAR.items() if name in text.lower()), None)
    with suppress(ValueError):
        if ago is not None and not found:
            now = date.fromisoformat(today[:10])
            found = [str(now - timedelta(days=ago)), str(now if ago > 1 else now - timedelta(days=ago))]
        return (min(found), max(found)) if found and all(map(date.fromisoformat, found)) else None
    return None


def to_second_person(text: str) -> str:
    """Return what a user said of themselves as it is said to them: "I sail" becomes "you sail"."""
    return _SWAP.sub(lambda match: _SWAPPED[match[0].lower()] if match[0] != "US" else match[0], text)


def short(text: str, chars: int) -> str:
    """Return `text` on one line, in at most `chars` characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: max(0, chars - 3)].rstrip() + "..."
