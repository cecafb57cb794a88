"""Of whose rows an agent's memory is made: its own, and of each ancestor those that held at the cut. Nothing is copied.

A fork's rows say nothing of its ancestors' but which of their memories it changed or deleted, and when: rows of the
kind ENDED. Everything else is put together here, when somebody asks.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import numpy as np

from everlog.events import UnknownAgent
from everlog.store.archive.row_cache import HOLDS, RowCache


class ParentLookup(Protocol):
    """What is known of forks: a store."""

    def parent_of(self, agent_id: str) -> tuple[str, int] | None: ...


class Lineage:
    """Who was forked from whom, and where: asked once of each, for it never changes."""

    def __init__(self, store: ParentLookup) -> None:
        self._store = store
        self._parents: dict[str, tuple[str, int] | None] = {}

    def parent(self, agent_id: str) -> tuple[str, int] | None:
        """The parent of a fork and the cut; None for everybody else."""
        if agent_id not in self._parents:
            with suppress(UnknownAgent):  # it may be registered later
                self._parents[agent_id] = self._store.parent_of(agent_id)
        return self._parents.get(agent_id)

    def is_fork(self, agent_id: str) -> bool:
        """Whether an agent was forked from another one."""
        return self.parent(agent_id) is not None

    def of(self, agent_id: str) -> list[tuple[str, int]]:
        """An agent, its parent, the parent of that, each with the cut up to which it is its own parent; 0 for none."""
        found = []
        above = self.parent(agent_id)
        while above is not None:
            found.append((agent_id, above[1]))
            agent_id = above[0]
            above = self.parent(agent_id)
        return [*found, (agent_id, 0)]


class AncestorRows(NamedTuple):
    """The rows of an agent, or of one of its ancestors."""

    row_cache: RowCache
    ended: Sequence[tuple[int, str]]
    """What it ended of what its ancestors kept, rising: seq and memory, or no memory for all of them."""
    cut: int
    """Up to which seq it is as its parent was; 0 if it has none."""


class _First(NamedTuple):
    """What a changed memory has of its first record."""

    seq: int
    created_at: int
    source: str


class RowSelection:
    """A shelf, and which of its rows count."""

    def __init__(self, row_cache: RowCache, keep: np.ndarray, moment: int = HOLDS) -> None:
        """`keep`: whether each row counts; `moment`: the seq of which they do."""
        self.row_cache = row_cache
        self.keep = keep
        self._moment = moment
        self._firsts: dict[int, _First] = {}

    def numbers(self, name: str) -> np.ndarray:
        """A number of each row."""
        column = self.row_cache.numbers[name]
        if not self._firsts or name not in _First._fields:
            return column
        column = column.copy()
        for row, first in self._firsts.items():
            column[row] = getattr(first, name)
        return column

    def sources(self) -> Sequence[str]:
        """Where the memory of each row came from."""
        column: list[str] = self.row_cache.fields["source"]
        return [self.first(row).source for row in range(len(column))] if self._firsts else column

    def known(self, memory: str) -> list[int]:
        """The rows of a memory that were there by then, whether they still held or not."""
        starts = self.row_cache.numbers["seq_from"]
        return [row for row in self.row_cache.rows_of(memory) if starts[row] <= self._moment]

    def first(self, row: int) -> _First:
        """What is known of the first record of a row's memory."""
        if row in self._firsts:
            return self._firsts[row]
        numbers = self.row_cache.numbers
        return _First(int(numbers["seq"][row]), int(numbers["created_at"][row]), self.row_cache.fields["source"][row])

    def continue_memory(self, memory: str, seq: int, first: _First | None) -> None:
        """The rows of a memory that was an ancestor's until `seq`: it was kept first as `first` says; None: it was gone
        by then, and nothing said of it later counts.
        """
        for row in self.row_cache.rows_of(memory):
            if self.row_cache.numbers["seq"][row] == seq:
                if first is None:
                    self.keep[row] = False
                else:
                    self._firsts[row] = first

    def holding(self, digest: bytes) -> list[str]:
        """The ids of the memories that count, and whose whole text has this digest."""
        fields = self.row_cache.fields
        return [fields["memory"][row] for row in np.flatnonzero(self.keep) if fields["digest"][row] == digest]


def parts_of(generations: Sequence[AncestorRows], moment: int) -> list[RowSelection]:
    """What an agent had at a seq (inclusive): the part of its oldest ancestor first, its own last."""
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
    """What was `before` a fork holds no longer: one memory, or all."""
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
