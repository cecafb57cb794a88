"""What a store does about agents that move: lets them go, takes them in, reads them wherever they were.

A move is three steps, each durable before the next and each of them harmless when it comes again:

    1. `agent_moved` to the new partition, last in the old one    the old one takes nothing more of the agent
    2. the next assignment in the register                        from now on it is looked for in the new one
    3. `agent_moved` from the old partition, first in the new one

Whoever lets an agent go does 1 and 2; whoever wants to append to it where it is does 3. One that was interrupted after
1 is finished by whoever asks for the agent in its old partition, which the register still names.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from everlog.events import AgentMoved, BadInput, CorruptLog, Moved, UsageError
from everlog.store.base.block_streams import block_of, is_agent, is_block
from everlog.store.base.contract import Head, Log, LogReader, States
from everlog.store.base.move_records import arrival, departure, move_in
from everlog.store.base.names import name_of, partition_of, unknown_agent
from everlog.store.base.source_streams import is_source, source_of
from everlog.store.streams.fork_reader import ForkReader
from everlog.store.streams.moved_reader import MovedStreamReader
from everlog.store.streams.register import Assignment


class Assignments(Protocol):
    """The part of a register that moves need; see `register.Register`."""

    def all(self) -> dict[str, Assignment]: ...

    def find(self, name: str) -> Assignment | None: ...

    def before(self, assignment: Assignment) -> list[Assignment]: ...

    def add(self, assignment: Assignment) -> bool: ...

    def move(self, assignment: Assignment) -> None: ...


class MoveService:
    """The part of a store that knows where agents are and were."""

    def __init__(self, now: Callable[[], int]) -> None:
        """`now` gives microseconds UTC."""
        self._now = now

    @property
    def shards(self) -> int:
        """Number of shared partitions, fixed when the store was made."""
        raise NotImplementedError

    @property
    def _register(self) -> Assignments:
        raise NotImplementedError

    def _place(self, name: str, partition: str) -> LogReader:
        """A partition in which the agent `name` is or was, for reading. Raises CorruptLog if it is not there."""
        raise NotImplementedError

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

    def route(self, agent_id: str) -> list[str]:
        """The partitions that an agent was in, in order, and last the one in which it is. Raises UnknownAgent."""
        assignment = self._assigned(name_of(agent_id))
        return [*(earlier.partition for earlier in self._register.before(assignment)), assignment.partition]

    def partition_of(self, agent_id: str) -> str:
        """Name of the partition that `agent_id` is in. Raises UnknownAgent, CorruptLog, StoreError."""
        return self._assigned(name_of(agent_id)).partition

    def reader(self, agent_id: str, own: Log | None = None) -> LogReader:
        """The log of `agent_id` for reading, through all partitions that it was in. See `store.Store`."""
        return self._reader(self._assigned(name_of(agent_id)), own)

    def states(self, maker: str) -> Iterator[States]:
        """Where every agent stood, and the records after that, some hundred agents at a time. See `store.Store`."""
        inside: dict[str, list[str]] = defaultdict(list)
        for name, assignment in self._register.all().items():
            if not is_agent(name):
                continue
            if assignment.epoch == 1 and not assignment.parent:
                inside[assignment.partition].append(name)
            else:
                yield from self._reader(assignment, None).states(maker, [name])
        for partition, names in inside.items():
            yield from self._place(names[0], partition).states(maker, names)

    def begin_move(self, log: Log, agent_id: str, to: str) -> None:
        """Let an agent go from the partition of `log` to another one. See `store.Store`."""
        name = name_of(agent_id)
        if not self._has_place(name, to):
            raise BadInput(
                f"{name!r} cannot go to {to!r}: there is {partition_of(name)}, for itself, and {self.shards} shards."
            )
        try:
            self.finish_move(log, name)
        except Moved:
            if self._assigned(name).partition != to:
                raise
            return
        if log.partition == to:
            return
        epoch = self._assigned(name).epoch + 1
        head = log.head(name)
        if head.seq:
            append = departure(name, head, to, epoch, self._now())
            log.append(name, head.seq, append.drafts)
        self._register.move(_onward(self._assigned(name), to, epoch))

    def _has_place(self, name: str, partition: str) -> bool:
        """Whether an agent may be in a partition of that name: its own, or a shard of this store."""
        return partition in {partition_of(name), *(f"shard-{number:03d}" for number in range(self.shards))}

    def finish_move(self, log: Log, agent_id: str) -> bool:
        """Take an agent in whose move to the partition of `log` was begun. See `store.Store`."""
        name = name_of(agent_id)
        head = log.head(name)
        if head.seq and not head.away:
            return False
        assignment = self._assigned(name)
        if head.away:  # whoever let it go may have died before it was registered
            gone = _departure(log, name, head)
            if gone.epoch > assignment.epoch:
                if not self._has_place(name, gone.partition):
                    raise CorruptLog(
                        f"The log of {name!r} says at seq {head.seq} that it went to {gone.partition!r}, and this "
                        "store has no such partition for it. Nothing was changed; restore the log from a backup."
                    )
                assignment = _onward(assignment, gone.partition, gone.epoch)
                self._register.move(assignment)
        if assignment.partition != log.partition:
            raise Moved(f"{name!r} is in {assignment.partition} now, not in {log.partition}: send it there.")
        if assignment.epoch == 1:
            _refuse_unfinished(assignment)
            return False
        last = self._reader(assignment, log).head(name)
        if last.seq and not last.away:
            raise CorruptLog(
                f"{name!r} was put into {log.partition}, but nothing says so where its log ends, at seq {last.seq}: "
                "records after it are missing. Nothing was changed; restore them from a backup."
            )
        if last.seq:
            before = self._register.before(assignment)[-1].partition
            append = arrival(name, last, before, assignment.epoch, self._now())
            log.append(name, last.seq, append.drafts)
        return last.seq > 0

    def _reader(self, assignment: Assignment, own: Log | None) -> LogReader:
        name, here = assignment.agent_id, assignment.partition
        before = (earlier.partition for earlier in self._register.before(assignment))
        places = [*dict.fromkeys(place for place in before if place != here), here]
        readers = [own if own is not None and own.partition == place else self._place(name, place) for place in places]
        reader = MovedStreamReader(name, readers) if len(readers) > 1 else readers[0]
        if not assignment.parent:
            return reader
        ancestor = self._reader(self._assigned(assignment.parent), None)
        return ForkReader(name, reader, assignment.parent, assignment.parent_seq, ancestor)

    def _assigned(self, name: str) -> Assignment:
        assignment = self._register.find(name)
        if assignment is None:
            raise unknown_agent(name, self.agents())
        return assignment


def _onward(assignment: Assignment, to: str, epoch: int) -> Assignment:
    """The assignment of the same agent to another partition."""
    return msgspec.structs.replace(assignment, partition=to, epoch=epoch)


def _refuse_unfinished(assignment: Assignment) -> None:
    """Raises UsageError for a name that was taken for a fork which then was not made."""
    if assignment.parent:
        name, parent, cut = assignment.agent_id, assignment.parent, assignment.parent_seq
        raise UsageError(
            f"{name!r} was to be a fork of {parent!r} at seq {cut}, and was interrupted. Finish it with `everlog fork "
            f"{parent} --at {cut} --as {name}`."
        )


def _departure(log: LogReader, name: str, head: Head) -> AgentMoved:
    """The record with which an agent that is away went."""
    move = move_in(next(log.read(name, head.seq)))
    assert move is not None, "a stream is away because of that record"
    return move
