"""Rows of a query stay readable, however many columns they have."""

import io

import pyarrow as pa
from rich.console import Console

from everlog.interfaces.output import sql_output


def printed(names: int, width: int, rows: int = 2) -> list[str]:
    """Return the lines of a result with `names` columns, whose values are `value NUMBER`, at a width in characters."""
    batch = pa.record_batch({f"column_{n}": [f"value {n}"] * rows for n in range(names)})
    console = Console(file=io.StringIO(), width=width)
    console.print(sql_output.table(batch.schema, [batch], 0))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_columns_that_fit_are_a_table() -> None:
    """Each row is one line below the names."""
    assert printed(3, 80)[2:] == ["value 0    value 1    value 2"] * 2


def test_too_many_columns_are_lines() -> None:
    """Each value has a line with the name of its column, whole, and each row its number."""
    lines = printed(19, 80)
    assert lines[0] == "row 1"
    assert lines[1:20] == [f"  column_{n}".ljust(11) + f"  value {n}" for n in range(19)]
    assert lines[20] == "row 2"
    assert len(lines) == 40


def test_the_width_decides() -> None:
    """The same result is a table where there is room for it."""
    assert len(printed(19, 400)) == 4
    assert len(printed(8, 100)) == 4
    assert len(printed(8, 77)) == 18


def test_no_rows_need_no_room() -> None:
    """Without rows the names are shown, and that there are none."""
    assert printed(19, 80, 0)[-1] == "no rows"
