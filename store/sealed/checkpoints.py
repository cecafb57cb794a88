"""Make checkpoints: states in the middle of long streams, so that viewing any moment costs about as much as viewing the
end.

Next to the states at the end of a sealed file there is a file of checkpoints: a state after every CHECKPOINT_RECORDS
records of an agent that has many. The manifest has a chain checkpoint, a chain value, for every MARK_RECORDS. Both are
made when frames are sealed and carried over when files are merged. They are never required: without a checkpoint, read
the records.

Used by `seal_pass` and `sealed_reader`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from everlog.store.base.arrow_schema import records_of
from everlog.store.base.arrow_values import int_array, text_value
from everlog.store.base.contract import StateDeriver
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.base.store_constants import CHECKPOINT_RECORDS, MARK_RECORDS
from everlog.store.partition.append_rules import follow
from everlog.store.partition.chain_lookup import nearest_known
from everlog.store.partition.manifest import FRAMES, SEALED, FileEntry, Manifest
from everlog.store.sealed.parquet_file import where

OWN_SEQ = "own_seq"
"""Name of the column that holds the `seq` of a state's row in a file of checkpoints; `seq` there is that of the
checkpoint.
"""

ChainCheckpoints = dict[str, list[tuple[int, str]]]
"""Seqs of each stream, and the chain value (hexadecimal) at each seq."""


def checkpoints_of(manifest: Manifest, inputs: Sequence[FileEntry], tables: Mapping[str, pa.Table]) -> ChainCheckpoints:
    """Return the chain checkpoints of a file that is made of `inputs`, spaced apart; `tables` are their records by file
    name.
    """
    found: ChainCheckpoints = defaultdict(list)
    for entry in inputs:
        inside = _chain_checkpoints(manifest, tables[entry.name]) if entry.kind == FRAMES else entry.marks
        for name, end in entry.chains.items():
            found[name] += [*inside.get(name, ()), end]
    first = inputs[0].first_commit
    before = {n: s for entry in manifest.files if entry.first_commit < first for n, (s, _) in entry.chains.items()}
    apart = {name: _spaced_checkpoints(marks, before.get(name, 0)) for name, marks in sorted(found.items())}
    return {name: marks for name, marks in apart.items() if marks}


def _spaced_checkpoints(marks: Sequence[tuple[int, str]], last: int) -> list[tuple[int, str]]:
    """Return those of `marks`, in order, that are far from the one before, from `last`, and from the final mark, the
    file's end.
    """
    kept = []
    for seq, chain in marks:
        if min(seq - last, marks[-1][0] - seq) >= MARK_RECORDS // 2:
            kept.append((seq, chain))
            last = seq
    return kept


def _chain_checkpoints(manifest: Manifest, table: pa.Table) -> ChainCheckpoints:
    """Return the chain checkpoints of the streams that have many records in a file of frames."""
    found: ChainCheckpoints = {}
    for name, own in long_streams(table, 2 * MARK_RECORDS):
        heads = {name: nearest_known(manifest, name, own.column("seq")[0].as_py() - 1)}
        found[name] = []
        for start in range(0, own.num_rows - MARK_RECORDS, MARK_RECORDS):
            follow(heads, list(records_of(own.slice(start, MARK_RECORDS))), "sealing")
            found[name].append((heads[name].seq, heads[name].chain.hex()))
    return found


def long_streams(table: pa.Table, records_min: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield the streams with at least `records_min` records in `table`, each with its records in order."""
    for row in pc.value_counts(table.column("agent_id")).to_pylist():
        if row["counts"] >= records_min:
            own = pc.equal(table.column("agent_id"), text_value(row["values"]))
            yield row["values"], where(table, own).sort_by("seq")


class StreamCheckpoints(NamedTuple):
    """States derived step by step for the long streams among some records."""

    names: list[str]
    ends: list[pa.Table]
    """States of the streams at the end, where one could be derived."""
    between: list[pa.Table]
    """Checkpoints of the streams, as rows of a file of checkpoints."""


