"""Every type of DuckDB in every format: written, or refused in one paragraph."""

import io
import json
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from everlog.events import BadInput
from everlog.interfaces.output import sql_output
from everlog.projections.fleet_views import FleetViews, QueryLimits
from everlog.store import SCHEMA

FORMATS = ("table", "json", "csv", "parquet", "arrow")
VALUES = [
    "DATE '20000-01-01'",
    "DATE '0044-03-15 (BC)'",
    "'infinity'::DATE",
    "'-infinity'::TIMESTAMP",
    "'44-03-15 (BC) 00:00:00'::TIMESTAMP",
    "'290000-01-01'::TIMESTAMP_S",
    "TIMESTAMP_MS '2024-01-01'",
    "TIMESTAMP_NS '2024-01-01 00:00:00.123456789'",
    "INTERVAL '1 month 3 days'",
    "INTERVAL '200000000 days'",
    "[INTERVAL 1 DAY]",
    "{'a': now(), 'b': [INTERVAL 1 DAY]}",
    "MAP {'a': now()}",
    "[DATE '20000-01-01']",
    "123456789012345678901234567890::BIGNUM",
    "union_value(a := 1)",
    "{'a': 1}::VARIANT",
    "'101'::BIT",
    "TIMETZ '12:00:00+02'",
    "TIME '12:00:00'",
    "TIME_NS '12:00:00.123456789'",
    "'x'::ENUM('x')",
    "'\\xFF'::BLOB",
    "'nan'::DOUBLE",
    "uuid()",
    "1::UHUGEINT",
    "[1, 2]::INT[2]",
    "NULL",
]
ALL = [name for (name,) in duckdb.sql("SELECT column_name FROM (DESCRIBE FROM test_all_types())").fetchall()]


REFUSED = {"hugeint", "uhugeint", "date_array", "timestamp_array", "timestamptz_array", "empty_struct"}
"""Types whose extreme values at least one format cannot hold."""


@pytest.fixture(scope="module")
def views() -> Iterator[FleetViews]:
    with FleetViews([], pa.Table.from_pylist([], SCHEMA), limits=QueryLimits(threads=1)) as made:
        yield made


def written(views: FleetViews, query: str, form: str) -> bytes:
    """Return the output of a command."""
    schema, batches = views.select(query)
    out = io.BytesIO()
    if form == "json":
        sql_output.write_json({"columns": []}, batches, out)
        json.loads(out.getvalue())
    elif form == "table":
        told = io.StringIO()
        Console(file=told).print(sql_output.table(schema, batches, 50))
        return told.getvalue().encode()
    else:
        sql_output.write(form, schema, batches, out)
    return out.getvalue()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("value", [*VALUES, *ALL])
def test_every_type_is_written_or_refused(views: FleetViews, value: str, form: str) -> None:
    """The only possible error says what to do, and occurs only for extreme values."""
    query = f'SELECT "{value}" FROM test_all_types()' if value in ALL else f"SELECT {value} AS v"
    may_fail = value in REFUSED or value == "[DATE '20000-01-01']"
    try:
        told = "" if written(views, query, form) else "nothing was written"
    except BadInput as error:
        told = str(error)
    assert not told or (may_fail and "Cast" in told)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("DATE '20000-01-01'", "6585322 days"),
        ("'infinity'::DATE", "infinity"),
        ("'-infinity'::TIMESTAMP", "-infinity"),
        ("DATE '2024-02-29'", "2024-02-29"),
        ("TIMESTAMP_S '2024-02-29 12:00:01'", "2024-02-29T12:00:01"),
        ("TIMESTAMP_NS '2024-01-01 00:00:00.123456789'", "2024-01-01T00:00:00.123456789"),
        ("TIMESTAMP '1969-12-31 23:59:59.5'", "1969-12-31T23:59:59.500000"),
        ("INTERVAL '1 month 3 days'", "1 month 3 days"),
        ("123456789012345678901234567890::BIGNUM", "123456789012345678901234567890"),
        ("union_value(a := 1)", "1"),
        ("TIME '12:00:00'", "12:00:00.000000"),
    ],
)
def test_odd_values_are_reported_alike_in_text(views: FleetViews, value: str, told: str) -> None:
    """JSON and CSV write the same text for a value."""
    query = f"SELECT {value} AS v"
    assert json.loads(written(views, query, "json"))["rows"] == [[told]]
    assert written(views, query, "csv").decode().splitlines()[1] == json.dumps(told)


def test_columns_beside_an_odd_one_keep_names_types_and_order(views: FleetViews) -> None:
    """Columns of equal names stay apart, and rows keep the order of the query."""
    query = 'SELECT range AS "a""b\'", to_days(range::INT) AS x, range AS x FROM range(200000) ORDER BY range DESC'
    table = pq.ParquetFile(io.BytesIO(written(views, query, "parquet"))).read()
    assert table.column_names == ["a\"b'", "x", "x"]
    assert [str(field.type) for field in table.schema] == ["int64", "string", "int64"]
    assert table.column(0).to_pylist() == list(range(199_999, -1, -1))
    assert table.column(1)[0].as_py() == "199999 days"
