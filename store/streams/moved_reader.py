"""Read an agent that moved, through all partitions that it was in.

Used by `routes`, and by journals for what was sent before a move and is sent again after it. A stream has no gap
between its partitions: `store.base.move_records` describes the records there.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import pyarrow as pa

from everlog.events import GENESIS, AnyEvent, Draft, Record
from everlog.store.base.arrow_schema import SCHEMA, events_of, id_bytes
from everlog.store.base.arrow_values import empty_table
from everlog.store.base.contract import Commit, Head, LogReader, State, States
from everlog.store.base.names import name_of
from everlog.store.partition.append_rules import repeated_commit
from everlog.store.partition.chain_lookup import no_record_error
from everlog.store.partition.dedup_index import ID_MEMORY_US, time_of_option
from everlog.store.streams.fork_reader import ForkReader

CLOCKS_US = 60_000_000
"""Microseconds by which the clock of a sender may be ahead, whose event came before the agent moved."""


def repeated_elsewhere(reader: LogReader, drafts: Sequence[Draft]) -> Commit | None:
    """Return the commit that these drafts repeat, if the agent of `reader` had it before it moved to the partition
    where it is; None otherwise. Raises DuplicateId.
    """
    if isinstance(reader, ForkReader):
        reader = reader.own
    records = reader.recorded_elsewhere(drafts[0].event_id) if isinstance(reader, MovedStreamReader) else ()
    return repeated_commit(records, drafts) if records else None


class MovedStreamReader:
    """Log of one agent across partitions. Other agents are read from the agent's current partition only."""

    def __init__(self, agent_id: str, places: Sequence[LogReader]) -> None:
        """Combine `places`, readers of the partitions that the agent was in, each once; the last is the current
        partition.
        """
        self._name = agent_id
        self._places = places
        self._here = places[-1]
        self._left_at = 0
        """Time at which the agent last left a partition, microseconds UTC; 0 if it was not looked up."""
        self._left: dict[str, tuple[LogReader, int]] = {}
        """Partition and seq of the last day's events in other partitions, by event id."""

    def recorded_elsewhere(self, event_id: str) -> Sequence[Record]:
        """Return the records of the commit that begins with this event, if the agent had it in a partition that it has
        left; none otherwise.

        Only events of the last day before the agent left are known, as in a partition (P6). An id that is newer is
        recognised by its time, and costs nothing.
        """
        if not self._left_at:
            self._left_at = max(map(self._end_of, self._places[:-1]))
        if time_of_option(id_bytes(event_id)) > self._left_at + CLOCKS_US:
            return ()
        if not self._left:
            for place in self._places[:-1]:
                table = place.table(self._name, place.seq_at(self._name, self._left_at - ID_MEMORY_US) + 1)
                seqs = zip(table.column("event_id").to_pylist(), table.column("seq").to_pylist(), strict=True)
                self._left.update((str(known), (place, seq)) for known, seq in seqs)
        if event_id not in self._left:
            return ()
        place, seq = self._left[event_id]
        records = place.read(self._name, seq)
        first = next(records)
        return [first, *takewhile(lambda record: record.commit == first.commit, records)]

    def _end_of(self, place: LogReader) -> int:
        seq = place.head(self._name).seq
        return next(place.read(self._name, seq)).recorded_at if seq else 0

    @property
    def partition(self) -> str:
        """Name of the partition that the agent is in."""
        return self._here.partition

    @property
    def damage(self) -> object:
        """Torn tail that the last complete read found in the agent's current partition."""
        return getattr(self._here, "damage", None)

    def agents(self) -> list[str]:
        """Return the ids of all agents with records in that partition, sorted."""
        return self._here.agents()

    def _of(self, agent_id: str) -> Sequence[LogReader]:
        return self._places if name_of(agent_id) == self._name else [self._here]

    def head(self, agent_id: str) -> Head:
        """Return the end of the stream; Head(0, GENESIS) for an agent without records."""
        return max((place.head(agent_id) for place in self._of(agent_id)), key=lambda head: head.seq)

    def heads(self, agents: Iterable[str]) -> dict[str, Head]:
        """Return `head` of many agents, by the names given."""
        return {agent_id: self.head(agent_id) for agent_id in agents}

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        """Return the records of one stream in order, `from_seq` to `to_seq` (both inclusive; None: to the head)."""
        parts = [place.read(agent_id, from_seq, to_seq) for place in self._of(agent_id)]
        return heapq.merge(*parts, key=lambda record: record.seq)

    def events(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[AnyEvent]:
        """Yield the typed events of one stream in order."""
        yield from events_of(self.table(agent_id, from_seq, to_seq))

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        """Return the records of one stream by seq (or of all in its partition, in commit order) as a table of
        `store.SCHEMA`.
        """
        if agent_id is None:
            return self._here.table()
        parts = [place.table(agent_id, from_seq, to_seq) for place in self._of(agent_id)]
        return pa.concat_tables([empty_table(SCHEMA), *parts]).sort_by("seq").combine_chunks()

    def chain(self, agent_id: str, seq: int) -> bytes:
        """Return the chain value of a stream at `seq`, from any of the partitions; GENESIS at 0. Raises BadInput for no
        record.
        """
        if seq == 0:
            return GENESIS
        for place in self._of(agent_id):
            if place.table(agent_id, seq, seq).num_rows:
                return place.chain(agent_id, seq)
        raise no_record_error(self, name_of(agent_id), seq)

    def erasing(self, agent_id: str) -> bool:
        """Return True if an erasure of the stream is still pending in any of the partitions."""
        return any(place.erasing(agent_id) for place in self._of(agent_id))

    def seq_at(self, agent_id: str, time: int) -> int:
        """Return the last seq of a stream that was recorded at or before `time`, inclusive; 0 for none."""
        return max(place.seq_at(agent_id, time) for place in self._of(agent_id))

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        """Return the newest state of a stream by this `maker`, at or before `as_of`; None if there is none."""
        states = (place.state(agent_id, maker, as_of) for place in self._of(agent_id))
        return max((state for state in states if state is not None), key=lambda state: state.seq, default=None)

    def states(self, maker: str | None, agents: Iterable[str] | None = None) -> Iterator[States]:
        """Yield `state` of many agents, or of all in the partition, with the records after it."""
        names = self.agents() if agents is None else [name_of(agent_id) for agent_id in agents]
        yield from self._here.states(maker, [name for name in names if name != self._name])
        if self._name in names:
            state = None if maker is None else self.state(self._name, maker)
            after = self.table(self._name, 1 if state is None else state.seq + 1)
            yield States([self._name], None if state is None else state.rows, after)
