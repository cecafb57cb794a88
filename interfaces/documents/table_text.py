"""Rows and values as lines that can be read: CSV and JSON, a line `column: value` for each, rows apart."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from everlog.actors.memory.document_load import DOCUMENT_BYTES_MAX
from everlog.events import BadInput
from everlog.interfaces.documents.file_kinds import ExtractedText
from everlog.interfaces.documents.plain_text import text_of

SNIFFED_CHARS = 8192
"""What the separator of a CSV is guessed from."""
_SEPARATORS = ",;\t|"


def read_csv(path: Path) -> ExtractedText:
    """Each row as a paragraph; the first row names the columns. Raises BadInput for a row that is longer than that."""
    text = text_of(path)
    before = csv.field_size_limit(DOCUMENT_BYTES_MAX)
    try:
        return ExtractedText(_bounded(_rows(text, "\t" if path.suffix.lower() == ".tsv" else _separator(text)), "\n\n"))
    except csv.Error as error:
        raise BadInput(f"it is no CSV: {error}") from error
    finally:
        csv.field_size_limit(before)


def _separator(text: str) -> str:
    """The separator that occurs most in the line of the columns; a comma where none does."""
    line = text[:SNIFFED_CHARS].lstrip().split("\n", 1)[0]
    return max(_SEPARATORS, key=line.count)


def _rows(text: str, separator: str) -> Iterator[str]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    columns: Sequence[str] = []
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        if not columns:
            columns = [cell.strip() or f"column {number}" for number, cell in enumerate(row, 1)]
            continue
        if len(row) > len(columns):
            raise BadInput(
                f"line {rows.line_num:,} has {len(row)} values, but the first line names {len(columns)} columns"
            )
        yield paragraph(zip(columns, row, strict=False))
    if rows.line_num and columns and rows.line_num == 1:
        yield ", ".join(columns)


def paragraph(cells: Any) -> str:
    """Pairs of a column and its value as lines; those without a value are left out."""
    told = ((column, "" if value is None else str(value).strip()) for column, value in cells)
    return "\n".join(f"{column}: {value}" for column, value in told if value)


def read_json(path: Path) -> ExtractedText:
    """Each value as a line, under the names that lead to it; the items of a list apart. Raises BadInput."""
    value = _parsed(text_of(path), "")
    items = value if isinstance(value, list) else [value]
    return ExtractedText(_bounded(_separate_lines(items), "\n"))


def read_json_lines(path: Path) -> ExtractedText:
    """The same, with a value in each line of the file. Raises BadInput, which names the line."""
    lines = enumerate(text_of(path).split("\n"), 1)
    values = (_parsed(line, f"line {number:,} is no JSON: ") for number, line in lines if line.strip())
    return ExtractedText(_bounded(_separate_lines(values), "\n"))


def _separate_lines(values: Iterable[Any]) -> Iterator[str]:
    """The lines of each value, and an empty one between two."""
    for number, value in enumerate(values):
        if number:
            yield ""
        yield from _lines(value)


def _bounded(pieces: Iterable[str], between: str) -> str:
    """All of them as one text. Raises BadInput for one that is too long: names that repeat make much of a little."""
    kept: list[str] = []
    chars = 0
    for piece in pieces:
        kept.append(piece)
        chars += len(piece) + len(between)
        if chars > DOCUMENT_BYTES_MAX:
            raise BadInput(
                f"with its names beside its values it has more than {DOCUMENT_BYTES_MAX:,} characters; divide it"
            )
    return between.join(kept)


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"character {error.colno:,}" if where else f"line {error.lineno:,}, character {error.colno:,}"
        raise BadInput(f"{where or 'it is no JSON: '}{error.msg} at {place}") from error
    except (RecursionError, ValueError) as error:
        raise BadInput(f"{where or 'it is no JSON that can be read: '}{error}") from error


def _lines(value: Any, name: str = "") -> Iterator[str]:
    """A value as lines; what is inside it, under its names with dots between."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _lines(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for number, inner in enumerate(value, 1):
            yield from _lines(inner, f"{name} {number}".strip())
    elif value is not None and value not in ("", []):
        said = ", ".join(map(_word, value)) if isinstance(value, list) else _word(value)
        yield f"{name}: {said}" if name else said


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
