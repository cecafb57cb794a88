"""Tell how far back summaries let a context see, and so which records a state needs. Pure.

Used by `engine`, `state` and `resumed_agents`.
"""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from everlog.events import is_erased
from everlog.projections.projection_constants import HEAD
from everlog.store.base.arrow_values import int_array, text_value
from everlog.store.base.lazy_pyarrow import pc


def kept_from(rows: pa.Table) -> dict[str, int]:
    """Return the first seq that the context of each agent shows, by its newest summary among `rows` of hot tables."""
    is_summary = pc.equal(rows.column("slot"), text_value("summary"))
    summaries = rows.select(["agent_id", "seq", "kept_from"]).filter(is_summary).sort_by("seq")
    return {row["agent_id"]: row["kept_from"] for row in summaries.to_pylist()}


def shown_from(payload: str) -> int:
    """Return the first seq that a summary, or the undoing of one, leaves in view; HEAD if it was erased."""
    return int(HEAD if is_erased(payload) else msgspec.json.decode(payload).get("kept_from", 0))


def values_of_kinds(
    table: pa.Table, kinds: Sequence[str], wanted: Collection[str], column: str
) -> list[tuple[str, Any]]:
    """Return agent and value in `column` of each record of the wanted kinds; `kinds` are those of all rows."""
    places = [place for place, kind in enumerate(kinds) if kind in wanted]
    if not places:
        return []
    rows = table.select(["agent_id", column]).take(int_array(places))
    return list(zip(*(values.to_pylist() for values in rows.columns), strict=True))
