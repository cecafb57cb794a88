"""Load the rows of a query as documents, with DuckDB over Parquet, CSV, JSON or a DuckDB database.

Used by `everlog load --sql`, and by `table_export.py` for a row. Another text for the same row makes a loaded document
count as changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from everlog.actors.memory.document_load import Document, UnreadableDocument
from everlog.events import BadInput
from everlog.interfaces.documents.extract_text import normal
from everlog.interfaces.documents.table_text import paragraph
from everlog.projections.external_rows import select

SQL = "sql"
"""Origin of documents from a query."""
_NAMES = ("document", "id", "title")
"""Columns that name a document: the first of them that the row has."""


def databases(paths: Sequence[str]) -> Mapping[str, Path]:
    """Return DuckDB files by their names in a query: the file name without its extension. Raises BadInput."""
    found: dict[str, Path] = {}
    for given in paths:
        path = Path(given).expanduser()
        if not path.is_file():
            raise BadInput(f"{given}: there is no such file. With --sql each PATH is a DuckDB database.")
        if path.stem in found:
            raise BadInput(f"{given}: another database is named {path.stem!r} too. Rename one of the two files.")
        found[path.stem] = path
    return found


def rows(query: str, attached: Mapping[str, Path]) -> Iterator[Document | UnreadableDocument]:
    """Return an iterator of the rows as documents: the column `text`, or else all columns as lines `column: value`.

    Raises BadInput at once for an invalid query, and during the iteration for a row that cannot be computed.
    """
    found = select(query, attached)
    return (document_of(number, row, origin=SQL) for number, row in enumerate(found, 1))


def document_of(number: int, row: Sequence[tuple[str, Any]], *, origin: str) -> Document | UnreadableDocument:
    """Return the document in row `number` of a table that came from `origin`."""
    values = {column.lower(): value for column, value in reversed(row) if value is not None}
    name = next((str(values[key]) for key in _NAMES if key in values), f"row {number}")
    name = normal(name) or f"row {number}"
    text = values.get("text")
    if text is None and any(column.lower() == "text" for column, _ in row):
        return UnreadableDocument(name, f"row {number} has no text")
    if isinstance(text, bytes):
        return UnreadableDocument(name, f"the text of row {number} is bytes; decode it in the query")
    return Document(
        name=name,
        text=normal(paragraph(row) if text is None else str(text)),
        title=str(values.get("title", "")),
        media_type="text/plain",
        origin=origin,
    )
