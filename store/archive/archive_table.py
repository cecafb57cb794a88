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
from everlog.store.archive.row_fold import MESSAGE, ArchiveRow

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")
NAMES_AT_ONCE = 500
"""Number of values in one condition."""
LIMIT = 2**31 - 1
_NAME = "memories-{:06d}"
_INDEXED = ("memory_id", "memory", "agent_id")
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
            pa.field("words", pa.binary(), nullable=False),
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
    """Return rows, at least one, with vectors (float16) and words, as a table. Messages get empty text and words."""
    schema = schema_of(vectors.shape[1])
    columns: dict[str, Any] = dict(zip(ROW_FIELDS, zip(*map(astuple, rows), strict=True), strict=True))
    columns["text"] = ["" if row.kind == MESSAGE else row.text for row in rows]
    columns["words"] = [b"" if row.kind == MESSAGE else some for row, some in zip(rows, words, strict=True)]
    columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def rows_in(table: pa.Table) -> list[ArchiveRow]:
    """Return the rows of a table that has all of ROW_FIELDS."""
    columns = [table.column(name).to_pylist() for name in ROW_FIELDS]
    return [ArchiveRow(**dict(zip(ROW_FIELDS, values, strict=True))) for values in zip(*columns, strict=True)]


def vectors_in(table: pa.Table) -> "np.ndarray":
    """Return the vectors of a table, one row for each."""
    import numpy as np

    column = table.column("vector").combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return np.asarray(column.flatten()).reshape(table.num_rows, column.type.list_size)


def equal(column: str, value: str) -> str:
    """Return the condition that a column has this value."""
    return f"{column} = {_quote(value)}"


def in_conditions(column: str, values: Iterable[str]) -> Iterator[str]:
    """Yield conditions that together mean that a column has one of the values."""
    ordered = sorted(values)
    for start in range(0, len(ordered), NAMES_AT_ONCE):
        yield f"{column} IN ({', '.join(map(_quote, ordered[start : start + NAMES_AT_ONCE]))})"


def _quote(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


class Tables:
    """Tables of one archive, by generation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db: Any = None

    def _connected(self) -> Any:
        if self._db is None:
            import lancedb

            self._db = lancedb.connect(str(self._folder))
        return self._db

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

    def read(self, condition: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows that match a condition, in no order."""

        def query() -> pa.Table:
            search = self._table.search().limit(LIMIT)
            search = search.where(condition) if condition else search
            return (search.select(list(columns)) if columns else search).to_arrow()

        return self._retry_on_newest(query)

    def count(self, condition: str | None = None) -> int:
        """Return the number of rows that match a condition."""
        return self._retry_on_newest(lambda: int(self._table.count_rows(condition)))

    def pieces(self, columns: Sequence[str], count: int) -> Iterator[pa.Table]:
        """Yield all rows, about `count` at a time, in no order. The table must not change meanwhile."""
        with _archive_errors(f"{self.path} cannot be read"):
            yield from _joined(self._table.search().limit(LIMIT).select(list(columns)).to_batches(), count)

    def indexed(self) -> bool:
        """Return True if the indices exist."""
        with _archive_errors(f"{self.path} cannot be read"):
            return len(self._table.list_indices()) >= len(_INDEXED)

    def index(self) -> None:
        """Create the lookup indices, replacing existing ones."""
        from lancedb.index import BTree

        with _archive_errors(f"{self.path} cannot be indexed"):
            for column in _INDEXED:
                self._table.create_index(column, config=BTree(), replace=True)

    def compact(self, keep_s: int) -> None:
        """Merge small files, index new rows, and remove versions older than `keep_s` seconds."""
        with _archive_errors(f"{self.path} cannot be compacted"):
            self._table.optimize(cleanup_older_than=timedelta(seconds=keep_s), delete_unverified=not keep_s)

    def _retry_on_newest(self, read: Callable[[], T]) -> T:
        """Return the result of `read`. If a file is gone because another process compacted, retry with the newest
        version.
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


@contextmanager
def _archive_errors(what: str) -> Iterator[None]:
    """Turn exceptions of LanceDB into ArchiveError."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, pa.ArrowException) as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise ArchiveError(f"{what}: {first[0]}. {_CURE}") from error
