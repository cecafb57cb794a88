"""What ranked search compares a query with: of each thing said a document, its stems and how much each counts.

A document is the words of a message, who says it, on which day, and what was said right before, above all what was
asked: an answer seldom repeats the words of its question.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pyarrow as pa

from store.english import stem

from .rows import Row
from .stems import stems, stems_by_sentence

STATED, ASKED = 1.0, 0.5
"""How much a word counts in a statement and in a question of the message itself."""
STATED_BEFORE, ASKED_BEFORE = 0.25, 1.0
"""And in those of the message before it, if this one goes on from there."""
NAME, DATE = 1.0, 1.0
LINKED_US = 3600 * 1_000_000
"""A message goes on from what was said less than an hour before it, in microseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip


class Document(msgspec.Struct):
    """The document of one message."""

    row: Row
    """What was said: a row of `search_missing`."""
    linked: bool
    weights: Mapping[str, float]
    """By stem. All are quarters, so that sums are exact in any order."""
    own: frozenset[str]
    """Stems that make it a result: said in it, or asked right before it."""
    speaker: frozenset[str]
    """Stems of the name of who says it."""


def documents(said: Sequence[Row]) -> Iterator[Document]:
    """The documents of rows of `search_missing`; none for the first if it has one already."""
    before: Row | None = None
    for row in said:
        if not row["known"]:
            yield _document(row, before)
        before = row


def tables(found: Sequence[Document]) -> tuple[pa.Table, pa.Table]:
    """Columns of `documents` and of `postings`, all but the agent."""
    heads = [
        {key: one.row[key] for key in ("seq", "time", "role", "name", "ref")}
        | {"linked": one.linked, "words": sum(one.weights.values())}
        for one in found
    ]
    postings = [
        {"seq": one.row["seq"], "stem": word, "n": n, "own": word in one.own, "speaker": word in one.speaker}
        for one in found
        for word, n in one.weights.items()
    ]
    return pa.Table.from_pylist(heads), pa.Table.from_pylist(postings, _POSTINGS)


_POSTINGS = pa.schema(
    [("seq", pa.int64()), ("stem", pa.string()), ("n", pa.float64()), ("own", pa.bool_()), ("speaker", pa.bool_())]
)


def _document(row: Row, before: Row | None) -> Document:
    linked = before is not None and before["ended"] == row["ended"] and row["time"] - before["time"] < LINKED_US
    stated, asked = stems_by_sentence(row["text"])
    speaker = frozenset(stems(row["name"]))
    weighted = [(stated, STATED), (asked, ASKED), (stems(row["name"]), NAME), (_day(row["time"]), DATE)]
    own = {*stated, *asked}
    if linked and before is not None:
        stated_before, asked_before = stems_by_sentence(before["text"])
        weighted += [(stated_before, STATED_BEFORE), (asked_before, ASKED_BEFORE)]
        own.update(asked_before)
    weights: dict[str, float] = {}
    for words, weight in weighted:
        for word in words:
            weights[word] = weights.get(word, 0.0) + weight
    return Document(row, linked, weights, frozenset(own), speaker)


def _day(time: int) -> Sequence[str]:
    """Month, day and year (UTC), as stems."""
    day = _EPOCH + timedelta(microseconds=time)
    return stem(_MONTHS[day.month - 1]), str(day.day), str(day.year)
