"""Make the search documents that a ranked search compares with a query: the stems of a message, each with a weight.

A document covers the words of a message, its speaker, its day, and what was said right before it, most of all a
question: an answer seldom repeats the words of its question.

Used by `recall_search` and `ranking`. Weights are multiples of one quarter, so that their sums do not depend on the
order.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import pyarrow as pa

from everlog.events.times import MICROSECONDS, moment
from everlog.projections.search.talk_index import Utterance
from everlog.store.base.stemming import stem, stems

STATED, ASKED = 1.0, 0.5
"""Weights of a word in a statement and in a question of the message itself."""
STATED_BEFORE, ASKED_BEFORE = 0.25, 1.0
"""Weights of a word in a statement and in a question of the message before, if this one continues it."""
NAME, DATE = 1.0, 1.0
"""Weights of a word in the speaker's name and in the date."""
QUARTERS = 4
"""All weights are multiples of one quarter, so that their sums are exact in any order."""
LINKED_US = 3600 * MICROSECONDS
"""Microseconds: a message continues the one before it if less time than this lies between them."""

_SENTENCE = re.compile(r"[^.!?\[\]]+[.!?\]]*")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip


class SearchDocument(NamedTuple):
    """Search document of one message, as in the table `documents`."""

    seq: int
    time: int
    role: str
    name: str
    text: str
    ref: str
    linked: bool
    words: float
    stems: str


class StemCount(NamedTuple):
    """Weight and kind of one stem in one document."""

    n: float
    own: bool
    """True if the stem is in the message, or in a question right before it."""
    speaker: bool
    """True if the stem is in the speaker's name."""


def documents(said: Iterable[Utterance], known: Container[int]) -> Iterator[SearchDocument]:
    """Yield the documents of messages of one incarnation, in order, except those with `known` seqs."""
    before: Utterance | None = None
    for one in said:
        if one.seq not in known:
            yield _document(one, before)
        before = one


def table(agent_id: str, found: Sequence[SearchDocument]) -> pa.Table:
    """Return the columns of `documents`, all but the agent's id."""
    key = agent_key(agent_id)
    return pa.Table.from_pylist([{"agent": key, **one._asdict()} for one in found])


def agent_key(agent_id: str) -> int:
    """Return the number that stands for an agent in `documents`: 64 bits of a digest."""
    return int.from_bytes(blake2b(agent_id.encode(), digest_size=8).digest(), "big", signed=True)


def sought_as(word: str) -> str:
    """Return the text before the weight of a stem."""
    return f" {word}="


def count_at(stems: str, begin: int) -> StemCount:
    """Return the weight and kind of a stem in a document: `begin` is the position of its weight in `stems`."""
    return _count(stems[begin : stems.index(" ", begin)])


@lru_cache(maxsize=4096)
def _count(written: str) -> StemCount:
    return StemCount(int(written.rstrip("os")) / QUARTERS, "o" in written, "s" in written)


@lru_cache(maxsize=2)
def _sentences(text: str) -> tuple[list[str], list[str]]:
    """Return the stems of its statements, and of its questions: sentences that end in a question mark.

    Cached, because each message is read twice: as itself, and as the one before the next.
    """
    stated: list[str] = []
    asked: list[str] = []
    for sentence in _SENTENCE.findall(text):
        (asked if sentence.rstrip().endswith("?") else stated).extend(stems(sentence))
    return stated, asked


def _document(one: Utterance, before: Utterance | None) -> SearchDocument:
    linked = before is not None and one.time - before.time < LINKED_US
    stated, asked = _sentences(one.text)
    speaker = frozenset(stems(one.name))
    weighted = [(stated, STATED), (asked, ASKED), (stems(one.name), NAME), (_day(one.time), DATE)]
    own = {*stated, *asked}
    if linked and before is not None:
        stated_before, asked_before = _sentences(before.text)
        weighted += [(stated_before, STATED_BEFORE), (asked_before, ASKED_BEFORE)]
        own.update(asked_before)
    weights: dict[str, float] = {}
    for words, weight in weighted:
        for word in words:
            weights[word] = weights.get(word, 0.0) + weight
    written = [
        f"{word}={round(n * QUARTERS)}{'o' * (word in own)}{'s' * (word in speaker)}" for word, n in weights.items()
    ]
    return SearchDocument(*one, linked, sum(weights.values()), f" {' '.join(written)} ")


def _day(time: int) -> Sequence[str]:
    """Return month, day and year (UTC) as stems."""
    day = moment(time)
    return stem(_MONTHS[day.month - 1]), str(day.day), str(day.year)
