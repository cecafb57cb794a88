"""The text of a Word document (.docx), with python-docx: paragraphs, and tables row by row."""

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
"""Largest part of XML, unpacked, inclusive."""
UNPACKED_BYTES_MAX = 512 * 1024 * 1024
"""All parts, unpacked, inclusive."""
CHUNK_BYTES = 1024 * 1024
"""What is unpacked at a time."""
_OLD = bytes.fromhex("d0cf11e0a1b11ae1")
"""How files begin that were made before .docx, and those with a password."""


def read(path: Path) -> ExtractedText:
    """The text, and the title that it was given. Raises BadInput where it cannot be read."""
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
    except (OpcError, LxmlError, zipfile.BadZipFile, *_NONSENSE) as error:
        raise BadInput(f"it is no whole Word document ({type(error).__name__}: {str(error)[:200]})") from error


_NONSENSE = (ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError, ValueError)
"""What the libraries raise, too, where a file makes no sense."""


def _rows(table: "Table") -> Iterator[str]:
    """The rows of a table, cells apart; one that spans several columns is told once."""
    for row in table.rows:
        cells: list[Any] = []
        for cell in row.cells:
            if not cells or cell._tc is not cells[-1]._tc:  # noqa: SLF001 - what python-docx compares cells by
                cells.append(cell)
        yield " | ".join(" ".join(cell.text.split()) for cell in cells)


def _check_archive(path: Path) -> None:
    """Raises BadInput for what should not be unpacked, or cannot be."""
    with path.open("rb") as file:
        begins = file.read(len(_OLD))
    if begins == _OLD:
        raise BadInput("it is protected by a password, or in Word's format from before .docx; save it as .docx without")
    try:
        with zipfile.ZipFile(path) as archive:
            _hold(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, *_NONSENSE) as error:
        raise BadInput(f"it is no whole Word document ({type(error).__name__}: {str(error)[:200]})") from error


def _hold(archive: zipfile.ZipFile) -> None:
    """Raises BadInput for an archive that says it is too large, BadZipFile for one with a part that is not as it says.

    A part is unpacked bit by bit: in one go it would be unpacked to its end before its size is looked at.
    """
    parts = archive.infolist()
    whole = sum(part.file_size for part in parts)
    largest = max((part.file_size for part in parts if part.filename.endswith((".xml", ".rels"))), default=0)
    if whole > UNPACKED_BYTES_MAX or largest > PART_BYTES_MAX:
        raise BadInput(
            f"unpacked it has {whole:,} bytes, {largest:,} of them in one part; {UNPACKED_BYTES_MAX:,} and "
            f"{PART_BYTES_MAX:,} are read at most"
        )
    for part in parts:
        with archive.open(part) as content:
            while content.read(CHUNK_BYTES):
                pass
