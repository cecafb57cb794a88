"""Update older rows that newly inserted records change: ended lives, counts, and rows that a summary makes cold. Delete
rows.

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

_TO_COLD = "INSERT INTO cold SELECT h.* FROM hot h JOIN settled s ON s.agent_id = h.agent_id AND s.seq = h.seq"
_FROM_HOT = "DELETE FROM hot USING settled s WHERE hot.agent_id = s.agent_id AND hot.seq = s.seq"


class OlderRowChanges(NamedTuple):
    """Updates of older rows that new records make necessary."""

    births: Sequence[tuple[str, int]]
    """Agents that were created again, and the seq of each creation."""
    counting: str | None
    """Name of the statement that counts for the memory header, if there is something to count."""
    summarized: Sequence[str]
    """Agents with a new summary."""

    @classmethod
    def by(cls, records: Sequence[Record]) -> "OlderRowChanges":
        """Return those that a few records make necessary."""
        births = [(record.agent_id, record.seq) for record in records if record.type == "agent_created"]
        counting = "count_new" if any(record.type in COUNTED for record in records) else None
        summarized = sorted({record.agent_id for record in records if record.type in SUMMARIES})
        return cls([birth for birth in births if birth[1] > 1], counting, summarized)


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
            for table in ("hot", "cold"):
                self._run(self._sql("end_life").format(table=table), birth)

    def count(self, name: str) -> None:
        """Fill the counts of the memory header with `count_new` or `count_all`."""
        self._run(self._sql(name))

    def reload(self, agents: Sequence[str]) -> None:
        """Move the cold rows of agents whose newest summary shows some of them back to the hot table."""
        for (agent_id,) in self._run(self._sql("thaw"), [list(agents)]).fetchall():
            self._run("INSERT INTO hot FROM cold WHERE agent_id = ?", [agent_id])
            self._run("DELETE FROM cold WHERE agent_id = ?", [agent_id])

    def evict(self, settle: str, parameters: Sequence[object]) -> None:
        """Move the rows that the query `settle` returns into the cold table."""
        self._run(f"INSERT INTO settled {settle}", parameters)
        self._run(_TO_COLD)
        self._run(_FROM_HOT)
        self._run("DELETE FROM settled")

    def delete(self, agents: Sequence[str], *, cold: bool) -> int:
        """Delete the rows of these agents, also from the cold table if `cold`. Return the number of these rows."""
        few = len(agents) <= self._few_agents
        among = "list_contains($1::VARCHAR[], agent_id)" if few else "agent_id IN (SELECT unnest($1::VARCHAR[]))"
        statements = [f"DELETE FROM {table} WHERE {among}" for table in ("hot", "cold")[: 1 + cold]]
        deleted = [self._run(one, [list(agents)]).fetchone() for one in statements]
        return sum(cast("tuple[int]", row)[0] for row in deleted)
