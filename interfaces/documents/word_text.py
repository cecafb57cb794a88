"""Extract the text of a Word document (.docx) with python-docx: paragraphs, and tables row by row.

Imported by `extract_text` for the first such file. Another text for the same file makes a loaded document count as
changed.
"""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everlog.events import BadInput
from everlog.interfaces.documents.file_kinds import ExtractedText

if TYPE_CHECKING:
    from docx.table import Table

PART_BYTES_MAX = 64 * 1024 * 1024
"""Largest unpacked size of one XML part, inclusive."""
UNPACKED_BYTES_MAX = 512 * 1024 * 1024
"""Largest unpacked size of all parts together, inclusive."""
CHUNK_BYTES = 1024 * 1024
"""Bytes that are unpacked at a time."""
_OLD_FORMAT = bytes.fromhex("d0cf11e0a1b11ae1")
"""First bytes of old .doc files, and of .docx files with a password."""


def read(path: Path) -> ExtractedText:
    """Return the text and the title of a document. Raise BadInput if it cannot be read."""
    _check_archive(path)
    import docx
    from docx.opc.exceptions import OpcError
    from docx.table import Table
    from lxml.etree import LxmlError

    try:
        document = docx.Document(str(path))
        parts = [
            "\n".join(_rows(block)) if isinstance(block, Table) else block.text
            for block in document.iter_inner_content()
        ]
        return ExtractedText("\n\n".join(part for part in parts if part.strip()), document.core_properties.title or "")
    except (OpcError, LxmlError, zipfile.BadZipFile, *_MALFORMED) as error:
        raise BadInput(f"it is not a valid Word document ({type(error).__name__}: {str(error)[:200]})") from error


_MALFORMED = (ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError, ValueError)
"""Other exceptions that the libraries raise for a malformed file."""


def _rows(table: "Table") -> Iterator[str]:
    """Yield the rows of a table, cells separated by " | ". A cell that spans several columns occurs once."""
    for row in table.rows:
        cells: list[Any] = []
        for cell in row.cells:
            if not cells or cell._tc is not cells[-1]._tc:  # noqa: SLF001 - what python-docx compares cells by
                cells.append(cell)
        yield " | ".join(" ".join(cell.text.split()) for cell in cells)


def _check_archive(path: Path) -> None:
    """Raise BadInput if the file cannot, or should not, be unpacked."""
    with path.open("rb") as file:
        begins = file.read(len(_OLD_FORMAT))
    if begins == _OLD_FORMAT:
        raise BadInput("it is password-protected, or in the old .doc format; save it as .docx without a password")
    try:
        with zipfile.ZipFile(path) as archive:
            _hold(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, *_MALFORMED) as error:
        raise BadInput(f"it is not a valid Word document ({type(error).__name__}: {str(error)[:200]})") from error


def _hold(archive: zipfile.ZipFile) -> None:
    """Raise BadInput if the declared sizes are too large, BadZipFile if a part differs from its declaration.

    Parts are unpacked chunk by chunk: a part with a false size would fill the memory if it were unpacked at once.
    """
    parts = archive.infolist()
    whole = sum(part.file_size for part in parts)
    largest = max((part.file_size for part in parts if part.filename.endswith((".xml", ".rels"))), default=0)
    if whole > UNPACKED_BYTES_MAX or largest > PART_BYTES_MAX:
        raise BadInput(
            f"unpacked it has {whole:,} bytes, {largest:,} of them in one part; the limits are {UNPACKED_BYTES_MAX:,} "
            f"and {PART_BYTES_MAX:,}"
        )
    for part in parts:
        with archive.open(part) as content:
            while content.read(CHUNK_BYTES):
                pass
