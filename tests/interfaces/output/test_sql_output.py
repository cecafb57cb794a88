"""Results of queries on a terminal and in files."""

import io

import pyarrow as pa
import pytest

from everlog.interfaces.output import sql_output

RAW = "x\x1b[31m\u200b\u202eé"


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("out", "shown"), [
    (Terminal(), "x\\x1b[31m\\u200b\\u202eé"), (io.BytesIO(), RAW),
])  # fmt: skip
def test_csv_is_escaped_on_a_terminal_only(out: io.BytesIO, shown: str) -> None:
    """CSV on a terminal shows control characters and invisible ones escaped; a file and a pipe get the exact value."""
    schema = pa.schema([("a", pa.string())])
    sql_output.write("csv", schema, [pa.record_batch([[RAW]], schema=schema)], out)
    assert out.getvalue().decode() == f'"a"\n"{shown}"\n'
