"""Where an agent writes and reads: the log and the projections, always in step. One Protocol, so that a host of many
agents can commit, project and query them together; a lone agent is a batch of one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from everlog.events import Draft, Record
from everlog.store import Commit


class Journal(Protocol):
    """The log of one agent and the projections over it."""

    async def commit(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append durably, then project: when this returns, `rows` sees the records."""
        ...

    async def rows(self, name: str, agent_id: str, as_of: int) -> Sequence[Mapping[str, Any]]:
        """Rows of a projection as of a seq, inclusive."""
        ...

    def read(self, agent_id: str, from_seq: int) -> Iterator[Record]:
        """The agent's records from a seq (inclusive) on, in order."""
        ...

    def seq_at(self, agent_id: str, time: int) -> int:
        """The agent's last seq that was recorded up to a time (microseconds UTC, inclusive); 0 for none."""
        ...
