"""Write the result of a query for people and for other tools: table, JSON, CSV, Parquet, Arrow.

Used by `everlog sql`. Rows are written as they are computed, so memory does not grow with the result.
"""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, cast

import msgspec
import pyarrow as pa

from everlog.events import BadInput
from everlog.events.times import EPOCH
from everlog.interfaces.common import time_text
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output.json_shapes import JsonObject, line
from everlog.store import FleetPosition

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text

CELL_CHARS = 200
"""Longest value that a table shows whole."""
COLUMN_CHARS_MIN, COLUMN_GAP = 8, 2
"""Characters of each column below which its values cannot be read in a table, and those between two columns."""
ROWS_AT_ONCE = 1024
"""Rows that are converted to Python objects at a time, which bounds memory."""
_UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_INFINITY, _INFINITY_DAY = 2**63 - 1, 2**31 - 1
"""Values in which DuckDB stores the times `infinity` and, negative, `-infinity`."""
_EPOCH = EPOCH.replace(tzinfo=None)  # Python compares only times that both have a zone or both have none

RecordBatches = Iterable[pa.RecordBatch]


def head(schema: pa.Schema, position: FleetPosition) -> JsonObject:
    """Return the result for programs, without its rows."""
    columns = [{"name": field.name, "type": str(field.type)} for field in schema]
    return {**position_shape(position), "columns": columns}


def position_shape(position: FleetPosition) -> JsonObject:
    """Return the position of a result for programs."""
    return {
        "as_of": time_text.iso(time_text.since_epoch(position.as_of)),
        "records": position.records,
        "partitions": msgspec.to_builtins(position.partitions),
        "left_out": msgspec.to_builtins(position.left_out),
        "missing": list(position.missing),
    }


def write_json(head: JsonObject, batches: RecordBatches, out: IO[bytes]) -> None:
    """Write the result for programs as one JSON object: the head, then the rows as they are computed."""
    out.write(line(head).removesuffix("}").encode() + b',"rows":[')
    between = b""
    for batch in batches:
        for row in _rows(batch):
            out.write(between + _row(row))
            between = b","
    out.write(b"]}\n")


def _row(row: Sequence[Any]) -> bytes:
    try:
        return msgspec.json.encode([_json(value) for value in row])
    except (TypeError, ValueError, OverflowError) as error:
        raise _unwritable_value(error) from error


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    for start in range(0, batch.num_rows, ROWS_AT_ONCE):
        part = batch.slice(start, ROWS_AT_ONCE)
        yield from zip(*[_values(column) for column in part.columns], strict=True)


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column; times and days are ISO 8601 texts, whatever their year. Raises BadInput."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        ends = "Z" if kind.tz else ""
        return [None if at is None else _iso(at, kind.unit, ends) for at in column.view(pa.int64()).to_pylist()]
    if pa.types.is_date32(kind):
        return [None if day is None else _day(day) for day in column.view(pa.int32()).to_pylist()]
    try:
        if pa.types.is_time(kind):
            return list(column.cast(pa.string()).to_pylist())
        return list(column.to_pylist())
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise _unwritable_value(error) from error


def _iso(at: int, unit: str, ends: str) -> str:
    second = _UNITS_PER_SECOND[unit]
    if abs(at) == _INFINITY:
        return "infinity" if at > 0 else "-infinity"
    seconds, rest = divmod(at, second)
    try:
        when = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{at} {unit}"
    fraction = f".{rest:0{len(str(second)) - 1}}" if second > 1 else ""
    return when.isoformat(timespec="seconds") + fraction + ends


def _day(day: int) -> str:
    if abs(day) == _INFINITY_DAY:
        return "infinity" if day > 0 else "-infinity"
    try:
        return (_EPOCH + timedelta(days=day)).date().isoformat()
    except OverflowError:
        return f"{day} days"


def _unwritable_value(error: Exception) -> BadInput:
    return BadInput(
        f"The query succeeded, but a value of its result cannot be written ({error}). Cast the column to VARCHAR."
    )


def _json(value: Any) -> Any:
    return value if isinstance(value, int | str | float | None) else msgspec.to_builtins(value, str_keys=True)


