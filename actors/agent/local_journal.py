"""The journal of a host with one agent at work at a time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from everlog.events import Draft, Record
from everlog.projections import Projections
from everlog.store import Commit, Log, LogReader


class LocalJournal:
    """The journal of a host with one agent at work at a time: no thread, no queue."""

    def __init__(self, log: Log, projections: Projections, reader: LogReader) -> None:
        """`reader`: of all records of the agent, which may have come from another log."""
        self._log = log
        self._reader = reader
        self._projections = projections

    async def commit(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append durably, then project. The acknowledgement stands: if the projection fails, it is built again."""
        commit = self._log.append(agent_id, expected_seq, drafts)
        if not commit.repeated:
            try:
                self._projections.add(commit.records)
            except duckdb.Error:
                self._projections.forget(agent_id)
                self._projections.load(self._reader.table(agent_id))
        return commit

    async def rows(self, name: str, agent_id: str, as_of: int) -> Sequence[Mapping[str, Any]]:
        """Rows of a projection as of a seq, inclusive."""
        return self._projections.answers(name, [(agent_id, as_of)])[0]

    def read(self, agent_id: str, from_seq: int) -> Iterator[Record]:
        """The agent's records from a seq (inclusive) on, in order."""
        return self._reader.read(agent_id, from_seq)

    def seq_at(self, agent_id: str, time: int) -> int:
        """The agent's last seq that was recorded up to a time (microseconds UTC, inclusive); 0 for none."""
        return self._reader.seq_at(agent_id, time)
