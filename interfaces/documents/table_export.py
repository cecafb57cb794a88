"""Load the rows of an exported table as documents: Parquet, Arrow, LanceDB, or Chroma's database. Vectors are left out.

Used by `everlog load`. Another text or name for the same row makes a loaded document count as changed.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from everlog.actors.memory.document_load import Document, UnreadableDocument
from everlog.events import BadInput
from everlog.interfaces.documents.query_rows import document_of
from everlog.projections.exported_tables import EXPORTS, ExportedRow, rows_of

TEXTS = ("text", "document", "content", "page_content", "chunk", "body")
"""Columns that hold the text of a row: the first of them that the table has."""
IDS = ("id", "_id", "uuid", "key")
"""Columns that name a row."""


def is_export(path: str) -> bool:
    """Return True for the path of an exported table."""
    return Path(path).suffix.lower() in EXPORTS


def rows(given: str) -> Iterator[Document | UnreadableDocument]:
    """Yield a document for each row, named FILE/ID; a table that cannot be read is an unreadable document.

    Raise BadInput if there is no such file.
    """
    path = Path(given).expanduser()
    if not path.exists():
        raise BadInput(f"{given!r}: there is no such file or folder. Nothing was loaded.")
    return _documents(path.resolve())


def _documents(path: Path) -> Iterator[Document | UnreadableDocument]:
    try:
        for number, row in enumerate(rows_of(path), 1):
            yield document_of(number, _named(path.name, number, row), origin=str(path))
    except BadInput as error:
        yield UnreadableDocument(path.name, str(error))


def _named(table: str, number: int, row: ExportedRow) -> ExportedRow:
    """Return a row with the columns by which `document_of` names a document and finds its text."""
    kept = [(column, value) for column, value in row if not _is_vector(value)]
    values = {column.lower(): value for column, value in reversed(kept)}
    name = next((str(values[key]) for key in IDS if values.get(key) is not None), f"row {number}")
    inside = f"{values['collection']}/" if values.get("collection") else ""
    text = next((column for column in TEXTS if column in values), None)
    named: ExportedRow = [("document", f"{table}/{inside}{name}"), ("title", values.get("title") or "")]
    if text is not None:
        return [*named, ("text", values[text])]
    rest = [(column, value) for column, value in kept if column.lower() not in IDS]
    return [*named, ("text", "\n".join(f"{column}: {value}" for column, value in rest if value is not None))]


def _is_vector(value: object) -> bool:
    """Return True for a list of numbers."""
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0 and isinstance(value[0], float)
