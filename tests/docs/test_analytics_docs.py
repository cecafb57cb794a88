"""docs/analytics.md is correct: every example runs, and every column is explained."""

import re
from pathlib import Path

import pytest

from everlog.projections.fleet_views import CURRENT_VIEWS, VIEWS
from tests.support.cli.command_line import Line

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "sql.md").read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def talked(cli: Line) -> Line:
    """Return a command line whose agent has had a conversation."""
    cli.begin("analysed", lambda line: line.ok("send", "sam", "I sail"))
    return cli


def test_every_example_runs(talked: Line) -> None:
    """Each query of the page runs, and the queries over data that every store has return rows."""
    assert len(EXAMPLES) >= len(VIEWS) + len(CURRENT_VIEWS)
    found = [talked.json("sql", query)["rows"] for query in EXAMPLES]
    assert sum(map(bool, found)) >= len(EXAMPLES) - 4 - len(CURRENT_VIEWS)


@pytest.mark.parametrize("view", [*VIEWS, *CURRENT_VIEWS])
def test_every_column_is_explained(talked: Line, view: str) -> None:
    """The table of a view names all of its columns and no others; the section has an example about the view."""
    columns = {row[0] for row in talked.json("sql", f"DESCRIBE {view}")["rows"]}
    first = re.findall(r"^\| (`.*?) \|", SECTIONS[view], re.MULTILINE)
    told = [name for cell in first for name in re.findall(r"`(\w+)`", cell)]
    assert set(told) == columns
    assert len(told) == len(columns)
    assert f"FROM {view}" in SECTIONS[view]
