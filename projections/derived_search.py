"""Read what was derived from an agent's memories, as of any moment, for searches.

Used by `actors/memory/derived_search.py`. Which of them answer a query is decided there.
"""

from collections.abc import Sequence

from everlog.projections.engine import Projections
from everlog.projections.hot.rows import Row


class DerivedRows:
    """Insights, facts and items of plans of one agent as of one seq."""

    def __init__(self, projections: Projections, agent_id: str, as_of: int) -> None:
        self._projections = projections
        self._agent_id = agent_id
        self._as_of = as_of

    def all(self) -> Sequence[Row]:
        """Return the rows of `search_derived.sql`."""
        return self._projections.search("search_derived", self._agent_id, self._as_of)

    def archival_versions(self) -> dict[int, int]:
        """Return, by the seq that inserted a text into archival memory, the seq that gave it its current text."""
        rows = self._projections.search("archival_versions", self._agent_id, self._as_of)
        return {row["seq"]: row["newest"] for row in rows}
