"""Combine the rows of an agent with those of its ancestors that were current at the fork point. No row is copied.

A fork's own rows record only which memories of its ancestors it changed or deleted, and when: rows of kind ENDED.
Everything else is combined here at search time.

Used by `row_caches`, `hybrid_search` and `write_batch`.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import numpy as np

from everlog.events import UnknownAgent
from everlog.store.archive.row_cache import HOLDS, RowCache


class ParentLookup(Protocol):
    """Part of a store that knows forks."""

    def parent_of(self, agent_id: str) -> tuple[str, int] | None: ...


class Lineage:
    """Cache of each agent's parent and fork point, which never change."""

    def __init__(self, store: ParentLookup) -> None:
        self._store = store
        self._parents: dict[str, tuple[str, int] | None] = {}

    def parent(self, agent_id: str) -> tuple[str, int] | None:
        """Return the parent of a fork and the fork point; None for an agent that is not a fork."""
        if agent_id not in self._parents:
            with suppress(UnknownAgent):  # the agent may be registered later
                self._parents[agent_id] = self._store.parent_of(agent_id)
        return self._parents.get(agent_id)

    def is_fork(self, agent_id: str) -> bool:
        """Return True if the agent is a fork."""
        return self.parent(agent_id) is not None

    def of(self, agent_id: str) -> list[tuple[str, int]]:
        """Return an agent, its parent, the parent's parent and so on, each with its own fork point; 0 if it is not a
        fork.
        """
        found = []
        above = self.parent(agent_id)
        while above is not None:
            found.append((agent_id, above[1]))
            agent_id = above[0]
            above = self.parent(agent_id)
        return [*found, (agent_id, 0)]


class AncestorRows(NamedTuple):
    """Rows of an agent, or of one of its ancestors."""

    row_cache: RowCache
    ended: Sequence[tuple[int, str]]
    """Memories of ancestors that the agent ended, ascending: seq and memory, or an empty memory for all of them."""
    cut: int
    """Fork point: up to this seq the agent has its parent's rows; 0 if it has no parent."""


class _First(NamedTuple):
    """Fields that a changed memory takes over from its first record."""

    seq: int
    created_at: int
    source: str


class RowSelection:
    """A row cache, and which of its rows are current."""

    def __init__(self, row_cache: RowCache, keep: np.ndarray, moment: int = HOLDS) -> None:
        """Select rows of a cache: `keep` is a mask of current rows, `moment` the seq at which they are current."""
        self.row_cache = row_cache
        self.keep = keep
        self._moment = moment
        self._firsts: dict[int, _First] = {}

    def numbers(self, name: str) -> np.ndarray:
        """Return a numeric field of each row."""
        column = self.row_cache.numbers[name]
        if not self._firsts or name not in _First._fields:
            return column
        column = column.copy()
        for row, first in self._firsts.items():
            column[row] = getattr(first, name)
        return column

    def sources(self) -> Sequence[str]:
        """Return the origin of the memory of each row."""
        column: list[str] = self.row_cache.fields["source"]
        return [self.first(row).source for row in range(len(column))] if self._firsts else column

    def known(self, memory: str) -> list[int]:
        """Return the rows of a memory that existed at the moment, current or ended."""
        starts = self.row_cache.numbers["seq_from"]
        return [row for row in self.row_cache.rows_of(memory) if starts[row] <= self._moment]

    def first(self, row: int) -> _First:
        """Return the fields of the first record of a row's memory."""
        if row in self._firsts:
            return self._firsts[row]
        numbers = self.row_cache.numbers
        return _First(int(numbers["seq"][row]), int(numbers["created_at"][row]), self.row_cache.fields["source"][row])

    def continue_memory(self, memory: str, seq: int, first: _First | None) -> None:
        """Continue an ancestor's memory in the rows that the record `seq` made of it, with the fields of its `first`
        record.

        With `first` None the memory had ended by then, and these rows are not current either.
        """
        for row in self.row_cache.rows_of(memory):
            if self.row_cache.numbers["seq"][row] == seq:
                if first is None:
                    self.keep[row] = False
                else:
                    self._firsts[row] = first


def parts_of(generations: Sequence[AncestorRows], moment: int) -> list[RowSelection]:
    """Return the rows that an agent had at a seq (inclusive): those of its oldest ancestor first, its own last."""
    own, *older = generations
    part = RowSelection(own.row_cache, own.row_cache.held(moment), moment)
    if not older:
        return [part]
    before = parts_of(older, min(moment, own.cut))
    for seq, memory in own.ended:
        if seq <= moment:
            _end(before, part, seq, memory)
    return [*before, part]


def _end(before: Sequence[RowSelection], part: RowSelection, seq: int, memory: str) -> None:
    """End one memory, or all, among the rows that a fork has from its ancestors."""
    if not memory:
        for older in before:
            older.keep[:] = False
        return
    known = [(older, row) for older in before for row in older.known(memory)]
    held = [(older, row) for older, row in known if older.keep[row]]
    if known:
        part.continue_memory(memory, seq, held[0][0].first(held[0][1]) if held else None)
    for older, row in held:
        older.keep[row] = False
