"""Look up the partitions of every stream of a store, and read each stream through all of its partitions.

Used by `stores.opener`, `MemoryStore` and the services for forks, moves and restores.
"""

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
    """Part of a register that this module needs; see `register.Register`."""

    def all(self) -> dict[str, Assignment]: ...

    def find(self, name: str) -> Assignment | None: ...

    def before(self, assignment: Assignment) -> list[Assignment]: ...

    def add(self, assignment: Assignment) -> bool: ...

    def move(self, assignment: Assignment) -> None: ...


class Routes:
    """Streams of a store, with the partitions that each was in, in order, and is in now."""

    def __init__(self, register: Assignments, place: Callable[[str, str], LogReader]) -> None:
        """Store the collaborators. `place(name, partition)` returns a reader; it raises CorruptLog if the partition is
        missing.
        """
        self._register = register
        self._place = place

    def agents(self) -> list[str]:
        """Return the ids of all agents that were ever registered, sorted; sources and shared blocks are not agents."""
        return [name for name in self._register.all() if is_agent(name)]

    def sources(self) -> list[str]:
        """Return the names of all sources that documents were ever loaded into, sorted."""
        return [source_of(name) for name in self._register.all() if is_source(name)]

    def blocks(self) -> list[str]:
        """Return the names of all shared blocks that were ever created, sorted."""
        return [block_of(name) for name in self._register.all() if is_block(name)]

    def assigned(self) -> dict[str, str]:
        """Return the partition of every stream that was ever registered, by name. One pass over the register."""
        return {name: assignment.partition for name, assignment in self._register.all().items()}

    def assignments(self) -> list[Assignment]:
        """Return the assignment of every stream that was ever registered, sorted by name."""
        return list(self._register.all().values())

    def assignment(self, name: str) -> Assignment:
        """Return the assignment of the stream `name`. Raises UnknownAgent."""
        assignment = self._register.find(name)
        if assignment is None:
            raise unknown_agent(name, self.agents())
        return assignment

    def route(self, agent_id: str) -> list[str]:
        """Return the partitions that an agent was in, oldest first; the last is its current partition. Raises
        UnknownAgent.
        """
        assignment = self.assignment(name_of(agent_id))
        return [*(earlier.partition for earlier in self._register.before(assignment)), assignment.partition]

    def partition_of(self, agent_id: str) -> str:
        """Return the name of the partition that `agent_id` is in. Raises UnknownAgent, CorruptLog, StoreError."""
        return self.assignment(name_of(agent_id)).partition

    def reader(self, agent_id: str, own: Log | None = None) -> LogReader:
        """Return a reader of `agent_id` through all partitions that it was in. See `store.Store`."""
        return self.along(self.assignment(name_of(agent_id)), own)

    def along(self, assignment: Assignment, own: Log | None = None) -> LogReader:
        """Return a reader of a stream whose current assignment is `assignment`, which the register may not have yet."""
        name, here = assignment.agent_id, assignment.partition
        before = (earlier.partition for earlier in self._register.before(assignment))
        places = [*dict.fromkeys(place for place in before if place != here), here]
        readers = [own if own is not None and own.partition == place else self._place(name, place) for place in places]
        reader = MovedStreamReader(name, readers) if len(readers) > 1 else readers[0]
        if not assignment.parent:
            return reader
        return ForkReader(name, reader, assignment.parent, assignment.parent_seq, self.reader(assignment.parent))

    def states(self, maker: str) -> Iterator[States]:
        """Yield the states of all agents and the records after them, some hundred agents at a time. See
        `store.Store`.
        """
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
        """Return the parent and the fork point of a fork; None for an agent that is not a fork. Raises UnknownAgent."""
        assignment = self.assignment(name_of(agent_id))
        return (assignment.parent, assignment.parent_seq) if assignment.parent else None

    def forks_of(self, agent_id: str) -> dict[str, int]:
        """Return the forks of an agent, and the forks of those, with the last seq that each shares with the agent;
        sorted by name.
        """
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
