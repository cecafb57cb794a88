"""Store rows in a LanceDB table; the only file that imports LanceDB.

All rows of one write become visible together, as one version of the table. `memory_id` is the key: writing a row again
changes nothing, so a write of unknown outcome can be repeated.

Used by `archive_writer` and `rebuild_table` for writing, and by `row_caches` for reading. The columns of `schema_of`
are on disk, and row caches read them by name.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from msgspec.structs import astuple

from everlog.events import ArchiveError
from everlog.store.archive.archive_constants import LARGE_ROWS, TABLE_CACHE_BYTES_MAX
from everlog.store.archive.row_fold import ArchiveRow
from everlog.store.base.arrow_values import fixed_bytes, numbers_of, text_array, text_lists, typed_array
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.embedding.tokenizer import written_words

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")
NAMES_AT_ONCE = 500
"""Number of values in one condition."""
LIMIT = 2**31 - 1
KEEP_ALL = timedelta(days=36_500)
"""Age of versions that a compaction removes, if it shall remove none."""
SHORTEST = timedelta(milliseconds=1)
"""Age that means all versions but the newest. LanceDB warns of an age of 0."""
_NAME = "memories-{:06d}"
_INDEXED = ("memory_id", "memory", "agent_id")
_SEARCHED = ("vector", "words")
_AS_WRITTEN: dict[str, Any] = {"lower_case": False, "stem": False, "remove_stop_words": False, "ascii_folding": False}
ROWS_A_PROBE, PROBES_MIN = 8_000, 20
"""One partition of the vector index is searched for so many rows, but at least PROBES_MIN: measured, all of the 100
nearest are found so. LanceDB chooses the number of partitions: 1,000 for a million rows took ten times as long to make.
"""
REFINED = 2
"""Times as many rows as wanted are compared by their whole vectors, because the index has rounded ones."""
_CURE = "No memory is lost: the table is made from the log. Run `everlog archive rebuild`."


def schema_of(dimension: int) -> pa.Schema:
    """Return the columns of a table whose vectors have `dimension` numbers."""
    return pa.schema(
        [
            pa.field("memory_id", pa.string(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("memory", pa.string(), nullable=False),
            pa.field("agent_id", pa.string(), nullable=False),
            pa.field("seq", pa.int64(), nullable=False),
            pa.field("part", pa.int32(), nullable=False),
            pa.field("parts", pa.int32(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
            pa.field("words", pa.string(), nullable=False),
            pa.field("vector", pa.list_(pa.float16(), dimension), nullable=False),
            pa.field("tags", pa.list_(pa.string()), nullable=False),
            pa.field("source", pa.string(), nullable=False),
            pa.field("document", pa.string(), nullable=False),
            pa.field("created_at", pa.int64(), nullable=False),
            pa.field("seq_from", pa.int64(), nullable=False),
            pa.field("seq_to", pa.int64()),
            pa.field("from_at", pa.int64(), nullable=False),
            pa.field("to_at", pa.int64()),
            pa.field("digest", pa.binary(32), nullable=False),
        ]
    )


ROW_FIELDS = tuple(name for name in schema_of(1).names if name not in {"words", "vector"})
assert ArchiveRow.__struct_fields__ == ROW_FIELDS


def table_of(rows: Sequence[ArchiveRow], vectors: "np.ndarray", words: Sequence[bytes]) -> pa.Table:
    """Return rows, at least one, with vectors (float16) and words, as a table."""
    schema = schema_of(vectors.shape[1])
    values: dict[str, Any] = dict(zip(ROW_FIELDS, zip(*map(astuple, rows), strict=True), strict=True))
    numbers = pa.Array.from_buffers(pa.float16(), vectors.size, [None, pa.py_buffer(vectors.astype("<f2").tobytes())])
    columns: dict[str, pa.Array] = {
        "words": text_array(list(map(written_words, words))),
        "vector": pa.FixedSizeListArray.from_arrays(numbers, vectors.shape[1]),
        "tags": text_lists(values["tags"]),
        "digest": fixed_bytes(values["digest"], 32),
    }
    others = {field.name: field.type for field in schema if field.name not in columns}
    columns |= {name: typed_array(values[name], kind) for name, kind in others.items()}
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def rows_in(table: pa.Table) -> list[ArchiveRow]:
    """Return the rows of a table that has all of ROW_FIELDS."""
    columns = [table.column(name).to_pylist() for name in ROW_FIELDS]
    return [ArchiveRow(**dict(zip(ROW_FIELDS, values, strict=True))) for values in zip(*columns, strict=True)]


def vectors_in(table: pa.Table) -> "np.ndarray":
    """Return the vectors of a table, one row for each."""
    column = table.column("vector")
    numbers = numbers_of(pa.chunked_array([chunk.flatten() for chunk in column.chunks], pa.float16()), "<f2")
    return numbers.reshape(table.num_rows, column.type.list_size)


def equal(column: str, value: str) -> str:
    """Return the condition that a column has this value."""
    return f"{column} = {_quote(value)}"


def in_conditions(column: str, values: Iterable[str]) -> Iterator[str]:
    """Yield conditions that together mean that a column has one of the values."""
    ordered = sorted(values)
    for start in range(0, len(ordered), NAMES_AT_ONCE):
        yield f"{column} IN ({', '.join(map(_quote, ordered[start : start + NAMES_AT_ONCE]))})"


def contains_all(column: str, values: Iterable[str]) -> str:
    """Return the condition that a list has all of these values."""
    return f"array_has_all({column}, make_array({', '.join(map(_quote, values))}))"


def _quote(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


class Tables:
    """Tables of one archive, by generation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db: Any = None
        self._session: Any = None

    def _connected(self) -> Any:
        if self._db is None:
            import lancedb

            # One session for each connection: a session finds files by their path, and would take those of a table that
            # was removed for those of a later table of the same name.
            self._session = lancedb.Session(TABLE_CACHE_BYTES_MAX, TABLE_CACHE_BYTES_MAX)
            self._db = lancedb.connect(str(self._folder), session=self._session)
        return self._db

    @property
    def cache_bytes(self) -> int:
        """Bytes of LanceDB's caches of this connection, at most twice TABLE_CACHE_BYTES_MAX."""
        return 0 if self._session is None else int(self._session.size_bytes)

    def path(self, generation: int) -> Path:
        """Return the folder of a table."""
        return self._folder / f"{_NAME.format(generation)}.lance"

    def generations(self) -> list[int]:
        """Return the generations of all tables, finished or not, ascending."""
        found = (path.name[len("memories-") : -len(".lance")] for path in self._folder.glob("memories-*.lance"))
        return sorted(int(number) for number in found if number.isdecimal())

    def create(self, generation: int, dimension: int) -> "Table":
        """Create a new, empty table."""
        with _archive_errors(f"{self.path(generation)} cannot be created"):
            found = self._connected().create_table(_NAME.format(generation), schema=schema_of(dimension))
            found.set_unenforced_primary_key("memory_id")
        return Table(found, self.path(generation))

    def open(self, generation: int) -> "Table":
        """Open the table of that generation. Raises ArchiveError if it does not exist or cannot be read."""
        if not self.path(generation).is_dir():
            raise ArchiveError(f"{self.path(generation)}, the table of the archive, is missing. {_CURE}")
        with _archive_errors(f"{self.path(generation)} cannot be opened"):
            return Table(self._connected().open_table(_NAME.format(generation)), self.path(generation))

    def drop(self, generation: int) -> None:
        """Remove a table and all its files."""
        shutil.rmtree(self.path(generation), ignore_errors=True)


