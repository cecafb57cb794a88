"""The rows of one agent, or of one source, in memory: what was searched lately is not read again.

A row only ever changes in when it ends, so following the log keeps a shelf true by adding rows and ending others.
Words are two flat arrays, the word and the row it is in: looking for a word is one pass, and adding is appending.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from .table import ROW_FIELDS, vectors_in
from .words import unpacked

HOLDS = 2**63 - 1
"""`seq_to` and `to_at` of a row that still holds: beyond every moment that can be asked for."""
ROW_BYTES = 700
"""What the fields of a row take beside text, words and vector, about."""
COLUMNS = (*ROW_FIELDS, "words", "vector")
NUMBERS = ("seq", "part", "created_at", "seq_from", "from_at", "seq_to", "to_at")
WORDS = ("memory", "text", "tags", "source", "document", "parts", "digest")


class Shelf:
    """Rows in the order in which they came. One thread at a time."""

    def __init__(self, rows: pa.Table) -> None:
        """`rows` have all of COLUMNS."""
        self._places: dict[str, int] = {}
        self.numbers: dict[str, np.ndarray] = {name: np.empty(0, np.int64) for name in NUMBERS}
        self.fields: dict[str, list[Any]] = {name: [] for name in WORDS}
        self.lower: list[str] = []
        self._vectors = np.empty((0, 0), np.float32)
        self._words = np.empty(0, np.uint32)
        self._rows = np.empty(0, np.int32)
        self.lengths = np.empty(0, np.int64)
        """Words of each row."""
        self._chars = 0
        self.put(rows.sort_by([("seq_from", "ascending"), ("part", "ascending")]))

    def __len__(self) -> int:
        return len(self.lower)

    def held(self, moment: int, *, by_time: bool = False) -> np.ndarray:
        """Whether each row holds at a seq, or at a time, inclusive."""
        start, end = ("from_at", "to_at") if by_time else ("seq_from", "seq_to")
        moment = min(moment, HOLDS - 1)
        return (self.numbers[start] <= moment) & (self.numbers[end] > moment)

    @property
    def size(self) -> int:
        """What it takes in memory, about."""
        arrays = self._vectors.nbytes + self._words.nbytes + self._rows.nbytes
        return arrays + 2 * self._chars + ROW_BYTES * len(self)

    @property
    def vectors(self) -> np.ndarray:
        """Of all rows, float32."""
        return self._vectors[: len(self)]

    def put(self, rows: pa.Table) -> None:
        """Add rows, and end those that are here."""
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
            rows = rows.take([number for number in range(len(ids)) if number not in old])
        self._add(rows)

    def _add(self, rows: pa.Table) -> None:
        start = len(self)
        for number, row_id in enumerate(rows.column("memory_id").to_pylist(), start):
            self._places[row_id] = number
        for name in NUMBERS:
            new = rows.column(name).cast(pa.int64()).fill_null(HOLDS).to_numpy()
            self.numbers[name] = np.concatenate([self.numbers[name], new])
        for name in WORDS:
            self.fields[name] += rows.column(name).to_pylist()
        texts = self.fields["text"][start:]
        self._chars += sum(map(len, texts))
        self._add_words(rows.column("words").to_pylist(), start)
        self._add_vectors(vectors_in(rows), start)
        self.lower += [text.lower() for text in texts]

    def _add_words(self, words: Sequence[bytes], start: int) -> None:
        lengths = np.fromiter((len(data) // 4 for data in words), np.int64, len(words))
        self._words = np.concatenate([self._words, unpacked(b"".join(words))])
        self._rows = np.concatenate(
            [self._rows, np.repeat(np.arange(start, start + len(words), dtype=np.int32), lengths)]
        )
        self.lengths = np.concatenate([self.lengths, lengths])

    def _add_vectors(self, new: np.ndarray, start: int) -> None:
        """Room grows by halves, so that a row more does not move all others."""
        end = start + len(new)
        if end > len(self._vectors):
            room = np.zeros((end if not start else end + end // 2, new.shape[1]), np.float32)
            if start:
                room[:start] = self._vectors[:start]
            self._vectors = room
        self._vectors[start:end] = new

    def counts(self, word: int) -> np.ndarray | None:
        """How often a word is in each row; None if it is in none."""
        found = self._rows[self._words == word]
        return np.bincount(found, minlength=len(self)) if len(found) else None

    def holding(self, digest: bytes) -> list[str]:
        """The ids of the memories that hold now, and whose whole text has this digest."""
        digests, ends = self.fields["digest"], self.numbers["seq_to"]
        return [self.fields["memory"][row] for row in range(len(self)) if digests[row] == digest and ends[row] == HOLDS]
