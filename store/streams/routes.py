"""Where every stream of a store is and was, and the log of each, read through all of those places."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Protocol

from everlog.store.base.block_streams import block_of, is_agent, is_block
from everlog.store.base.contract import Log, LogReader, States
from everlog.store.base.names import name_of, unknown_agent
from everlog.store.base.source_streams import is_source, source_of
from everlog.store.streams.fork_reader import ForkReader
from everlog.store.streams.moved_reader import MovedStreamReader
from everlog.store.streams.register import Assignment


class Assignments(Protocol):
    """The part of a register that a store's streams need; see `register.Register`."""

    def all(self) -> dict[str, Assignment]: ...

    def find(self, name: str) -> Assignment | None: ...

    def before(self, assignment: Assignment) -> list[Assignment]: ...

    def add(self, assignment: Assignment) -> bool: ...

    def move(self, assignment: Assignment) -> None: ...


class Routes:
    """The streams of a store: in which partitions each of them was, in order, and is now."""

    def __init__(self, register: Assignments, place: Callable[[str, str], LogReader]) -> None:
        """`place` reads a partition in which a stream is or was: name, partition. It raises CorruptLog for none."""
        self._register = register
        self._place = place

    def agents(self) -> list[str]:
        """Ids of all agents that were ever registered, sorted; sources and shared blocks are no agents."""
        return [name for name in self._register.all() if is_agent(name)]

    def sources(self) -> list[str]:
        """Names of all sources that documents were ever loaded into, sorted."""
        return [source_of(name) for name in self._register.all() if is_source(name)]

    def blocks(self) -> list[str]:
        """Names of all shared blocks that were ever made, sorted."""
        return [block_of(name) for name in self._register.all() if is_block(name)]

    def assigned(self) -> dict[str, str]:
        """The partition of every stream that was ever registered, by name. One pass over the register."""
        return {name: assignment.partition for name, assignment in self._register.all().items()}

    def assignments(self) -> list[Assignment]:
        """Where every stream that was ever registered is, sorted by name."""
        return list(self._register.all().values())

    def assignment(self, name: str) -> Assignment:
        """Where the stream of that name is. Raises UnknownAgent."""
        assignment = self._register.find(name)
        if assignment is None:
            raise unknown_agent(name, self.agents())
        return assignment

    def route(self, agent_id: str) -> list[str]:
        """The partitions that an agent was in, in order, and last the one in which it is. Raises UnknownAgent."""
        assignment = self.assignment(name_of(agent_id))
        return [*(earlier.partition for earlier in self._register.before(assignment)), assignment.partition]

    def partition_of(self, agent_id: str) -> str:
        """Name of the partition that `agent_id` is in. Raises UnknownAgent, CorruptLog, StoreError."""
        return self.assignment(name_of(agent_id)).partition

    def reader(self, agent_id: str, own: Log | None = None) -> LogReader:
        """The log of `agent_id` for reading, through all partitions that it was in. See `store.Store`."""
        return self.along(self.assignment(name_of(agent_id)), own)

    def along(self, assignment: Assignment, own: Log | None = None) -> LogReader:
        """The log of a stream that is where `assignment` says, which the register may not say yet."""
        name, here = assignment.agent_id, assignment.partition
        before = (earlier.partition for earlier in self._register.before(assignment))
        places = [*dict.fromkeys(place for place in before if place != here), here]
        readers = [own if own is not None and own.partition == place else self._place(name, place) for place in places]
        reader = MovedStreamReader(name, readers) if len(readers) > 1 else readers[0]
        if not assignment.parent:
            return reader
        return ForkReader(name, reader, assignment.parent, assignment.parent_seq, self.reader(assignment.parent))

    def states(self, maker: str) -> Iterator[States]:
        """Where every agent stood, and the records after that, some hundred agents at a time. See `store.Store`."""
        inside: dict[str, list[str]] = defaultdict(list)
        for name, assignment in self._register.all().items():
            if not is_agent(name):
                continue
            if assignment.epoch == 1 and not assignment.parent:
                inside[assignment.partition].append(name)
            else:
                yield from self.along(assignment).states(maker, [name])
        for partition, names in inside.items():
            yield from self._place(names[0], partition).states(maker, names)

    def parent_of(self, agent_id: str) -> tuple[str, int] | None:
        """Of a fork its parent and the cut, None for everybody else. Raises UnknownAgent."""
        assignment = self.assignment(name_of(agent_id))
        return (assignment.parent, assignment.parent_seq) if assignment.parent else None

    def forks_of(self, agent_id: str) -> dict[str, int]:
        """The forks of an agent, their forks too, and the last seq that each shares with it; sorted by name."""
        children: dict[str, list[Assignment]] = defaultdict(list)
        for assignment in self._register.all().values():
            children[assignment.parent].append(assignment)
        found: dict[str, int] = {}
        left = [(name_of(agent_id), 0)]
        while left:
            parent, shared = left.pop()
            for child in children[parent] if parent else []:
                last = min(shared or child.parent_seq, child.parent_seq)
                found[child.agent_id] = last
                left.append((child.agent_id, last))
        return dict(sorted(found.items()))
