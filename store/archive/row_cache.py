"""Cache the rows of one agent, or of one source, in memory, so that recently searched rows are not read again.

A row changes only when it ends, so following the log keeps a cache current by adding rows and ending others. Words are
two flat arrays, the word and its row: new words are appended, and the arrays are sorted from time to time.

Used by `row_caches`, `archive_lineage`, `archive` and `message_vectors`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from everlog.store.archive.archive_table import ROW_FIELDS, vectors_in
from everlog.store.base.arrow_values import int_array, int_value, numbers_of
from everlog.store.embedding.tokenizer import unpacked_text, words_of

HOLDS = 2**63 - 1
"""Value of `seq_to` and `to_at` of a current row: later than every possible moment."""
BETWEEN = "\0"
"""Separator between the texts of rows when all are searched at once."""
UNSORTED_MIN = 10_000
"""Number of words up to which new words stay unsorted."""
DOT_ROWS = 128
"""Number of vectors that are compared at once."""
ROW_BYTES = 700
"""Approximate bytes of a row's fields besides text, words and vector."""
CACHE_BYTES = 3_000
"""Approximate bytes of a cache without rows: without them, any number of empty caches would fit under the limit."""
COLUMNS = (*ROW_FIELDS, "words", "vector")
NUMBERS = ("seq", "part", "created_at", "seq_from", "from_at", "seq_to", "to_at")
WORDS = ("memory", "text", "tags", "source", "document", "parts", "digest")


class Statistics(msgspec.Struct, frozen=True):
    """Counts over all rows of an owner that are current and pass the conditions of a search."""

    rows: int
    found: int
    """Number of rows with a word of the query, or among the nearest."""
    having: Mapping[int, int]
    """Number of rows with each word of the query."""
    length: float
    """Average number of words of a row."""


