"""Find the rows of a large owner that a search can rank first, with LanceDB's indices instead of all rows in memory.

An owner is large above LARGE_ROWS rows. Its vector index gives the nearest rows, its full-text index those with the
words and the phrases of the query, both after a filter on owner, moment and conditions. The rows found are a small row
cache, which `hybrid_search` ranks as it ranks any other; `Statistics` has what must be counted over all rows.

Used by `row_caches`. Words are compared as the tokens of `written_words`, so that both ways of searching know the same
words. A search must not mix two versions of a table: row ids of one mean nothing in another.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

import msgspec
import numpy as np
import pyarrow as pa

from everlog.store.archive.archive_constants import NEAREST, PHRASE_ROWS, WORD_ROWS
from everlog.store.archive.archive_table import LIMIT, Table, contains_all, equal
from everlog.store.archive.row_cache import COLUMNS, RowCache, Statistics
from everlog.store.base.archive_query import ArchiveQuery
from everlog.store.base.stemming import phrases_in
from everlog.store.embedding.tokenizer import query_numbers, token_of, unpacked_text, without_quotes, words_of

SAMPLE_ROWS = 1_000
"""Rows of which the average length is taken."""


class Asked(msgspec.Struct, frozen=True):
    """A search, with the vector of its query; None for a query without words."""

    wanted: ArchiveQuery
    vector: np.ndarray | None


class OwnerSize(msgspec.Struct, frozen=True):
    """Size of an owner, counted once for each version of the table."""

    rows: int
    length: float
    """Average number of words of a row."""


def size_of(table: Table, condition: str, large_rows: int) -> OwnerSize:
    """Return the size of an owner, whose rows match a condition; the average is taken if it has over `large_rows`."""
    rows = table.count(condition)
    if rows <= large_rows:
        return OwnerSize(rows, 0.0)
    words = table.read(condition, ["words"], SAMPLE_ROWS).column("words").to_pylist()
    return OwnerSize(rows, sum(len(unpacked_text(text)) for text in words) / max(len(words), 1))


def conditions_of(wanted: ArchiveQuery) -> list[str]:
    """Return the conditions of a search besides owner and moment."""
    found = []
    if wanted.after is not None:
        found.append(f"created_at >= {wanted.after}")
    if wanted.before is not None:
        found.append(f"created_at < {wanted.before}")
    if wanted.source:
        found.append(equal("source", wanted.source))
    if wanted.memory:
        found.append(equal("memory", wanted.memory))
    if wanted.tags:
        found.append(contains_all("tags", wanted.tags))
    return found


def candidates(table: Table, condition: str, asked: Asked, size: OwnerSize) -> RowCache:
    """Return a row cache of the rows among which are the best of a search, with its `statistics`. `condition`: the rows
    of the owner that are current and pass the conditions. Raises ArchiveError.
    """
    return table.consistently(lambda: _candidates(table, condition, asked, size))


def _candidates(table: Table, condition: str, asked: Asked, size: OwnerSize) -> RowCache:
    wanted = asked.wanted
    if not wanted.query.strip():
        return _newest(table, condition, wanted, size)
    words = query_numbers(wanted.query)
    having = {word: table.rows_with_all([token_of(word)], condition, LIMIT) for word in words}
    near = np.empty(0, np.uint64) if asked.vector is None else table.nearest(asked.vector, condition, NEAREST)
    found = _union([near, *having.values()])
    depth = max(WORD_ROWS, 2 * (wanted.first + wanted.count))
    best = table.rows_with_any([token_of(word) for word in words], condition, depth) if words else near
    phrases = {without_quotes(wanted.query), *phrases_in(wanted.query)[0]}
    holding = [_rows_with(table, phrase, condition, having) for phrase in phrases]
    cache = RowCache(table.at(_union([near, best, *holding]), COLUMNS))
    counts = {word: len(rows) for word, rows in having.items()}
    cache.statistics = Statistics(table.count(condition), len(found), counts, size.length)
    return cache


def _rows_with(table: Table, phrase: str, condition: str, having: Mapping[int, np.ndarray]) -> np.ndarray:
    """Return rows with the inner words of a phrase, which occur unchanged where the phrase does; with all its words if
    it has no inner ones. `having`: rows of some words, which are enough if few rows have them all.
    """
    words = words_of(phrase)
    words = words[1:-1] or words
    known = [having[word] for word in set(words) & having.keys()]
    if known:
        rows = reduce(np.intersect1d, sorted(known, key=len))
        if len(rows) <= PHRASE_ROWS:
            return rows
    tokens = [token_of(word) for word in words]
    return table.rows_with_all(tokens, condition, PHRASE_ROWS) if tokens else np.empty(0, np.uint64)


def _newest(table: Table, condition: str, wanted: ArchiveQuery, size: OwnerSize) -> RowCache:
    """Return the rows that an empty query shows first."""
    found = table.read(condition, ["from_at", "seq_from", "part"], row_ids=True)
    numbers = {name: found.column(name).cast(pa.int64()).to_numpy() for name in ("from_at", "seq_from", "part")}
    order = np.lexsort([numbers["part"], -numbers["seq_from"], -numbers["from_at"]])[: wanted.first + wanted.count]
    cache = RowCache(table.at(found.column("_rowid").to_numpy()[order], COLUMNS))
    cache.statistics = Statistics(found.num_rows, found.num_rows, {}, size.length)
    return cache


def _union(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return row ids without duplicates, ascending."""
    found: np.ndarray = np.unique(np.concatenate(rows))
    return found
