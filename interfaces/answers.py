"""Answers of SQL as people and other tools read them: a table, JSON, CSV, Parquet, Arrow."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import IO, Any

import msgspec
import pyarrow as pa
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from store import Snapshot

from . import times
from .complaints import plain
from .shapes import Shape

CELL_CHARS = 200
"""Longest value of a table."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a time without a zone is held against one without a zone

Batches = Iterable[pa.RecordBatch]


def shape(schema: pa.Schema, batches: Batches, position: Snapshot, at: int) -> Shape:
    """The answer for programs."""
    rows = [[_json(value) for value in row] for batch in batches for row in _rows(batch)]
    return {
        "as_of": times.iso(at),
        "records": position.records,
        "partitions": msgspec.to_builtins(position.parts),
        "left_out": msgspec.to_builtins(position.left_out),
        "columns": [{"name": field.name, "type": str(field.type)} for field in schema],
        "rows": rows,
    }


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*[_values(column) for column in batch.columns], strict=True)


def _values(column: pa.Array) -> list[Any]:
    """The values of a column; times as ISO texts, whatever their year."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        ends = "Z" if kind.tz else ""
        return [None if at is None else _iso(at, ends) for at in column.view(pa.int64()).to_pylist()]
    return list(column.to_pylist())


def _iso(at: int, ends: str) -> str:
    try:
        when = _EPOCH + timedelta(microseconds=at)
    except OverflowError:
        return f"{at} us"
    return when.isoformat(timespec="microseconds") + ends


def _json(value: Any) -> Any:
    return value if isinstance(value, int | str | float | None) else msgspec.to_builtins(value, str_keys=True)


def table(schema: pa.Schema, batches: Batches, rows_max: int) -> RenderableType:
    """The answer for people; of more than `rows_max` rows the first ones, and how many more there are. 0: all."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for field in schema:
        right = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        grid.add_column(Text(_cell(field.name)), justify="right" if right else "left", overflow="fold")
    shown = more = 0
    for batch in batches:
        take = batch.num_rows if not rows_max else min(batch.num_rows, rows_max - shown)
        for row in _rows(batch.slice(0, take)):
            grid.add_row(*(Text(_cell(value), "dim" if value is None else "") for value in row))
        shown += take
        more += batch.num_rows - take
    if not shown:
        return Group(grid, Text("no rows", "dim"))
    if not more:
        return grid
    told = f"and {more:,} more row{'s' * (more != 1)}: --rows 0 shows all, --format csv writes them"
    return Group(grid, Text(told, "dim"))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    text = f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else str(value)
    text = plain(text).replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= CELL_CHARS else text[: CELL_CHARS - 1] + "…"


def write(form: str, schema: pa.Schema, batches: Batches, out: IO[bytes]) -> None:
    """The answer as `csv`, `parquet` or `arrow` (a file of Arrow IPC), batch by batch."""
    if form == "csv":
        _write_csv(schema, batches, out)
        return
    if form == "parquet":
        from pyarrow import parquet

        writer = parquet.ParquetWriter(out, schema, compression="zstd")
    else:
        writer = pa.ipc.new_file(out, schema)
    with writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_csv(schema: pa.Schema, batches: Batches, out: IO[bytes]) -> None:
    from pyarrow import csv

    flat = pa.schema([field.with_type(pa.string()) if _is_odd(field.type) else field for field in schema])
    with csv.CSVWriter(out, flat) as writer:
        for batch in batches:
            columns = [_as_text(c) if _is_odd(c.type) else c for c in batch.columns]
            writer.write_batch(pa.record_batch(columns, schema=flat))


def _is_odd(kind: pa.DataType) -> bool:
    """What CSV has no form for: it is written as JSON; and times, which are ISO 8601."""
    return bool(pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_timestamp(kind))


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return pa.array(_values(column), pa.string())
    texts = [None if value is None else msgspec.json.encode(value).decode() for value in column.to_pylist()]
    return pa.array(texts, pa.string())
