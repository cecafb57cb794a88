"""Seal: turn frames into a Parquet file, merge small sealed files into it, carry out erasures.

A `SealPass` does not change the partition: it writes new files next to the old ones and returns the change for the next
manifest. The owner of the partition publishes that manifest and then removes the replaced files. The records of new
files are read back and compared before any manifest names them. Used by `FileLog.seal`; hosts call `seal_if_due`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import NamedTuple

import msgspec
import pyarrow as pa

from everlog.events import CorruptLog, Fenced, StoreError
from everlog.store.base.arrow_schema import SCHEMA, text_bytes
from everlog.store.base.arrow_values import empty_table, int_value, text_array
from everlog.store.base.contract import Log, Progress, StateDeriver
from everlog.store.base.disk import remove_if_there
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.base.store_constants import MERGE_RATIO, MERGED_BYTES_MAX, SEAL_BYTES_MIN, SEGMENT_BYTES_MAX
from everlog.store.partition.manifest import FRAMES, SEALED, FileEntry, Manifest, ParquetEntry, load
from everlog.store.partition.partition import Partition, sealed_name
from everlog.store.partition.segment import closed_frames
from everlog.store.sealed.checkpoints import (
    ChainCheckpoints,
    checkpoint_rows,
    checkpoints_of,
    derive_long_streams,
    distant_ends,
    merge_checkpoints,
    places_of,
)
from everlog.store.sealed.derived_columns import FIGURES_VERSION
from everlog.store.sealed.erasure import Erasures, erase_records, erasures_in
from everlog.store.sealed.parquet_file import is_whole, save, where
from everlog.store.sealed.rare_kinds import rare_kinds
from everlog.store.sealed.sealed_reader import COMMIT_ORDER, checkpoints_in, rows_of, state_rows, whole

StreamLoader = Callable[[str], pa.Table]
"""Function that returns all records of an agent, by seq, from all partitions that the agent was in."""


class ManifestChange(NamedTuple):
    """Change for the next manifest: `after` replaces the files `before`, and each file of `rewritten` replaces
    its key.
    """

    before: Sequence[FileEntry]
    after: FileEntry
    rewritten: dict[str, FileEntry]
    erased: int
    erasing: bool
    """True if an erasure was carried out: then the saved torn tails (`.cut`) are removed too."""

    def files(self, files: Sequence[FileEntry]) -> list[FileEntry]:
        """Return the live files after the change; `files` are those before the change, perhaps with newer files at the
        end.
        """
        gone = {entry.name for entry in self.before}
        start = next(index for index, entry in enumerate(files) if entry.name in gone)
        kept = [self.rewritten.get(entry.name, entry) for entry in files]
        return [*kept[:start], self.after, *(entry for entry in kept[start:] if entry.name not in gone)]


def seal_if_due(log: Log, derive: StateDeriver, bytes_min: int = SEAL_BYTES_MIN) -> str:
    """Seal a log that has at least `bytes_min` bytes to seal. Return the error if sealing failed, else an empty text.

    A failure loses nothing, and agents can run. Raises Fenced.
    """
    try:
        if log.unsealed_bytes >= bytes_min:
            log.seal(derive)
    except Fenced:
        raise
    except StoreError as error:
        return str(error)
    return ""


class SealPass:
    """One step of sealing, with as many frames as fit well into memory. May raise OSError, CorruptLog, StoreError."""

    def __init__(self, partition: Partition, manifest: Manifest, epoch: int, derive: StateDeriver | None,
                 progress: Progress | None, tried: AbstractSet[str] = frozenset(),
                 history: StreamLoader | None = None) -> None:  # fmt: skip
        """Prepare a step. `tried` names sealed files for which deriving a state was attempted already.

        `history` returns the records of an agent that arrived from another partition; without it such agents get no
        state.
        """
        self._where = partition
        self._manifest = manifest
        self._epoch = epoch
        self._derive = derive
        self._history = history
        self._progress = progress or (lambda _done, _all: None)
        self._closed = [entry for entry in manifest.files if entry.kind in (FRAMES, SEALED)]
        self._inputs = files_to_seal(self._closed) or self._file_without_state(tried)
        self._erasures: Erasures = {}
        self._begun: list[str] = []

    def run(self) -> ManifestChange | None:
        """Write the new files and return the change; None if there is nothing to seal."""
        if not self._inputs:
            return None
        weight = sum(entry.bytes for entry in self._inputs)
        tables = self._read(weight)
        frames = [tables[entry.name] for entry in self._inputs if entry.kind == FRAMES]
        fresh = pa.concat_tables([empty_table(SCHEMA), *frames])
        self._erasures = erasures_in(fresh)
        table, count = erase_records(pa.concat_tables(list(tables.values())), self._erasures)
        rewritten = {}
        for entry in self._others():
            changed, more = self._rewritten(entry)
            rewritten[entry.name] = changed
            count += more
        after = self._sealed(table, checkpoints_of(self._manifest, self._inputs, tables))
        files = [rewritten.get(entry.name, entry) for entry in self._closed if entry not in self._inputs]
        if self._derive is not None:
            fresh, _ = erase_records(fresh, self._erasures)
            after = self._with_states(self._derive, files, after, table, fresh)
        # The names of the new files are durable before a manifest can name them.
        self._where.disk.sync_dir(self._where.path)
        self._progress(2 * weight, 2 * weight)
        return ManifestChange(self._inputs, after, rewritten, count, bool(self._erasures))

    def _file_without_state(self, tried: AbstractSet[str]) -> list[FileEntry]:
        """Return a sealed file whose state this derivation cannot use, if there is one: it is written again, with a
        state.
        """
        if self._derive is None:
            return []
        later: set[str] = set()
        for entry in reversed(self._closed):
            state, newest = entry.state, set(entry.chains) - later
            later.update(entry.chains)
            if not newest or entry.name in tried:
                continue
            unusable = state is None or state.maker != self._derive.maker or not is_whole(self._where, state)
            if unusable or self._is_damaged(entry):
                return [entry]
        return []

    def _is_damaged(self, entry: FileEntry) -> bool:
        """Return True if the checkpoints of a file cannot be read."""
        return entry.checkpoints is not None and not is_whole(self._where, entry.checkpoints)

    def _read(self, weight: int) -> dict[str, pa.Table]:
        """Return the records of the inputs by file. A damaged sealed file, and the files before it, are left out:
        merging can wait.
        """
        tables: dict[str, pa.Table] = {}
        done = 0
        for entry in reversed(self._inputs):
            try:
                tables[entry.name] = self._contents(entry)
            except CorruptLog:
                if entry.kind != SEALED or not tables:
                    raise
                break
            done += entry.bytes
            self._progress(done, 2 * weight)
        self._inputs = [entry for entry in self._inputs if entry.name in tables]
        return tables

    def _contents(self, entry: FileEntry) -> pa.Table:
        if entry.kind == SEALED:
            return whole(self._where, entry)
        batches = [frame.batch for frame in closed_frames(self._where, entry, self._manifest)]
        return pa.Table.from_batches(batches, SCHEMA).combine_chunks()

    def _sealed(self, table: pa.Table, marks: ChainCheckpoints) -> FileEntry:
        """Write the records of `table`, all of the inputs, as one sealed file."""
        first, last = self._inputs[0], self._inputs[-1]
        chains = {agent_id: end for entry in self._inputs for agent_id, end in entry.chains.items()}
        away = {name: name in entry.away for entry in self._inputs for name in entry.chains}
        entry = FileEntry(
            "",
            SEALED,
            first.first_commit,
            last.last_commit,
            ids_to=max(entry.ids_to for entry in self._inputs),
            chains=dict(sorted(chains.items())),
            away=sorted(name for name, gone in away.items() if gone),
            arrivals=_arrivals(self._inputs),
            marks=marks,
        )
        return self._written(entry, table)

    def _written(self, entry: FileEntry, table: pa.Table) -> FileEntry:
        """Write `table` as the sealed file of `entry` and read it back."""
        saved, sha256 = save(self._where, self._name(entry, "parquet"), table)
        entry = msgspec.structs.replace(
            entry,
            name=saved.name,
            bytes=saved.bytes,
            sha256=sha256,
            records=table.num_rows,
            text_bytes=text_bytes(table),
            rare=rare_kinds(table),
            figures=FIGURES_VERSION,
            parquet=saved,
            state=None,
            checkpoints=None,
            held={},
        )
        # The frames are removed after the next manifest: compare with the bytes on disk while the originals still
        # exist.
        if not whole(self._where, entry).equals(table.sort_by(COMMIT_ORDER)):
            raise StoreError(
                f"{self._where.path / saved.name}: the file read back differs from what was written. Nothing was "
                "changed and no record was lost. Check the disk and the memory of this machine."
            )
        return entry

    def _name(self, entry: FileEntry, ending: str) -> str:
        number = self._manifest.number + 1
        name = sealed_name(entry.first_commit, entry.last_commit, self._epoch, number, ending)
        self._begun.append(name)
        return name

    def undo(self) -> None:
        """Remove written files that no manifest names, as far as the disk allows. The next owner removes the rest."""
        with suppress(OSError, StoreError):
            named = load(self._where).names()
            for name in self._begun:
                if name not in named:
                    remove_if_there(self._where.disk, self._where.path / name)

    def _others(self) -> list[FileEntry]:
        """Return the sealed files outside the inputs that hold an agent with erased records."""
        if not self._erasures:
            return []
        sealed = [entry for entry in self._closed if entry.kind == SEALED and entry not in self._inputs]
        return [entry for entry in sealed if not self._erasures.keys().isdisjoint(entry.chains)]

    def _rewritten(self, entry: FileEntry) -> tuple[FileEntry, int]:
        """Write a file again without the erased records; return it and their number. States that may quote them are
        dropped.
        """
        table, count = erase_records(whole(self._where, entry), self._erasures)
        state = None
        rows = state_rows(self._where, entry, entry.state.maker) if entry.state is not None else None
        if rows is not None and entry.state is not None:
            state = self._saved_state(entry, self._rows_not_erased(rows), entry.state.maker)
        changed = self._written(entry, table) if count else entry
        changed = msgspec.structs.replace(changed, state=state)
        maker = entry.checkpoints.maker if entry.checkpoints is not None else ""
        between = self._rows_not_erased(checkpoints_in(self._where, entry, maker))
        return self._holding(changed, between, maker), count

    def _rows_not_erased(self, rows: pa.Table | None) -> pa.Table | None:
        """Return the rows of agents without erased records."""
        return None if rows is None else _without_agents(rows, self._erasures)

    def _holding(self, entry: FileEntry, rows: pa.Table | None, maker: str) -> FileEntry:
        """Return the file's entry with `rows` as its checkpoints."""
        if rows is None or not rows.num_rows:
            return msgspec.structs.replace(entry, checkpoints=None, held={})
        saved, _ = save(self._where, self._name(entry, "checkpoints"), rows, maker)
        return msgspec.structs.replace(entry, checkpoints=saved, held=places_of(rows))

    def _saved_state(self, entry: FileEntry, rows: pa.Table | None, maker: str) -> ParquetEntry | None:
        if rows is None or not rows.num_rows:
            return None
        saved, _ = save(self._where, self._name(entry, "state"), rows, maker)
        return saved

    def _with_states(
        self, derive: StateDeriver, files: Sequence[FileEntry], after: FileEntry, table: pa.Table, fresh: pa.Table
    ) -> FileEntry:
        """Return the new file's entry with the states of its agents, and the checkpoints of long streams.

        An agent gets a state only if this is its newest file. A state is derived from the state before and the `fresh`
        records, or from all records; none is derived if older files that it needs are damaged. `files` are the other
        closed files, `table` holds all records of the new one.
        """
        before = [entry for entry in files if entry.last_commit < after.first_commit]
        later = {agent_id for entry in files if entry.first_commit > after.last_commit for agent_id in entry.chains}
        agents = set(after.chains) - later
        arrivals = _arrivals([*before, after])
        earlier, known = self._known(derive.maker, before, agents - set(self._erasures), arrivals)
        moved_agents = agents.intersection(arrivals) - known
        unknown = text_array(sorted(agents - known - moved_agents))
        records = [_only(fresh, text_array(sorted(known))), _only(table, unknown)]
        try:
            for entry in before:
                records += [_only(rows, unknown) for rows in self._histories(entry, unknown)]
            records += [
                self._records_everywhere(self._history, name, after) for name in sorted(moved_agents) if self._history
            ]
        except CorruptLog:  # a reader of that file gets the error
            return after
        needed = pa.concat_tables(records).sort_by(COMMIT_ORDER)
        long = derive_long_streams(derive, earlier, needed)
        others = derive(
            None if earlier is None else _without_agents(earlier, long.names), _without_agents(needed, long.names)
        )
        rows = pa.concat_tables([others, *long.ends])
        after = msgspec.structs.replace(after, state=self._saved_state(after, rows, derive.maker))
        return self._holding(
            after, merge_checkpoints(long.between, self._inherited_checkpoints(derive.maker)), derive.maker
        )

    def _inherited_checkpoints(self, maker: str) -> list[pa.Table]:
        """Return the checkpoints of the inputs, and those of their states that are kept as checkpoints. Rows of agents
        with erased records are left out.
        """
        found = [checkpoints_in(self._where, entry, maker) for entry in self._inputs]
        for entry, far in distant_ends(self._manifest, self._inputs):
            rows = state_rows(self._where, entry, maker, sorted(far))
            if rows is not None:
                found += [checkpoint_rows(_only(rows, text_array([name])), end) for name, end in far.items()]
        return [rows for rows in map(self._rows_not_erased, found) if rows is not None]

    def _histories(self, entry: FileEntry, unknown: pa.Array) -> list[pa.Table]:
        if set(entry.chains).isdisjoint(unknown.to_pylist()):
            return []
        return list(rows_of(self._where, entry))

    def _records_everywhere(self, history: StreamLoader, name: str, after: FileEntry) -> pa.Table:
        """Return all records of an agent up to the end of the new file, from all partitions, as if all were in this
        one.

        `commit` is replaced by `seq`, because commit numbers of different partitions do not continue each other.
        Records of ancestors are renamed to the agent after erasing, because a tombstone has the digest of the original
        record.
        """
        table = history(name)
        table = table.filter(pc.less_equal(table.column("seq"), int_value(after.chains[name][0])))
        writers = table.column("agent_id").unique().to_pylist()
        table, _ = erase_records(table, dict.fromkeys(writers, self._erasures.get(name, ())))
        table = table.sort_by("seq")
        named = pa.repeat(pa.scalar(name, SCHEMA.field("agent_id").type), table.num_rows)
        table = table.set_column(table.column_names.index("agent_id"), SCHEMA.field("agent_id"), named)
        return table.set_column(table.column_names.index("commit"), SCHEMA.field("commit"), table.column("seq"))

    def _known(self, maker: str, files: Sequence[FileEntry], agents: set[str], arrivals: Mapping[str, int]
               ) -> tuple[pa.Table | None, set[str]]:  # fmt: skip
        """Return the last states of `agents` before the fresh records, and the agents that have one. A state is taken
        only from an agent's newest sealed file.

        A state from before the agent's last arrival is excluded: it lacks the records of the other partition.
        """
        wanted = set(agents)
        known: set[str] = set()
        found = []
        sealed = [entry for entry in (*files, *self._inputs) if entry.kind == SEALED]
        for entry in sorted(sealed, key=lambda entry: -entry.first_commit):
            here = wanted.intersection(entry.chains)
            wanted -= here
            here = {name for name in here if entry.chains[name][0] >= arrivals.get(name, 0)}
            if entry in self._inputs and self._is_damaged(entry):
                here -= entry.held.keys()  # derived again from all of their records, which makes new checkpoints
            rows = state_rows(self._where, entry, maker, sorted(here)) if here else None
            if rows is not None:
                known.update(rows.column("agent_id").unique().to_pylist())
                found.append(rows)
        return (pa.concat_tables(found) if found else None), known


