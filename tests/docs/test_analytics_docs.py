"""docs/analytics.md is correct: every example runs, and every column is explained."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.actors.memory.fleet_sql import fleet_views
from everlog.projections.fleet_views import CURRENT_VIEWS, VIEWS, FleetViews
from everlog.store import FileStore
from tests.support.agent_world import ManualClock, World, say

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "sql.md").read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetViews]:
    """Yield the views of a store whose agent has had a conversation: to make them takes longer than to ask them."""
    store = FileStore.create(tmp_path_factory.mktemp("analysed") / "store", ManualClock().now, "0" * 32)
    asyncio.run(World(say("Indeed."), store=store).tell("I sail"))
    with fleet_views(store) as (found, _):
        yield found


def test_every_example_runs(views: FleetViews) -> None:
    """Each query of the page runs, and the queries over data that every store has return rows."""
    assert len(EXAMPLES) >= len(VIEWS) + len(CURRENT_VIEWS)
    found = [views.table(query).num_rows for query in EXAMPLES]
    assert sum(map(bool, found)) >= len(EXAMPLES) - 4 - len(CURRENT_VIEWS)


@pytest.mark.parametrize("view", [*VIEWS, *CURRENT_VIEWS])
def test_every_column_is_explained(views: FleetViews, view: str) -> None:
    """The table of a view names all of its columns and no others; the section has an example about the view."""
    columns = set(views.table(f"FROM {view} LIMIT 0").column_names)
    first = re.findall(r"^\| (`.*?) \|", SECTIONS[view], re.MULTILINE)
    told = [name for cell in first for name in re.findall(r"`(\w+)`", cell)]
    assert set(told) == columns
    assert len(told) == len(columns)
    assert f"FROM {view}" in SECTIONS[view]
