"""Protocol by which an agent writes and reads its log and projections, always in step. A host of many agents can then
commit, project and query for all of them together; a single agent is a batch of one.

Used by `Agent` and its `EventWriter`; implemented by `LocalJournal` and by `hosting/shard_journal.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from everlog.events import Draft, Record
from everlog.store import Commit

if TYPE_CHECKING:
    from everlog.projections.search.talk_index import TalkView


class Journal(Protocol):
    """Log of one agent, and the projections of that log."""

    async def commit(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append durably, then project. When the call returns, `rows` includes the records."""
        ...

    async def rows(self, name: str, agent_id: str, as_of: int, turn: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a projection as of a seq, inclusive. `turn`: the turn of the call whose context is asked
        for; None: no call.
        """
        ...

    async def talk(self, agent_id: str, said_by: int) -> "TalkView":
        """Return what the agent had said and heard by a seq, inclusive, for a search."""
        ...

    def read(self, agent_id: str, from_seq: int) -> Iterator[Record]:
        """Yield the agent's records from a seq (inclusive) on, in order."""
        ...

    def seq_at(self, agent_id: str, time: int) -> int:
        """Return the agent's last seq that was recorded up to a time (microseconds UTC, inclusive);
        0 if there is none.
        """
        ...
