"""What a store does about agents that move: lets them go, and takes them in.

A move is three steps, each durable before the next and each of them harmless when it comes again:

    1. `agent_moved` to the new partition, last in the old one    the old one takes nothing more of the agent
    2. the next assignment in the register                        from now on it is looked for in the new one
    3. `agent_moved` from the old partition, first in the new one

Whoever lets an agent go does 1 and 2; whoever wants to append to it where it is does 3. One that was interrupted after
1 is finished by whoever asks for the agent in its old partition, which the register still names.
"""

from collections.abc import Callable

import msgspec

from everlog.events import AgentMoved, BadInput, CorruptLog, Moved, UsageError
from everlog.store.base.contract import Head, Log, LogReader
from everlog.store.base.move_records import arrival, departure, move_in
from everlog.store.base.names import name_of, partition_of
from everlog.store.streams.register import Assignment
from everlog.store.streams.routes import Assignments, Routes


class MoveService:
    """Moves the agents of a store between its partitions."""

    def __init__(self, register: Assignments, routes: Routes, shards: int, now: Callable[[], int]) -> None:
        """`shards` is the number of shared partitions, `now` gives microseconds UTC."""
        self._register = register
        self._routes = routes
        self._shards = shards
        self._now = now

    def begin_move(self, log: Log, agent_id: str, to: str) -> None:
        """Let an agent go from the partition of `log` to another one. See `store.Store`."""
        name = name_of(agent_id)
        if not self._has_place(name, to):
            raise BadInput(
                f"{name!r} cannot go to {to!r}: there is {partition_of(name)}, for itself, and {self._shards} shards."
            )
        try:
            self.finish_move(log, name)
        except Moved:
            if self._routes.assignment(name).partition != to:
                raise
            return
        if log.partition == to:
            return
        epoch = self._routes.assignment(name).epoch + 1
        head = log.head(name)
        if head.seq:
            append = departure(name, head, to, epoch, self._now())
            log.append(name, head.seq, append.drafts)
        self._register.move(_next_assignment(self._routes.assignment(name), to, epoch))

    def _has_place(self, name: str, partition: str) -> bool:
        """Whether an agent may be in a partition of that name: its own, or a shard of this store."""
        return partition in {partition_of(name), *(f"shard-{number:03d}" for number in range(self._shards))}

    def finish_move(self, log: Log, agent_id: str) -> bool:
        """Take an agent in whose move to the partition of `log` was begun. See `store.Store`."""
        name = name_of(agent_id)
        head = log.head(name)
        if head.seq and not head.away:
            return False
        assignment = self._routes.assignment(name)
        if head.away:  # whoever let it go may have died before it was registered
            gone = _departure(log, name, head)
            if gone.epoch > assignment.epoch:
                if not self._has_place(name, gone.partition):
                    raise CorruptLog(
                        f"The log of {name!r} says at seq {head.seq} that it went to {gone.partition!r}, and this "
                        "store has no such partition for it. Nothing was changed; restore the log from a backup."
                    )
                assignment = _next_assignment(assignment, gone.partition, gone.epoch)
                self._register.move(assignment)
        if assignment.partition != log.partition:
            raise Moved(f"{name!r} is in {assignment.partition} now, not in {log.partition}: send it there.")
        if assignment.epoch == 1:
            _raise_if_unfinished(assignment)
            return False
        last = self._routes.along(assignment, log).head(name)
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


def _next_assignment(assignment: Assignment, to: str, epoch: int) -> Assignment:
    """The assignment of the same agent to another partition."""
    return msgspec.structs.replace(assignment, partition=to, epoch=epoch)


def _raise_if_unfinished(assignment: Assignment) -> None:
    """Raises UsageError for a name that was taken for a fork which then was not made."""
    if assignment.parent:
        name, parent, cut = assignment.agent_id, assignment.parent, assignment.parent_seq
        raise UsageError(
            f"{name!r} was to be a fork of {parent!r} at seq {cut}, and was interrupted. Finish it with `everlog fork "
            f"{parent} --as-of {cut} --new-name {name}`."
        )


def _departure(log: LogReader, name: str, head: Head) -> AgentMoved:
    """The record with which an agent that is away went."""
    move = move_in(next(log.read(name, head.seq)))
    assert move is not None, "a stream is away because of that record"
    return move
