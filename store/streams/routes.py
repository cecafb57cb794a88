"""Look up the partitions of every stream of a store, and read each stream through all of its partitions.

Used by `stores.opener`, `MemoryStore` and the services for forks, moves and restores.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from everlog.events import CorruptLog
from everlog.store.base.block_streams import block_of, is_agent, is_block
from everlog.store.base.contract import Log, LogReader, States
from everlog.store.base.generations import generation_of, names_generation, not_alone_error
from everlog.store.base.move_records import move_in
from everlog.store.base.names import name_of, unknown_agent
from everlog.store.base.source_streams import is_source, source_of
from everlog.store.streams.fork_reader import ForkReader
from everlog.store.streams.moved_reader import MovedStreamReader
from everlog.store.streams.register_file import REPAIR, Assignment


class Assignments(Protocol):
    """Part of a register that this module needs; see `register.Register`."""

    def all(self) -> dict[str, Assignment]: ...

    def find(self, name: str) -> Assignment | None: ...

    def find_many(self, names: Iterable[str]) -> dict[str, Assignment]: ...

    def before(self, assignment: Assignment) -> list[Assignment]: ...

    def add(self, assignment: Assignment, *, begun: bool = False) -> bool: ...

    def move(self, assignment: Assignment) -> None: ...

    def may_begin(self, assignment: Assignment) -> bool: ...

    def begun(self, names: Iterable[str]) -> None: ...


class Routes:
    """Streams of a store, with the partitions that each was in, in order, and is in now."""

    def __init__(self, register: Assignments, place: Callable[[str, str], LogReader],
                 check_unknown: Callable[[Iterable[str]], object] = list,
                 check_unknown_fork: Callable[[str], object] = str) -> None:  # fmt: skip
        """Store the collaborators. `place(name, partition)` returns a reader; it raises CorruptLog if the partition is
        missing. `check_unknown` raises CorruptLog if a partition knows one of the names; so does `check_unknown_fork`
        for the name of a fork, which begins in its dedicated partition.
        """
        self._register = register
        self._place = place
        self._check_unknown = check_unknown
        self._check_unknown_fork = check_unknown_fork

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
        """Return the assignment of the stream `name`. Raises UnknownAgent; CorruptLog if the register has lost it."""
        assignment = self.find(name)
        if assignment is None:
            raise unknown_agent(name, self.agents())
        return assignment

    def find(self, name: str) -> Assignment | None:
        """Return the assignment of the stream `name`; None for an unknown one. Raises CorruptLog if the register has
        lost it.
        """
        return self._find(name, lambda: self._check_unknown([name]))

    def _find(self, name: str, check: Callable[[], object]) -> Assignment | None:
        assignment = self._register.find(name)
        if assignment is None:
            try:
                check()
            except CorruptLog:
                assignment = self._register.find(name)  # looked up again: another process may register it just now
                if assignment is None:
                    raise
        return assignment

    def latest(self, name: str) -> str:
        """Return the stream of the newest agent of a name. See `store.Store`.

        The generations of a name have no gap, so a name costs one look into the register more than its own.
        """
        name = name_of(name)
        if not is_agent(name):
            return name
        newest = generation_of(name)
        if names_generation(name):
            return name if self._register.find(name) is not None else newest.stream
        while self._is_fork_there(newest.next.stream):
            newest = newest.next
        return newest.stream

    def next_generation(self, stream: str) -> str:
        """Return the stream of the next agent of the name that `stream` has. See `store.Store`."""
        following = generation_of(stream).next
        if self._is_fork_there(following.next.stream):
            raise not_alone_error(following.next.stream, following.name)
        return following.stream

    def _is_fork_there(self, name: str) -> bool:
        """Return True if there is a stream of a later generation. Raises CorruptLog if the register has lost it."""
        return self._find(name, lambda: self._check_unknown_fork(name)) is not None

    def check_not_lost(self, agent_id: str) -> None:
        """Raise CorruptLog if a stream without a record in its partition has had some there. Raises UnknownAgent."""
        assignment = self.assignment(name_of(agent_id))
        name, partition = assignment.agent_id, assignment.partition
        if self._register.may_begin(assignment):
            return
        # Read after the mark was looked for, and from the files: another process may have appended the first record.
        reader = self._place(name, partition)
        head = reader.head(name)
        move = move_in(next(reader.read(name, head.seq))) if head.away else None
        if not head.seq or (move is not None and move.epoch <= assignment.epoch):  # else a move begins, or has ended
            raise _lost_error(assignment)

    def route(self, agent_id: str) -> list[str]:
        """Return the partitions that an agent was in, oldest first; the last is its current partition. Raises
        UnknownAgent.
        """
        assignment = self.assignment(name_of(agent_id))
        return [*(earlier.partition for earlier in self._register.before(assignment)), assignment.partition]

    def partition_of(self, agent_id: str) -> str:
        """Return the name of the partition that `agent_id` is in. Raises UnknownAgent, CorruptLog, StoreError."""
        return self.assignment(name_of(agent_id)).partition

    def partitions_of(self, agents: Iterable[str]) -> dict[str, str]:
        """Return `partition_of` for each of many agents, with few looks at the register."""
        names = {agent_id: name_of(agent_id) for agent_id in agents}
        found = self._register.find_many(names.values())
        return {
            agent_id: found[name].partition if name in found else self.partition_of(name)
            for agent_id, name in names.items()
        }

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
        for group in self._groups():
            yield from self.along(group[0]).states(maker, [assignment.agent_id for assignment in group])

    def reader_groups(self) -> list[list[str]]:
        """Return the names of all agents, in groups that one reader can read. See `store.Store`."""
        return [[assignment.agent_id for assignment in group] for group in self._groups()]

    def _groups(self) -> list[list[Assignment]]:
        """Return the assignments of all agents: together those that share a partition and have all their records there;
        each fork and each agent that moved is alone.
        """
        groups: dict[str, list[Assignment]] = defaultdict(list)
        for name, assignment in self._register.all().items():
            if is_agent(name):
                alone = assignment.epoch > 1 or assignment.parent
                groups[f"alone:{name}" if alone else assignment.partition].append(assignment)
        return list(groups.values())

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


def _lost_error(assignment: Assignment) -> CorruptLog:
    """Return the error for a stream whose partition has lost its records."""
    since = f" since its move {assignment.epoch - 1}" if assignment.epoch > 1 else ""
    cure = "accepts the loss" if assignment.epoch > 1 else "gives the name up"
    return CorruptLog(
        f"{assignment.agent_id!r} is registered and has begun, but its log, log/{assignment.partition}, has no record "
        f"of it{since}. Nothing was changed; restore that folder from a backup. If there is none, `{REPAIR}` {cure}."
    )
