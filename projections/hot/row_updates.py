"""Update older rows that newly inserted records change: ended lives, and counts. Delete rows.

Used by `engine`, in the transaction of the insert.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from everlog.events import Record
from everlog.projections.hot.parsed_statements import ParsedStatements

SUMMARIES = ("summary", "summary_expanded")
"""Kinds of records that change from which seq on the context shows messages."""
COUNTED = frozenset({"memory_edited", "block_removed", "agent_configured", *SUMMARIES})
"""Kinds of records that have the counts of the memory header."""


class OlderRowChanges(NamedTuple):
    """Updates of older rows that new records make necessary."""

    births: Sequence[tuple[str, int]]
    """Agents that were created again, and the seq of each creation."""
    counting: str | None
    """Name of the statement that counts for the memory header, if there is something to count."""

    @classmethod
    def by(cls, records: Sequence[Record]) -> "OlderRowChanges":
        """Return those that a few records make necessary."""
        births = [(record.agent_id, record.seq) for record in records if record.type == "agent_created"]
        counting = "count_new" if any(record.type in COUNTED for record in records) else None
        return cls([birth for birth in births if birth[1] > 1], counting)


class RowUpdates:
    """Updates of one DuckDB."""

    def __init__(self, statements: ParsedStatements, sql: Callable[[str], str], few_agents: int) -> None:
        """Create the updates of the DuckDB of `statements`. `sql` returns the text of a SQL file by its name. Rows of
        up to `few_agents` agents, inclusive, are deleted by a list, those of more by a join.
        """
        self._run, self._sql, self._few_agents = statements.run, sql, few_agents

    def end_lives(self, births: Sequence[tuple[str, int]]) -> None:
        """Mark the rows before each birth, (agent, seq), as those of a life that has ended."""
        for birth in births:
            self._run(self._sql("end_life"), birth)

    def count(self, name: str) -> None:
        """Fill the counts of the memory header with `count_new` or `count_all`."""
        self._run(self._sql(name))

    def delete(self, agents: Sequence[str]) -> int:
        """Delete the rows of these agents. Return the number of these rows."""
        few = len(agents) <= self._few_agents
        among = "list_contains($1::VARCHAR[], agent_id)" if few else "agent_id IN (SELECT unnest($1::VARCHAR[]))"
        deleted = self._run(f"DELETE FROM records WHERE {among}", [list(agents)]).fetchone()
        return cast("tuple[int]", deleted)[0]