def _arrivals(files: Sequence[FileEntry]) -> dict[str, int]:
    """Return the seq of each agent's last arrival from another partition. Of `files`, in order, later ones win."""
    return dict(sorted((name, seq) for entry in files for name, seq in entry.arrivals.items()))


def _only(table: pa.Table, agents: pa.Array) -> pa.Table:
    """Return the rows of some agents."""
    return where(table, pc.is_in(table.column("agent_id"), agents))


def _without_agents(table: pa.Table, agents: Iterable[str]) -> pa.Table:
    """Return the rows of all agents except these."""
    return where(table, pc.invert(pc.is_in(table.column("agent_id"), text_array([*agents]))))


def files_to_seal(closed: Sequence[FileEntry]) -> list[FileEntry]:
    """Return the closed files to seal next, adjacent ones: the first frames, and the small sealed files before them.

    A sealed file is merged unless it has more than MERGE_RATIO times as many records as the files after it. So there
    are few files, and a record is rewritten only a few times, however long the log is.
    """
    first = next((index for index, entry in enumerate(closed) if entry.kind == FRAMES), len(closed))
    stop, weight = first, 0
    while stop < len(closed) and (stop == first or weight + closed[stop].bytes <= SEGMENT_BYTES_MAX):
        weight += closed[stop].bytes
        stop += 1
    start = first
    records = sum(entry.records for entry in closed[first:stop])
    while start and stop > first:
        before = closed[start - 1]
        if before.records > MERGE_RATIO * records or before.text_bytes + weight > MERGED_BYTES_MAX:
            break
        start -= 1
        records += before.records
        weight += before.text_bytes
    return list(closed[start:stop])
