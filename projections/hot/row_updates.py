"""Update older rows that newly inserted records change: ended lives, counts, and rows that a summary makes cold.

Used by `engine`, in the transaction of the insert.
"""

from collections.abc import Callable, Sequence

from everlog.projections.hot.parsed_statements import ParsedStatements

_TO_COLD = "INSERT INTO cold SELECT h.* FROM hot h JOIN settled s ON s.agent_id = h.agent_id AND s.seq = h.seq"
_FROM_HOT = "DELETE FROM hot USING settled s WHERE hot.agent_id = s.agent_id AND hot.seq = s.seq"


class RowUpdates:
    """Updates of one DuckDB."""

    def __init__(self, statements: ParsedStatements, sql: Callable[[str], str]) -> None:
        """Create the updates of the DuckDB of `statements`. `sql` returns the text of a SQL file by its name."""
        self._run, self._sql = statements.run, sql

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