def derive_long_streams(derive: StateDeriver, earlier: pa.Table | None, records: pa.Table) -> StreamCheckpoints:
    """Derive each stream that has many records in `records` separately; `earlier` are the states before these records.

    Deriving step by step costs hardly more than all at once, because a state is small.
    """
    found = StreamCheckpoints([], [], [])
    for name, own in long_streams(records, 2 * CHECKPOINT_RECORDS):
        before = earlier.filter(pc.equal(earlier.column("agent_id"), text_value(name))) if earlier is not None else None
        before = before if before is not None and before.num_rows else None
        found.names.append(name)
        found.ends.append(_fold(derive, before, own, found.between))
    return found


def _fold(derive: StateDeriver, before: pa.Table | None, own: pa.Table, between: list[pa.Table]) -> pa.Table:
    """Return the state after all records of one stream; append the checkpoints on the way to `between`."""
    state, start = before, 0
    while own.num_rows - start >= 2 * CHECKPOINT_RECORDS:
        chunk = own.slice(start, CHECKPOINT_RECORDS)
        start += CHECKPOINT_RECORDS
        state = derive(state, chunk)
        if not state.num_rows:  # no state: a summary reaches further back than the state before it holds
            state = derive(before, own.slice(0, start))
        if not state.num_rows:
            return derive(before, own)
        between.append(checkpoint_rows(state, chunk.column("seq")[-1].as_py()))
    end = derive(state, own.slice(start))
    return end if end.num_rows else derive(before, own)


def distant_ends(manifest: Manifest, inputs: Sequence[FileEntry]) -> Iterator[tuple[FileEntry, dict[str, int]]]:
    """Yield the sealed files among `inputs`, which become one file, with the ends of streams that are far from any
    earlier state.

    The states at those ends are worth keeping as checkpoints, because an end becomes a place in the middle.
    """
    first = inputs[0].first_commit
    last = {n: s for entry in manifest.files if entry.first_commit < first for n, (s, _) in entry.chains.items()}
    for entry in inputs:
        last.update((name, max(seqs)) for name, seqs in entry.held.items())
        ends = {name: end for name, (end, _) in entry.chains.items()}
        far = {name: end for name, end in ends.items() if end - last.get(name, 0) >= CHECKPOINT_RECORDS}
        if entry.kind == SEALED and far:
            last.update(far)
            yield entry, far


def checkpoint_rows(state: pa.Table, seq: int) -> pa.Table:
    """Return a state as rows of a file of checkpoints."""
    names = [OWN_SEQ if name == "seq" else name for name in state.column_names]
    return state.rename_columns(names).append_column("seq", int_array([seq] * state.num_rows))


def state_of(rows: pa.Table) -> pa.Table:
    """Return the rows of one checkpoint as a state."""
    rows = rows.drop_columns(["seq"])
    return rows.rename_columns(["seq" if name == OWN_SEQ else name for name in rows.column_names]).sort_by("seq")


def places_of(rows: pa.Table) -> dict[str, list[int]]:
    """Return the seqs of the checkpoints in `rows`, by agent."""
    found: dict[str, list[int]] = defaultdict(list)
    # Not by `group_by` of Arrow, which imports pandas, if it is installed.
    pairs = set(zip(rows.column("agent_id").to_pylist(), rows.column("seq").to_pylist(), strict=True))
    for agent_id, seq in sorted(pairs):
        found[agent_id].append(seq)
    return dict(found)


def merge_checkpoints(fresh: Sequence[pa.Table], carried: Sequence[pa.Table]) -> pa.Table | None:
    """Return all checkpoints in one table without duplicates, `fresh` before `carried`; None if there are none."""
    found = list(fresh)
    known = {(name, seq) for table in fresh for name, seqs in places_of(table).items() for seq in seqs}
    for table in carried:
        for name, seqs in places_of(table).items():
            new = [seq for seq in seqs if (name, seq) not in known]
            known.update((name, seq) for seq in new)
            own = table.filter(pc.equal(table.column("agent_id"), text_value(name)))
            found.append(own.filter(pc.is_in(own.column("seq"), int_array(new))))
    return pa.concat_tables(found) if any(table.num_rows for table in found) else None
