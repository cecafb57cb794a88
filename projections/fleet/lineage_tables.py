"""Make small tables of incarnations, forks and names of a whole fleet, once, when the views over the fleet are made.

Used by `fleet_views`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

RecreationSeqs = Mapping[str, Sequence[int]]
"""For agents that were created again: the seqs of these creations, in order."""
ForkPoints = Mapping[str, tuple[str, int]]
"""For each fork: its parent and its fork point."""

_END = 2**63 - 1


def lives_table(births: RecreationSeqs) -> pa.Table:
    """Return the incarnations after the first: from seq `first` up to `next`, exclusive."""
    rows = [
        (name, number + 2, first, following)
        for name, seqs in births.items()
        for number, (first, following) in enumerate(zip(seqs, [*seqs[1:], _END], strict=True))
    ]
    return _table(rows, {"agent_id": pa.string(), "life": pa.int64(), "first": pa.int64(), "next": pa.int64()})


def forks_table(forks: ForkPoints) -> pa.Table:
    """Return each fork with its parent and its fork point."""
    rows = [(name, parent, cut) for name, (parent, cut) in forks.items()]
    return _table(rows, {"agent_id": pa.string(), "parent": pa.string(), "parent_seq": pa.int64()})


def names_table(names: Mapping[str, str]) -> pa.Table:
    """Return the newest name that was given to an agent, for each agent that has one."""
    return _table(list(names.items()), {"agent_id": pa.string(), "name": pa.string()})


def lineage_table(forks: ForkPoints, births: RecreationSeqs, names: Iterable[str]) -> pa.Table:
    """Return the foreign records that belong to the forks `names`:
    those of a `life` of an `ancestor`, up to seq `upto` (inclusive).
    """
    rows = [(name, *part) for name in names for part in _ancestors(name, forks, births)]
    columns = {"agent_id": pa.string(), "ancestor": pa.string(), "life": pa.int64(), "upto": pa.int64()}
    return _table(rows, columns)


def _ancestors(name: str, forks: ForkPoints, births: RecreationSeqs) -> list[tuple[str, int, int]]:
    """Return the ancestors from the parent upwards, each with its incarnation at the fork point, and the fork point. An
    incarnation after the first has no ancestors.
    """
    found: dict[str, tuple[str, int, int]] = {}
    ancestor, upto = forks[name]
    while ancestor not in found:
        life = 1 + bisect_right(births.get(ancestor, ()), upto)
        found[ancestor] = (ancestor, life, upto)
        if life == 1 and ancestor in forks:
            above, cut = forks[ancestor]
            ancestor, upto = above, min(upto, cut)
    return list(found.values())


def _table(rows: Sequence[Sequence[object]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    schema = pa.schema(list(columns.items()))
    if not rows:  # the usual case: any array of Python values, an empty one too, makes Arrow load pandas (0.2 s)
        return pa.Table.from_batches([], schema)
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema)
