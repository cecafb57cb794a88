"""Read the rows of tables that other programs exported: Parquet, Arrow, LanceDB, and Chroma's database.

Used by `interfaces/documents/table_export.py`, for `everlog load`. Nothing is written to any of them.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from everlog.events import BadInput
from everlog.projections.external_rows import select
from everlog.store.archive.archive_table import exported_rows

ExportedRow = list[tuple[str, Any]]
"""Pairs of column and value."""

_CHROMA = """
SELECT c.name AS collection, e.embedding_id AS id, m.string_value AS text
FROM embeddings e
LEFT JOIN embedding_metadata m ON m.id = e.id AND m.key = 'chroma:document'
LEFT JOIN segments s ON s.id = e.segment_id
LEFT JOIN collections c ON c.id = s.collection
ORDER BY e.id
"""
"""Documents of a database of Chroma 0.4 or later; one without a text has only a vector."""


def rows_of(path: Path) -> Iterator[ExportedRow]:
    """Yield the rows of an exported table, by the ending of its name. Raise BadInput for a file that is none."""
    try:
        yield from EXPORTS[path.suffix.lower()](path)
    except (BadInput, pa.ArrowException, sqlite3.Error, ValueError, OSError) as error:
        raise BadInput(f"it cannot be read as {_KINDS[path.suffix.lower()]}: {' '.join(str(error).split())}") from error


def _parquet(path: Path) -> Iterator[ExportedRow]:
    quoted = str(path).replace("'", "''")
    return select(f"SELECT * FROM read_parquet('{quoted}')", {})


def _arrow(path: Path) -> Iterator[ExportedRow]:
    """Yield the rows of an Arrow file, or else of an Arrow stream."""
    with pa.memory_map(str(path)) as source:
        try:
            file = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            yield from _batches(pa.ipc.open_stream(source))
            return
        yield from _batches(file.get_batch(number) for number in range(file.num_record_batches))


def _batches(batches: Any) -> Iterator[ExportedRow]:
    for batch in batches:
        for row in batch.to_pylist():
            yield list(row.items())


def _lance(path: Path) -> Iterator[ExportedRow]:
    for row in exported_rows(path):
        yield list(row.items())


def _chroma(path: Path) -> Iterator[ExportedRow]:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        found = connection.execute(_CHROMA)
        names = [column[0] for column in found.description]
        for row in found:
            yield list(zip(names, row, strict=True))
    finally:
        connection.close()


EXPORTS: Mapping[str, Callable[[Path], Iterator[ExportedRow]]] = {
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".ipc": _arrow,
    ".lance": _lance,
    ".sqlite3": _chroma,
}
"""Readers by the ending of a name, in lower case."""
_KINDS = {
    ".parquet": "Parquet", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow", ".lance": "a table of LanceDB",
    ".sqlite3": "a database of Chroma",
}  # fmt: skip
