"""Read a fork as one log: its ancestor's records up to the fork point, then its own. No record is copied.

Used by `routes`.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from everlog.events import AnyEvent, Record
from everlog.store.base.arrow_schema import events_of
from everlog.store.base.contract import Head, LogReader, State, States
from everlog.store.base.names import name_of


class ForkReader:
    """Log of a fork, including its ancestor's part. Other agents are read from the fork's partition only.

    `read` yields each record as it was written, under the name of its writer, and the chain continues over the fork
    point. `table`, `state` and `states` serve projections: every row has the name of the fork.
    """

    def __init__(self, agent_id: str, own: LogReader, parent: str, cut: int, ancestor: LogReader) -> None:
        """Combine two readers: `own` has the fork's records, `ancestor` those of `parent`; `cut` is the fork point."""
        self._name = agent_id
        self.own = own
        self._parent = parent
        self._cut = cut
        self._ancestor = ancestor
        self._begun = False

    @property
    def partition(self) -> str:
        """Name of the partition that the fork is in."""
        return self.own.partition

    @property
    def damage(self) -> object:
        """Torn tail that the last complete read found in the fork's partition."""
        return getattr(self.own, "damage", None)

    def agents(self) -> list[str]:
        """Return the ids of all agents with records in that partition, sorted."""
        return self.own.agents()

    def _reaches_back(self, agent_id: str) -> bool:
        """Return True if the ancestor's records belong to the stream. An unfinished fork, without its first record, has
        none.
        """
        if name_of(agent_id) != self._name:
            return False
        self._begun = self._begun or self.own.head(self._name).seq > 0
        return self._begun

    def head(self, agent_id: str) -> Head:
        """Return the end of the stream; Head(0, GENESIS) for an agent without records, such as an unfinished fork."""
        return self.own.head(agent_id)

    def heads(self, agents: Iterable[str]) -> dict[str, Head]:
        """Return `head` of many agents, by the names given."""
        return {agent_id: self.head(agent_id) for agent_id in agents}

    def chain(self, agent_id: str, seq: int) -> bytes:
        """Return the chain value at a seq, from 0 to the head. Raises BadInput for any other seq."""
        if 0 <= seq <= self._cut and self._reaches_back(agent_id):
            return self._ancestor.chain(self._parent, seq)
        return self.own.chain(agent_id, seq)

    def erasing(self, agent_id: str) -> bool:
        """Return True if an erasure of the stream, or of an ancestor's stream, is still pending."""
        above = self._reaches_back(agent_id) and self._ancestor.erasing(self._parent)
        return above or self.own.erasing(agent_id)

    def seq_at(self, agent_id: str, time: int) -> int:
        """Return the last seq of a stream that was recorded at or before `time`, inclusive; 0 for none."""
        own = self.own.seq_at(agent_id, time)
        return (
            own
            if own or not self._reaches_back(agent_id)
            else min(self._cut, self._ancestor.seq_at(self._parent, time))
        )

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        """Yield the records of one stream in order, `from_seq` to `to_seq` (both inclusive; None: to the head), as
        written.
        """
        if from_seq <= self._cut and self._reaches_back(agent_id):
            yield from self._ancestor.read(self._parent, from_seq, self._upto(to_seq))
        yield from self.own.read(agent_id, from_seq, to_seq)

    def events(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[AnyEvent]:
        """Yield the typed events of one stream in order."""
        yield from events_of(self.table(agent_id, from_seq, to_seq))

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        """Return the records of one stream by seq (or of all in its partition, in commit order) as a table of
        `store.SCHEMA`.
        """
        own = self.own.table(agent_id, from_seq, to_seq)
        if agent_id is None or from_seq > self._cut or not self._reaches_back(agent_id):
            return own
        before = self._ancestor.table(self._parent, from_seq, self._upto(to_seq))
        return pa.concat_tables([self._as_own(before), own]).combine_chunks()

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        """Return the newest state of a stream that the StateDeriver of this `maker` derived; a state of the ancestor
        counts too.
        """
        state = self.own.state(agent_id, maker, as_of)
        if state is not None or not self._reaches_back(agent_id):
            return state
        state = self._ancestor.state(self._parent, maker, self._upto(as_of))
        return None if state is None else State(state.seq, self._as_own(state.rows))

    def states(self, maker: str | None, agents: Iterable[str] | None = None) -> Iterator[States]:
        """Yield `state` of many agents, or of all in the partition, with the records after it."""
        names = self.agents() if agents is None else [name_of(agent_id) for agent_id in agents]
        yield from self.own.states(maker, [name for name in names if name != self._name])
        if self._name in names:
            state = None if maker is None else self.state(self._name, maker)
            after = self.table(self._name, 1 if state is None else state.seq + 1)
            yield States([self._name], None if state is None else state.rows, after)

    def _upto(self, seq: int | None) -> int:
        return self._cut if seq is None else min(self._cut, seq)

    def _as_own(self, table: pa.Table) -> pa.Table:
        """Return the rows under the name of the fork."""
        place = table.column_names.index("agent_id")
        field = table.schema.field(place)
        names = pa.repeat(pa.scalar(self._name, field.type), table.num_rows)
        return table.set_column(place, field, names)