class Table:
    """One table. Reads see the newest version that this process knows of; reading `version` loads the newest."""

    def __init__(self, found: Any, path: Path) -> None:
        self._table = found
        self.path = path

    @property
    def version(self) -> int:
        """Number of the newest version, including those of other writers."""
        with _archive_errors(f"{self.path} cannot be read"):
            self._table.checkout_latest()
            return int(self._table.version)

    def add(self, rows: pa.Table) -> None:
        """Write rows that the table does not have yet."""
        with _archive_errors(f"{self.path} cannot be written"):
            self._table.add(rows)

    def put(self, rows: pa.Table, whole: Iterable[str] = ()) -> None:
        """Write rows, replacing those with the same key. All other rows of the agents in `whole` are deleted."""
        conditions = list(in_conditions("agent_id", whole))
        with _archive_errors(f"{self.path} cannot be written"):
            merge = self._table.merge_insert("memory_id").when_matched_update_all().when_not_matched_insert_all()
            if conditions:
                merge = merge.when_not_matched_by_source_delete(" OR ".join(conditions))
            merge.execute(rows)

    def read(
        self,
        condition: str | None = None,
        columns: Sequence[str] | None = None,
        limit: int = LIMIT,
        *,
        row_ids: bool = False,
    ) -> pa.Table:
        """Return the rows that match a condition, at most `limit`, in no order. `row_ids`: with a column `_rowid`."""

        def query() -> pa.Table:
            search = self._table.search().limit(limit)
            search = search.where(condition) if condition else search
            search = search.with_row_id(True) if row_ids else search
            return (search.select(list(columns)) if columns else search).to_arrow()

        return self.consistently(query)

    def count(self, condition: str | None = None) -> int:
        """Return the number of rows that match a condition."""
        return self.consistently(lambda: int(self._table.count_rows(condition)))

    def at(self, row_ids: "np.ndarray", columns: Sequence[str]) -> pa.Table:
        """Return the rows with these ids, which must be of the same version."""
        if not len(row_ids):
            return self.read("FALSE", columns)
        return self._table.take_row_ids(row_ids.tolist()).select(list(columns)).to_arrow()

    def nearest(self, vector: "np.ndarray", condition: str, count: int) -> "np.ndarray":
        """Return the ids of the `count` rows nearest to a vector among those that match a condition, by the index."""
        search = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
        search = search.where(condition, prefilter=True).limit(count).refine_factor(REFINED)
        search = search.nprobes(max(PROBES_MIN, int(self._table.count_rows()) // ROWS_A_PROBE))
        return _ids(search.select(["_distance"]).with_row_id(True).to_arrow())

    def rows_with_all(self, tokens: Sequence[str], condition: str, count: int) -> "np.ndarray":
        """Return the ids of rows with all of these tokens among those that match a condition, at most `count`."""
        return self._with_tokens(tokens, condition, count, "AND")

    def rows_with_any(self, tokens: Sequence[str], condition: str, count: int) -> "np.ndarray":
        """Return the ids of the `count` rows with the highest BM25 for these tokens, among those that match."""
        return self._with_tokens(tokens, condition, count, "OR")

    def _with_tokens(self, tokens: Sequence[str], condition: str, count: int, operator: str) -> "np.ndarray":
        from lancedb.query import FullTextOperator, MatchQuery

        query = MatchQuery(" ".join(tokens), "words", operator=FullTextOperator(operator))
        search = self._table.search(query, query_type="fts").where(condition, prefilter=True).limit(count)
        return _ids(search.select(["_score"]).with_row_id(True).to_arrow())

    def pieces(self, columns: Sequence[str], count: int) -> Iterator[pa.Table]:
        """Yield all rows, about `count` at a time, in no order. The table must not change meanwhile."""
        with _archive_errors(f"{self.path} cannot be read"):
            yield from _joined(self._table.search().limit(LIMIT).select(list(columns)).to_batches(), count)

    def index(self) -> None:
        """Create the lookup indices that are missing, and those for searching if an owner is large."""
        from lancedb.index import FTS, BTree, IvfSq

        with _archive_errors(f"{self.path} cannot be indexed"):
            made = {column for index in self._table.list_indices() for column in index.columns}
            for column in _INDEXED:
                if column not in made:
                    self._table.create_index(column, config=BTree())
            if made.issuperset(_SEARCHED) or not self.has_large_owner():
                return
            self._table.create_index("vector", config=IvfSq(distance_type="cosine"))
            self._table.create_index("words", config=FTS(base_tokenizer="whitespace", **_AS_WRITTEN))

    def has_large_owner(self) -> bool:
        """Return True if an owner has more than LARGE_ROWS rows."""
        if self.count() <= LARGE_ROWS:
            return False
        owners = self.read(None, ["agent_id"]).column("agent_id")
        return bool(pc.max(pc.value_counts(owners).field("counts")).as_py() > LARGE_ROWS)

    def compact(self) -> None:
        """Merge small files and index new rows. Every version stays readable."""
        with _archive_errors(f"{self.path} cannot be compacted"):
            self._table.optimize(cleanup_older_than=KEEP_ALL)

    def remove_versions(self, keep: int) -> None:
        """Remove all versions except about `keep` newest, and the files that only those have. Readers of a removed
        version lose their files: exclude those of this process meanwhile.
        """
        with _archive_errors(f"{self.path} cannot be cleaned up"):
            written = sorted(version["timestamp"] for version in self._table.list_versions())
            # LanceDB removes by age. The newest version was written just now, so its time stands for the present.
            age = written[-1] - written[-keep] if keep <= len(written) else KEEP_ALL
            self._table.optimize(cleanup_older_than=max(age, SHORTEST))

    def consistently(self, read: Callable[[], T]) -> T:
        """Return the result of `read`, which sees one version. If a file is gone because another process compacted,
        retry with the newest version.
        """
        with _archive_errors(f"{self.path} cannot be read"):
            try:
                return read()
            except (OSError, RuntimeError, ValueError):
                self._table.checkout_latest()
                return read()


def _joined(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[pa.Table]:
    """Yield batches in tables of at least `count` rows, except the last."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(some.num_rows for some in waiting) >= count:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _ids(found: pa.Table) -> "np.ndarray":
    ids: np.ndarray = found.column("_rowid").to_numpy()
    return ids


@contextmanager
def _archive_errors(what: str) -> Iterator[None]:
    """Turn exceptions of LanceDB into ArchiveError."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, pa.ArrowException) as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise ArchiveError(f"{what}: {first[0]}. {_CURE}") from error


def exported_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table of LanceDB that another program wrote: the folder `NAME.lance`.

    Raise ValueError if the folder is no such table. Nothing is written.
    """
    import lancedb

    try:
        table = lancedb.connect(str(folder.parent)).open_table(folder.name.removesuffix(".lance"))
        for batch in table.search().to_batches():
            yield from batch.to_pylist()
    except (OSError, RuntimeError) as error:
        raise ValueError(" ".join(str(error).split())) from error
