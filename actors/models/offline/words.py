"""What the offline stand-in knows of English text: words, stems, sentences, days, and who "I" is. Pure, no state."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache

TEXT_CHARS_MAX = 4000
"""Rules look at no more of a message than this."""

_STOP = frozenset(
    """
    a about again all also am an and any anything are as ask asked at back be been before but by call called can could
    day did do does doing done ever find for from get give going had has have he hello her here hey hi him his how i
    if in into is it its just keep kept know last let like'd look me mean mention mentioned mine much my myself
    named no not now of off often on once one or our out please really recall remember remind said say search see
    she should so some something talk talked tell than that the their them then there these they thing things
    this those time to told too up us very was we were what whats when where which who whom whose why will
    with would yes you your yours
    """.split()  # noqa: SIM905 - one word a line would be longer than the rules
)


class Wording:
    """A pattern in any letter case, and `needs`: of these texts, in lower case, one stands in all that it matches.

    To look for a text is a hundred times cheaper than to try a pattern at every place, and mostly there is none.
    """

    __slots__ = ("needs", "pattern")

    def __init__(self, pattern: str, *needs: str) -> None:
        self.pattern = re.compile(pattern, re.IGNORECASE)
        self.needs = needs

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in `text`."""
        return self.pattern.search(text) if self._may_match(text) else None

    def sub(self, to: str, text: str) -> str:
        """`text` with `to` in the place of every match."""
        return self.pattern.sub(to, text) if self._may_match(text) else text

    def _may_match(self, text: str) -> bool:
        """Letters beyond ASCII may be the other case of one in `needs`."""
        return not text.isascii() or any(map(text.lower().__contains__, self.needs))


_WORD = re.compile(r"\w+(?:['-]\w+)*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|;\s+")
_ENDINGS = ("ing", "ed", "es", "s", "e")
_SAME = {"old": "ag", "job": "work", "profession": "work", "hom": "liv", "city": "liv", "hobby": "lik", "hobbi": "lik"}

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+(\d{{4}}))?\b", re.IGNORECASE)
_MONTH_DAY = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(\d{{4}}))?", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_NEAR = Wording(r"\b(today|yesterday|last week|past week)\b", "today", "yesterday", "last week", "past week")
_NEAR_DAYS = {"today": (0, 0), "yesterday": (1, 1), "last week": (7, 0), "past week": (7, 0)}

_SWAPPED = {
    "i am": "you are", "i was": "you were", "you are": "I am", "you're": "I'm", "your": "my", "you": "me",
    "i": "you", "i'm": "you're", "i've": "you've", "i'll": "you'll", "i'd": "you'd", "am": "are", "my": "your",
    "me": "you", "mine": "yours", "myself": "yourself", "we": "you", "we're": "you're", "we've": "you've",
    "our": "your", "us": "you", "ours": "yours",
}  # fmt: skip
_SWAP = re.compile(
    rf"(?<![\w'-])(?:{'|'.join(sorted(_SWAPPED, key=lambda word: -len(word)))})(?![\w-]|'\w)", re.IGNORECASE
)
_BEGINS = re.compile(r"^(?:The|An?|This|It|There|On|In|At|Every) ")
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):\d\d ([AP])M .*?([+-])(\d\d)(\d\d)$")


def plain(text: str) -> str:
    """The beginning of `text`, with straight apostrophes and single spaces; line breaks stay."""
    lines = text[:TEXT_CHARS_MAX].replace("\u2019", "'").splitlines()
    return "\n".join(" ".join(line.split()) for line in lines).strip()


def sentences(text: str) -> list[str]:
    """The sentences and lines of `text`."""
    return [stripped for part in _SENTENCE.split(text) if (stripped := part.strip())]


def words(text: str) -> list[str]:
    """All words, in lower case."""
    return _WORD.findall(text.lower())


def content(text: str) -> list[str]:
    """The words that carry meaning, once each, in order."""
    found = (word.removesuffix("'s") for word in words(text))
    return list(dict.fromkeys(word for word in found if word not in _STOP and (len(word) > 1 or word.isdecimal())))


@lru_cache(maxsize=10_000)
def stem(word: str) -> str:
    """A word without its ending; words that mean the same to us give the same."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return _SAME.get(word, word)


def stems(text: str) -> set[str]:
    """The stems of the content words."""
    return {stem(word) for word in content(text)}


def days(text: str, today: str) -> tuple[str, str] | None:
    """The first and last day that `text` names, as YYYY-MM-DD; `today` begins with the day it came."""
    now = _date(today[:4], today[5:7], today[8:10])
    found = [day for day in _named(text, str(now.year) if now else "") if day]
    near = _NEAR.search(text)
    if near and now and not found:
        first, last = _NEAR_DAYS[near[1].lower()]
        found = [now - timedelta(days=first), now - timedelta(days=last)]
    return (min(found).isoformat(), max(found).isoformat()) if found else None


def without_days(text: str) -> str:
    """`text` without the days that it names."""
    for pattern in (_ISO, _DAY_MONTH, _MONTH_DAY, _NEAR):
        text = pattern.sub(" ", text)
    return text


def _named(text: str, year: str) -> Iterator[date | None]:
    if not _DIGIT.search(text):
        return
    for match in _ISO.finditer(text):
        yield _date(match[1], match[2], match[3])
    for match in _DAY_MONTH.finditer(text):
        yield _date(match[3] or year, _month(match[2]), match[1])
    for match in _MONTH_DAY.finditer(text):
        yield _date(match[3] or year, _month(match[1]), match[2])


def _month(name: str) -> str:
    return str(_MONTHS.index(name[:3].lower()) + 1)


def _date(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def to_you(text: str) -> str:
    """What a user said of themselves, said to them: "I sail" becomes "you sail"."""
    swapped = _SWAP.sub(lambda match: _SWAPPED[match[0].lower()] if match[0] != "US" else match[0], text)
    return _BEGINS.sub(lambda match: match[0].lower(), swapped)


def minutes(time: str) -> int | None:
    """A time as events tell it, in minutes, for comparing; None for what is no time."""
    match = _MOMENT.match(time)
    day = _date(match[1], match[2], match[3]) if match else None
    if match is None or day is None:
        return None
    offset = (int(match[8]) * 60 + int(match[9])) * (-1 if match[7] == "-" else 1)
    hour = int(match[4]) % 12 + 12 * (match[6] == "P")
    return day.toordinal() * 1440 + hour * 60 + int(match[5]) - offset


def short(text: str, chars: int) -> str:
    """`text` on one line, in at most `chars` characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: max(0, chars - 3)].rstrip() + "..."
