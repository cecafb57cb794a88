"""Hand out the rows of one query over many agents, or those of kept contexts, to each agent, without copying them.

Used by the engine, the journal of hosts, and `actors/prompt/context.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, overload

Row = dict[str, Any]

Wanted = tuple[str, int] | tuple[str, int, int]
"""A question: an agent, a seq (inclusive), and for a context the turn of the call."""

EVERY_TURN = 2**63 - 2
"""Turn of a question that is about no turn: the context has the inputs of all turns."""

KEPT_COLUMNS = (
    "agent_id", "as_of", "slot", "seq", "turn", "step", "type", "message", "at", "version", "text", "shown_chars",
    "payload", "recall", "archival", "threshold",
)  # fmt: skip
"""Columns of a kept row: those of `context_window` without `during`, which is a part of the question, and `warned`,
which is the same in all rows.
"""
PLACES = {name: place for place, name in enumerate(KEPT_COLUMNS)}
"""Place of each column in a kept row."""
KeptRow = tuple[Any, ...]


class Rows(Sequence[Row]):
    """Rows of one agent, in the order of the log. A row becomes a dict only when it is read."""

    __slots__ = ("_columns", "_places")

    def __init__(self, columns: Mapping[str, Sequence[Any]], places: Sequence[int]) -> None:
        """Select the rows at `places` (from 0) of the columns of all agents."""
        self._columns = columns
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows": ...
    def __getitem__(self, index: int | slice) -> "Row | Rows":
        if isinstance(index, slice):
            return Rows(self._columns, self._places[index])
        place = self._places[index]
        return {name: column[place] for name, column in self._columns.items()}

    def __iter__(self) -> Iterator[Row]:
        names = list(self._columns)
        for row in self.values(*names):
            yield dict(zip(names, row, strict=True))

    def values(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Return only these columns, row by row: a fifth of the cost of a dict for each row. Raise KeyError."""
        return zip(*[map(self._columns[name].__getitem__, self._places) for name in names], strict=True)


class KeptRows(Sequence[Row]):
    """Rows of the context of one call, in its order. A row becomes a dict only when it is read."""

    __slots__ = ("_rows", "_same", "made")

    def __init__(self, rows: Sequence[KeptRow], same: Row, made: dict[int, Any]) -> None:
        """Create the rows. `same`: the columns `during` and `warned`, which are the same in all rows."""
        self._rows, self._same = rows, same
        self.made = made
        """Values that a reader makes of rows, by seq. They are kept as long as the rows: the next reader finds them."""

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> "KeptRows": ...
    def __getitem__(self, index: int | slice) -> "Row | KeptRows":
        if isinstance(index, slice):
            return KeptRows(self._rows[index], self._same, self.made)
        return {**dict(zip(KEPT_COLUMNS, self._rows[index], strict=True)), **self._same}

    def values(self, *names: str) -> Iterator[KeptRow]:
        """Return only these columns, row by row. Raises KeyError."""
        return map(itemgetter(*(PLACES[name] for name in names)), self._rows)


def place_of(columns: Mapping[str, Sequence[Any]]) -> str | None:
    """Return the name of the column with a row's place in the log; None if the rows have their order already."""
    return None if "shown_chars" in columns else next((name for name in ("seq", "turn") if name in columns), None)


def answers(columns: Mapping[str, Sequence[Any]], wanted: Sequence[Wanted]) -> list[Rows]:
    """Return the rows of each of `wanted`, in the order of the log, or of the context. `columns` has what is wanted."""
    places: dict[Wanted, list[int]] = {pair: [] for pair in wanted}
    names = ("agent_id", "as_of", "during")[: len(wanted[0]) if wanted else 2]
    for place, pair in enumerate(zip(*(columns[name] for name in names), strict=True)):
        places[pair].append(place)
    ordered = place_of(columns)
    if ordered is not None:
        for own in places.values():
            own.sort(key=columns[ordered].__getitem__)
    return [Rows(columns, places[pair]) for pair in wanted]
