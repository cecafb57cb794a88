"""The supported file types by file extension, and the result of a reader. Imports no reader.

Used by `find_files`, `extract_text`, the readers. The media types are written to the log.
"""

from pathlib import Path
from typing import NamedTuple

from everlog.actors.memory.document_load import DOCUMENT_BYTES_MAX

FILE_BYTES_MAX = 256 * 1024 * 1024
"""Largest size of a file of a type that holds more than text (pictures, fonts), inclusive."""


class FileKind(NamedTuple):
    """A file type."""

    reader: str
    """Function from a path to an `ExtractedText`, as "module:function" of this package. Raises BadInput, OSError."""
    media_type: str
    bytes_max: int = DOCUMENT_BYTES_MAX
    """Largest size of a file, inclusive; checked before the file is read."""
    needs: str = ""
    """Package of the extra `documents` that the reader imports; empty if everlog reads the type by itself."""


class ExtractedText(NamedTuple):
    """Text and title of a file."""

    text: str
    title: str = ""


_TEXT = FileKind("plain_text:read", "text/plain")
_MARKDOWN = FileKind("plain_text:read_markdown", "text/markdown")
_HTML = FileKind("html_text:read", "text/html")
_JSON_LINES = FileKind("table_text:read_json_lines", "application/jsonl")

KINDS = {
    ".txt": _TEXT,
    ".text": _TEXT,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".html": _HTML,
    ".htm": _HTML,
    ".pdf": FileKind("pdf_text:read", "application/pdf", FILE_BYTES_MAX, "pypdf"),
    ".docx": FileKind(
        "word_text:read",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        FILE_BYTES_MAX,
        "docx",
    ),
    ".csv": FileKind("table_text:read_csv", "text/csv"),
    ".tsv": FileKind("table_text:read_csv", "text/tab-separated-values"),
    ".json": FileKind("table_text:read_json", "application/json"),
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
}
"""File types by extension, in lower case."""


def kind_of(path: Path) -> FileKind | None:
    """Return the type of a file by its extension; None if the type is not supported."""
    return KINDS.get(path.suffix.lower())