class RowCache:
    """Rows in the order in which they were added. For one thread at a time."""

    def __init__(self, rows: pa.Table) -> None:
        """Create a cache with `rows`, which have all of COLUMNS."""
        self._places: dict[str, int] = {}
        self.numbers: dict[str, np.ndarray] = {name: np.empty(0, np.int64) for name in NUMBERS}
        self.fields: dict[str, list[Any]] = {name: [] for name in WORDS}
        self.lower: list[str] = []
        self._vectors = np.empty((0, 0), np.float32)
        self._words = np.empty(0, np.uint32)
        self._rows = np.empty(0, np.int32)
        self.lengths = np.empty(0, np.int64)
        """Number of words of each row."""
        self._order = np.empty(0, np.int32)
        self._sorted = np.empty(0, np.uint32)
        """Sorted words, as numbers, and the position of each in `_words`; words added since are not sorted yet."""
        self.statistics: Statistics | None = None
        """Counts over all rows of a large owner, of which these are only the candidates of one search; else None."""
        self._joined: str | None = None
        self._memories: dict[str, list[int]] | None = None
        self._starts = np.empty(0, np.int64)
        self._chars = 0
        self.put(rows.sort_by([("seq_from", "ascending"), ("part", "ascending")]))

    def __len__(self) -> int:
        return len(self.lower)

    def held(self, moment: int, *, by_time: bool = False) -> np.ndarray:
        """Return a mask of the rows that are current at a seq, or at a time, inclusive."""
        start, end = ("from_at", "to_at") if by_time else ("seq_from", "seq_to")
        moment = min(moment, HOLDS - 1)
        return (self.numbers[start] <= moment) & (self.numbers[end] > moment)

    @property
    def size(self) -> int:
        """Approximate size in memory, in bytes."""
        arrays = (
            self._vectors.nbytes + self._words.nbytes + self._rows.nbytes + self._order.nbytes + self._sorted.nbytes
        )
        return CACHE_BYTES + arrays + 3 * self._chars + ROW_BYTES * len(self)

    def near(self, vector: np.ndarray) -> np.ndarray:
        """Return the cosine of each row with a vector of length 1."""
        return near_rows(self._vectors[: len(self)], vector)

    def put(self, rows: pa.Table) -> None:
        """Add new rows; of known rows update the end."""
        ids = rows.column("memory_id").to_pylist()
        known = [number for number, row_id in enumerate(ids) if row_id in self._places]
        for number in known:
            for name in ("seq_to", "to_at"):
                value = rows.column(name)[number].as_py()
                self.numbers[name][self._places[ids[number]]] = HOLDS if value is None else value
        if len(known) == len(ids):
            return
        if known:
            old = frozenset(known)
            rows = rows.take(int_array([number for number in range(len(ids)) if number not in old]))
        self._add(rows)

    def _add(self, rows: pa.Table) -> None:
        start = len(self)
        for number, row_id in enumerate(rows.column("memory_id").to_pylist(), start):
            self._places[row_id] = number
        for name in NUMBERS:
            new = numbers_of(rows.column(name).cast(pa.int64()).fill_null(int_value(HOLDS)), "<i8")
            self.numbers[name] = np.concatenate([self.numbers[name], new])
        for name in WORDS:
            self.fields[name] += rows.column(name).to_pylist()
        texts = self.fields["text"][start:]
        self._chars += sum(map(len, texts))
        self._add_words(rows.column("words").to_pylist(), start)
        self._add_vectors(vectors_in(rows), start)
        self.lower += [text.lower() for text in texts]
        self._joined = self._memories = None

    def _add_words(self, words: Sequence[str], start: int) -> None:
        lengths = np.fromiter((len(written) // 9 + bool(written) for written in words), np.int64, len(words))
        self._words = np.concatenate([self._words, unpacked_text(" ".join(words))])
        self._rows = np.concatenate(
            [self._rows, np.repeat(np.arange(start, start + len(words), dtype=np.int32), lengths)]
        )
        self.lengths = np.concatenate([self.lengths, lengths])

    def _add_vectors(self, new: np.ndarray, start: int) -> None:
        """Append vectors. Capacity grows by half, so that adding a row does not copy all others each time."""
        end = start + len(new)
        if end > len(self._vectors):
            room = np.zeros((end if not start else end + end // 2, new.shape[1]), np.float32)
            if start:
                room[:start] = self._vectors[:start]
            self._vectors = room
        self._vectors[start:end] = new

    def counts(self, word: int) -> np.ndarray | None:
        """Return how often a word is in each row; None if it is in none."""
        late = len(self._words) - len(self._sorted)
        if late > UNSORTED_MIN and late > len(self._sorted) // 4:
            self._order = np.argsort(self._words, kind="stable").astype(np.int32)
            self._sorted = self._words[self._order]
            late = 0
        start = np.searchsorted(self._sorted, np.uint32(word), side="left")
        end = np.searchsorted(self._sorted, np.uint32(word), side="right")
        found = self._rows[self._order[start:end]]
        if late:
            behind = len(self._sorted)
            found = np.concatenate([found, self._rows[behind:][self._words[behind:] == word]])
        return np.bincount(found, minlength=len(self)) if len(found) else None

    def rows_with(self, phrase: str) -> list[int]:
        """Return the rows whose lower-case text contains a phrase, ascending."""
        inner = words_of(phrase)[1:-1]
        if inner:
            return self._among(phrase, inner)
        if self._joined is None:
            self._joined = BETWEEN.join(self.lower)
            self._starts = np.cumsum([0, *(len(text) + 1 for text in self.lower)])
        rows: list[int] = []
        place = self._joined.find(phrase)
        while place >= 0:
            row = int(np.searchsorted(self._starts, place, side="right")) - 1
            rows.append(row)
            place = self._joined.find(phrase, int(self._starts[row + 1]))
        return rows

    def _among(self, phrase: str, inner: Sequence[int]) -> list[int]:
        """Return the same, but look only into rows with the inner words of the phrase, which must occur there
        unchanged.
        """
        rows = np.ones(len(self), bool)
        for word in set(inner):
            counts = self.counts(word)
            if counts is None:
                return []
            rows &= counts > 0
        return [row for row in np.flatnonzero(rows).tolist() if phrase in self.lower[row]]

    def rows_of(self, memory: str) -> list[int]:
        """Return all rows of a memory, including those that have ended."""
        if self._memories is None:
            self._memories = defaultdict(list)
            for row, found in enumerate(self.fields["memory"]):
                self._memories[found].append(row)
        return self._memories.get(memory, [])


def near_rows(rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return the cosine of each row, of length 1, with a vector of length 1.

    Computed in blocks too small for BLAS threads: on a busy machine, two threads that wait for each other take ten
    times as long as one.
    """
    found = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), DOT_ROWS):
        end = min(start + DOT_ROWS, len(rows))
        np.dot(rows[start:end], vector, out=found[start:end])
    return found
