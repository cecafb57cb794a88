"""Make the tables of the SQL views from the catalogue: each column and its type, beside the meaning written by hand."""

import re
from functools import cache

from docs.make.blocks import UnknownBlock, table
from everlog.projections.fleet_views import NAMED_VIEWS, FleetViews
from everlog.store import SCHEMA

_ROW = re.compile(r"^\| `(\w+)` \| [^|]* \| (.*?) \|$", re.MULTILINE)


@cache
def columns() -> dict[str, list[tuple[str, str]]]:
    """Return the columns of every view, each with its type, as a store without records describes them."""
    with FleetViews([], SCHEMA.empty_table()) as views:
        found = {}
        for view in NAMED_VIEWS:
            rows = views.table(f"DESCRIBE {view}").to_pylist()
            found[view] = [(str(row["column_name"]), str(row["column_type"])) for row in rows]
        return found


def view_block(name: str, old: str) -> str:
    """Return the table of one view. The meanings are those that the table has now. Raise UnknownBlock."""
    if name not in NAMED_VIEWS:
        raise UnknownBlock(f"there is no view {name!r}: there are {NAMED_VIEWS}")
    meanings = dict(_ROW.findall(old))
    rows = [(f"`{column}`", f"`{kind}`", meanings.get(column, "")) for column, kind in columns()[name]]
    return table(("column", "type", "meaning"), rows)


def unexplained(page: str) -> list[str]:
    """Return the columns of a page whose meaning is empty."""
    return [column for column, meaning in _ROW.findall(page) if not meaning.strip()]