def table(schema: pa.Schema, batches: RecordBatches, rows_max: int) -> "RenderableType":
    """Return the result for people: the first `rows_max` rows, and the number of the others. 0: all rows."""
    from rich.console import Group
    from rich.text import Text

    rows: list[Sequence[Text]] = []
    more = 0
    for batch in batches:
        take = batch.num_rows if not rows_max else min(batch.num_rows, rows_max - len(rows))
        for row in _rows(batch.slice(0, take)):
            rows.append([Text(_cell(value), "dim" if value is None else "") for value in row])
        more += batch.num_rows - take
    grid = _ShownRows(schema, rows)
    if not rows:
        return Group(grid, Text("no rows", "dim"))
    if not more:
        return grid
    footer = f"and {plural(more, 'more row')}: --rows 0 shows all, --format csv writes them"
    return Group(grid, Text(footer, "dim"))


class _ShownRows:
    """Rows for a terminal: a table if its columns can be read in the width, otherwise one line for each value."""

    def __init__(self, schema: pa.Schema, rows: "Sequence[Sequence[Text]]") -> None:
        self._schema = schema
        self._names = [_cell(field.name) for field in schema]
        self._rows = rows

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        """Yield what is printed in the width of `options`."""
        columns = zip(self._names, *self._rows, strict=True)
        needed = sum(min(max(map(len, column)), COLUMN_CHARS_MIN) + COLUMN_GAP for column in columns) - COLUMN_GAP
        yield self._table() if needed <= options.max_width or not self._rows else self._lines()

    def _table(self) -> "RenderableType":
        from rich import box
        from rich.table import Table
        from rich.text import Text

        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name, field in zip(self._names, self._schema, strict=True):
            kind = field.type
            right = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
            grid.add_column(Text(name), justify="right" if right else "left", overflow="fold")
        for row in self._rows:
            grid.add_row(*row)
        return grid

    def _lines(self) -> "RenderableType":
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for number, row in enumerate(self._rows, 1):
            grid.add_row(Text(f"row {number}", "bold"))
            for name, value in zip(self._names, row, strict=True):
                grid.add_row(Text(f"  {name}"), value)
        return grid


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    text = f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else str(value)
    text = sanitize(text).replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= CELL_CHARS else text[: CELL_CHARS - 1] + "…"


class _Escaping:
    """Output on a terminal: text is escaped by `sanitize` before it is written."""

    closed = False

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: bytes) -> int:
        self._out.write(sanitize(self._decoder.decode(bytes(data))).encode())
        return len(data)

    def flush(self) -> None:
        self._out.flush()


def write(form: str, schema: pa.Schema, batches: RecordBatches, out: IO[bytes]) -> None:
    """Write the result as `csv`, `parquet`, `arrow` (a file of Arrow IPC) or `arrow_stream`, batch by batch. Raises
    BadInput.

    CSV is escaped on a terminal, which its control characters would command; files and pipes get the exact values.
    """
    if form == "csv" and out.isatty():
        out = cast("IO[bytes]", _Escaping(out))
    try:
        _write(form, schema, batches, out)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError, TypeError) as error:
        raise _unwritable_value(error) from error


def _write(form: str, schema: pa.Schema, batches: RecordBatches, out: IO[bytes]) -> None:
    if form == "csv":
        _write_csv(schema, batches, out)
        return
    if form == "parquet":
        from pyarrow import parquet

        writer = parquet.ParquetWriter(out, schema, compression="zstd")
    elif form == "arrow_stream":
        writer = pa.ipc.new_stream(out, schema)
    else:
        writer = pa.ipc.new_file(out, schema)
    with writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_csv(schema: pa.Schema, batches: RecordBatches, out: IO[bytes]) -> None:
    from pyarrow import csv

    flat = pa.schema([field.with_type(pa.string()) if _is_written_as_text(field.type) else field for field in schema])
    with csv.CSVWriter(out, flat) as writer:
        for batch in batches:
            columns = [_as_text(c) if _is_written_as_text(c.type) else c for c in batch.columns]
            writer.write_batch(pa.record_batch(columns, schema=flat))


def _is_written_as_text(kind: pa.DataType) -> bool:
    """Return True if CSV has no form for the type. Nested and binary values are written as JSON; times, days and
    dictionary values as text.
    """
    return bool(pa.types.is_nested(kind) or pa.types.is_binary(kind) or _is_text(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind) or pa.types.is_dictionary(kind))


def _as_text(column: pa.Array) -> pa.Array:
    values = _values(column)
    if _is_text(column.type):
        return pa.array(values, pa.string())
    texts = [None if value is None else msgspec.json.encode(value).decode() for value in values]
    return pa.array(texts, pa.string())
