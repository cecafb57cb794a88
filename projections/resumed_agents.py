"""Know which agents of an engine continue from states, and read all records of such agents from their logs.

Also tell how far back summaries let a context see, and so which records a state needs. Used by `engine` and `state`,
and by `talk_reads` through the engine.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from everlog.events import is_erased
from everlog.projections.projection_constants import HEAD, LOGGED_RECORDS_AT_ONCE
from everlog.store import LogReader
from everlog.store.base.arrow_values import int_array, text_value
from everlog.store.base.lazy_pyarrow import pc


class ResumedAgents:
    """Agents of which an engine has the rows of a state and what came after it. For one thread at a time."""

    def __init__(self) -> None:
        self._readers: dict[str, LogReader] = {}
        self._kept_from: dict[str, int] = {}
        """First seq that the state of each agent shows."""

    def note(self, rows: pa.Table, readers: Mapping[str, LogReader]) -> None:
        """Take note of agents that continue from states with these rows; each reader has all records of its agent."""
        shown = kept_from(rows)
        for agent_id, reader in readers.items():
            self._readers[agent_id] = reader
            self._kept_from[agent_id] = shown.get(agent_id, 0)

    def forget(self, agents: Iterable[str]) -> None:
        """Forget these agents: they left the engine, or the engine has all their records."""
        for agent_id in agents:
            self._readers.pop(agent_id, None)
            self._kept_from.pop(agent_id, None)

    def among(self, agents: Iterable[str] | None) -> list[str]:
        """Return those of these agents that continue from states, sorted; None: all that do."""
        return sorted(self._readers.keys() if agents is None else self._readers.keys() & set(agents))

    def reaching(self, summaries: Iterable[tuple[str, str]]) -> set[str]:
        """Return the agents with a summary, among (agent, payload), that shows more than their state has."""
        return {a for a, payload in summaries if a in self._readers and shown_from(payload) < self._kept_from[a]}

    def records(self, agent_id: str, head: int) -> pa.Table:
        """Return all records of an agent up to a seq, inclusive, in commit order."""
        return self._readers[agent_id].table(agent_id, 1, head)

    def logged(self, heads: Mapping[str, int]) -> Iterator[pa.Table]:
        """Yield all records of these agents from their logs, in commit order, for some agents at a time: each part of a
        file is read once for many agents. `heads`: newest seq of each agent in the engine; a log may have more.
        """
        by_reader: dict[int, list[str]] = {}
        for agent_id in sorted(heads):
            by_reader.setdefault(id(self._readers[agent_id]), []).append(agent_id)
        for agents in by_reader.values():
            reader = self._readers[agents[0]]
            for some in _batches(agents, heads):
                for states in reader.states(None, some):
                    yield states.after


def _batches(agents: Collection[str], heads: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield the agents in lists of at most LOGGED_RECORDS_AT_ONCE records together; an agent with more is alone."""
    batch: list[str] = []
    records = 0
    for agent_id in agents:
        if batch and records + heads[agent_id] > LOGGED_RECORDS_AT_ONCE:
            yield batch
            batch, records = [], 0
        batch.append(agent_id)
        records += heads[agent_id]
    yield batch


def kept_from(rows: pa.Table) -> dict[str, int]:
    """Return the first seq that the context of each agent shows, by its newest summary among `rows` of states."""
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
