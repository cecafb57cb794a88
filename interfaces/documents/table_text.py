"""Extract readable text from CSV and JSON: one line `column: value` for each value, a blank line between rows.

Imported by `extract_text` for the first such file, and used by `query_rows`. Another text for the same content makes a
loaded document count as changed.
"""

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
"""Characters at the beginning of a CSV file from which its separator is guessed."""
_SEPARATORS = ",;\t|"


def read_csv(path: Path) -> ExtractedText:
    """Return each row as a paragraph. The first row names the columns; raise BadInput for a row with more values."""
    text = text_of(path)
    before = csv.field_size_limit(DOCUMENT_BYTES_MAX)
    try:
        return ExtractedText(_bounded(_rows(text, "\t" if path.suffix.lower() == ".tsv" else _separator(text)), "\n\n"))
    except csv.Error as error:
        raise BadInput(f"it is not valid CSV: {error}") from error
    finally:
        csv.field_size_limit(before)


def _separator(text: str) -> str:
    """Return the separator that is most frequent in the first line; a comma if there is none."""
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
    """Return pairs of a column and its value as lines `column: value`, without empty values."""
    cells_text = ((column, "" if value is None else str(value).strip()) for column, value in cells)
    return "\n".join(f"{column}: {value}" for column, value in cells_text if value)


def read_json(path: Path) -> ExtractedText:
    """Return each value on a line after its path of names; items of a top-level list are separated. Raises BadInput."""
    value = _parsed(text_of(path), "")
    items = value if isinstance(value, list) else [value]
    return ExtractedText(_bounded(_separate_lines(items), "\n"))


def read_json_lines(path: Path) -> ExtractedText:
    """Return the same for a file with one JSON value per line. Raise BadInput, which names the faulty line."""
    lines = enumerate(text_of(path).split("\n"), 1)
    values = (_parsed(line, f"line {number:,} is not valid JSON: ") for number, line in lines if line.strip())
    return ExtractedText(_bounded(_separate_lines(values), "\n"))


def _separate_lines(values: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of each value, with an empty line between two values."""
    for number, value in enumerate(values):
        if number:
            yield ""
        yield from _lines(value)


def _bounded(pieces: Iterable[str], between: str) -> str:
    """Join the pieces to one text. Raise BadInput if it gets too long: repeated names can make a small file large."""
    kept: list[str] = []
    chars = 0
    for piece in pieces:
        kept.append(piece)
        chars += len(piece) + len(between)
        if chars > DOCUMENT_BYTES_MAX:
            raise BadInput(
                f"with a name before each value it has more than {DOCUMENT_BYTES_MAX:,} characters; split it"
            )
    return between.join(kept)


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"character {error.colno:,}" if where else f"line {error.lineno:,}, character {error.colno:,}"
        raise BadInput(f"{where or 'it is not valid JSON: '}{error.msg} at {place}") from error
    except (RecursionError, ValueError) as error:
        raise BadInput(f"{where or 'it is not readable JSON: '}{error}") from error


def _lines(value: Any, name: str = "") -> Iterator[str]:
    """Yield a value as lines; inner values are named by their path, with dots between the names."""
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
