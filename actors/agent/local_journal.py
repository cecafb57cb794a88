"""Journal of a host with one agent at work at a time.

Used by `activation.py` for an agent with a log of its own. An error after the records are on disk must not reach the
caller as a failed commit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from everlog.events import Draft, Record
from everlog.projections import Projections, read_talks
from everlog.store import Commit, Log, LogReader, repeated_elsewhere

if TYPE_CHECKING:
    from everlog.projections.search.talk_index import TalkView

T = TypeVar("T")


class LocalJournal:
    """Journal of a host with one agent at work at a time: no thread, no queue."""

    def __init__(self, log: Log, projections: Projections, reader: LogReader) -> None:
        """`reader` reads all records of the agent, also those from another log."""
        self._log = log
        self._reader = reader
        self._projections = projections

    async def commit(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append durably, then project. If the projection fails, the commit stands and the projections are rebuilt."""
        commit = repeated_elsewhere(self._reader, drafts) or self._log.append(agent_id, expected_seq, drafts)
        if not commit.repeated:
            # The records are on disk, so an error here must not reach the caller as a failed commit.
            self._project(agent_id, partial(self._projections.add, commit.records))
        return commit

    def _project(self, agent_id: str, change: Callable[[], None]) -> None:
        """Change the projections. If that fails they may be half changed, and are rebuilt from the log."""
        try:
            change()
        except duckdb.Error:
            self._rebuild(agent_id)

    def _rebuild(self, agent_id: str) -> None:
        self._projections.forget(agent_id)
        self._projections.load(self._reader.table(agent_id))

    async def rows(self, name: str, agent_id: str, as_of: int, turn: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Return rows of a projection as of a seq, inclusive. `turn`: that of the call whose context is asked for."""
        wanted = (agent_id, as_of) if turn is None else (agent_id, as_of, turn)
        return self._asked(agent_id, lambda: self._projections.answers(name, [wanted])[0])

    async def talk(self, agent_id: str, said_by: int) -> "TalkView":
        """Return what the agent had said and heard by a seq, inclusive."""
        return self._asked(agent_id, lambda: read_talks(self._projections, [(agent_id, said_by)])[0])

    def _asked(self, agent_id: str, read: Callable[[], T]) -> T:
        """Return what `read` returns. If the records that waited for it cannot be inserted, rebuild the projections."""
        try:
            return read()
        except duckdb.Error:
            if not self._projections.pending:  # everything was inserted, so the query is at fault
                raise
        self._rebuild(agent_id)
        return read()

    def read(self, agent_id: str, from_seq: int) -> Iterator[Record]:
        """Return the agent's records from a seq (inclusive) on, in order, as an iterator."""
        return self._reader.read(agent_id, from_seq)

    def seq_at(self, agent_id: str, time: int) -> int:
        """Return the agent's last seq recorded up to a time (microseconds UTC, inclusive); 0 for none."""
        return self._reader.seq_at(agent_id, time)
