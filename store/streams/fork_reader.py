"""A fork, read as one log: its ancestor's records up to the cut, then its own. Nothing is copied."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from everlog.events import AnyEvent, Record
from everlog.store.base.arrow_schema import events_of
from everlog.store.base.contract import Head, LogReader, State, States
from everlog.store.base.names import name_of


class ForkReader:
    """The log of a fork, its ancestor's part included. Of the others in its partition it knows what is there.

    `read` gives each record as it was written, under the name of its writer: the chain goes on over the cut. `table`,
    `state` and `states` are for projections, and have every row under the name of the fork, whose past it is.
    """

    def __init__(self, agent_id: str, own: LogReader, parent: str, cut: int, ancestor: LogReader) -> None:
        """`own` has what the fork wrote, `ancestor` what `parent` did; `cut` is the last of it that is the fork's."""
        self._name = agent_id
        self._own = own
        self._parent = parent
        self._cut = cut
        self._ancestor = ancestor
        self._begun = False

    @property
    def partition(self) -> str:
        """Name of the partition that the fork is in."""
        return self._own.partition

    @property
    def damage(self) -> object:
        """What the last complete read found after the last whole frame, where the fork is."""
        return getattr(self._own, "damage", None)

    def agents(self) -> list[str]:
        """Ids of all agents with records in that partition, sorted."""
        return self._own.agents()

    def _reaches_back(self, agent_id: str) -> bool:
        """Whether the ancestor's records are of that stream: before its own first record a fork has none."""
        if name_of(agent_id) != self._name:
            return False
        self._begun = self._begun or self._own.head(self._name).seq > 0
        return self._begun

    def head(self, agent_id: str) -> Head:
        """The end of the stream; Head(0, GENESIS) for an agent without records, as an unfinished fork is."""
        return self._own.head(agent_id)

    def chain(self, agent_id: str, seq: int) -> bytes:
        """The chain value at a seq, from 0 to the head. Raises BadInput for any other."""
        if 0 <= seq <= self._cut and self._reaches_back(agent_id):
            return self._ancestor.chain(self._parent, seq)
        return self._own.chain(agent_id, seq)

    def erasing(self, agent_id: str) -> bool:
        """Whether an erasure of the stream, or of an ancestor's, is not carried out yet."""
        above = self._reaches_back(agent_id) and self._ancestor.erasing(self._parent)
        return above or self._own.erasing(agent_id)

    def seq_at(self, agent_id: str, time: int) -> int:
        """The last seq of a stream that was recorded up to a time, inclusive; 0 for none."""
        own = self._own.seq_at(agent_id, time)
        return (
            own
            if own or not self._reaches_back(agent_id)
            else min(self._cut, self._ancestor.seq_at(self._parent, time))
        )

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        """Records of one stream in order, `from_seq` to `to_seq` (both inclusive; None: to the head), as written."""
        if from_seq <= self._cut and self._reaches_back(agent_id):
            yield from self._ancestor.read(self._parent, from_seq, self._upto(to_seq))
        yield from self._own.read(agent_id, from_seq, to_seq)

    def events(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[AnyEvent]:
        """The typed events of one stream in order."""
        yield from events_of(self.table(agent_id, from_seq, to_seq))

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        """Records of one stream by seq (or of all in its partition, in commit order) as a table of `store.SCHEMA`."""
        own = self._own.table(agent_id, from_seq, to_seq)
        if agent_id is None or from_seq > self._cut or not self._reaches_back(agent_id):
            return own
        before = self._ancestor.table(self._parent, from_seq, self._upto(to_seq))
        return pa.concat_tables([self._as_own(before), own]).combine_chunks()

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        """The newest state of a stream that the Derive of this `maker` derived; the ancestor's is the fork's too."""
        state = self._own.state(agent_id, maker, as_of)
        if state is not None or not self._reaches_back(agent_id):
            return state
        state = self._ancestor.state(self._parent, maker, self._upto(as_of))
        return None if state is None else State(state.seq, self._as_own(state.rows))

    def states(self, maker: str, agents: Iterable[str] | None = None) -> Iterator[States]:
        """`state` of many agents, or of all in its partition, and the records after it."""
        names = self.agents() if agents is None else [name_of(agent_id) for agent_id in agents]
        yield from self._own.states(maker, [name for name in names if name != self._name])
        if self._name in names:
            state = self.state(self._name, maker)
            after = self.table(self._name, 1 if state is None else state.seq + 1)
            yield States([self._name], None if state is None else state.rows, after)

    def _upto(self, seq: int | None) -> int:
        return self._cut if seq is None else min(self._cut, seq)

    def _as_own(self, table: pa.Table) -> pa.Table:
        """The rows under the name of the fork."""
        place = table.column_names.index("agent_id")
        field = table.schema.field(place)
        names = pa.repeat(pa.scalar(self._name, field.type), table.num_rows)
        return table.set_column(place, field, names)
