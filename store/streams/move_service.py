"""Move agents between partitions: record departures and arrivals.

A move is three steps, each durable before the next and each of them idempotent:

    1. `agent_moved` to the new partition, last in the old one    the old partition refuses further appends to the agent
    2. the next assignment in the register                        from now on lookups lead to the new partition
    3. `agent_moved` from the old partition, first in the new one

`begin_move` does 1 and 2 with the log of the old partition; `finish_move` does 3 with the log of the new one, before
anything else is appended there. If a move is interrupted after 1, the register still names the old partition, and the
next `finish_move` there does 2.

Used by `FileStore` and `MemoryStore`.
"""

from collections.abc import Callable

import msgspec

from everlog.events import AgentMoved, BadInput, CorruptLog, Moved, UsageError
from everlog.store.base.contract import Head, Log, LogReader
from everlog.store.base.move_records import arrival, departure, move_in
from everlog.store.base.names import name_of, partition_of
from everlog.store.streams.register_file import Assignment
from everlog.store.streams.routes import Assignments, Routes
from everlog.store.streams.shard_numbers import ShardNumbers, is_shard_of


def check_expected(name: str, partition: str, expected: str | None) -> None:
    """Raise Moved if an agent is not in the partition that a caller expects; None: any is right."""
    if expected not in {None, partition}:
        raise _moved(name, partition, expected)


def _moved(name: str, partition: str, other: str | None) -> Moved:
    return Moved(f"{name!r} is in {partition} now, not in {other}: send the events there.")


class MoveService:
    """Moves the agents of a store between its partitions."""

    def __init__(self, register: Assignments, routes: Routes, shards: ShardNumbers, now: Callable[[], int]
                 ) -> None:  # fmt: skip
        """Store the collaborators; `now` returns microseconds UTC."""
        self._register = register
        self._routes = routes
        self._shards = shards
        self._now = now

    def begin_move(self, log: Log, agent_id: str, to: str) -> None:
        """Move an agent from the partition of `log` to the partition `to`: steps 1 and 2. See `store.Store`."""
        name = name_of(agent_id)
        if not self._has_place(name, to):
            raise BadInput(
                f"{name!r} cannot move to {to!r}: valid targets are its own partition {partition_of(name)!r} and this "
                f"store's {max(self._shards.all())} shards."
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
        # The departure is durable before the register changes: at no moment do two partitions accept appends to the
        # agent.
        if head.seq:
            append = departure(name, head, to, epoch, self._now())
            log.append(name, head.seq, append.drafts)
        self._register.move(_next_assignment(self._routes.assignment(name), to, epoch))

    def _has_place(self, name: str, partition: str) -> bool:
        """Return True if the agent may be in that partition: its dedicated one, or a shard that this store has had."""
        return partition == partition_of(name) or is_shard_of(partition, self._shards.all())

    def finish_move(self, log: Log, agent_id: str) -> bool:
        """Complete the move of an agent to the partition of `log`: step 3. See `store.Store`."""
        name = name_of(agent_id)
        head = log.head(name)
        if head.seq and not head.away:
            self._register.begun([name])  # the process that began it may have died before it removed the mark
            return False
        assignment = self._routes.assignment(name)
        if head.away:  # the process that began the move may have died before it was registered
            gone = _departure(log, name, head)
            if gone.epoch > assignment.epoch:
                if not self._has_place(name, gone.partition):
                    raise CorruptLog(
                        f"The log of {name!r} says at seq {head.seq} that the agent moved to {gone.partition!r}, but "
                        "this store has no such partition. Nothing was changed; restore the log from a backup."
                    )
                assignment = _next_assignment(assignment, gone.partition, gone.epoch)
                self._register.move(assignment)
        if assignment.partition != log.partition:
            raise _moved(name, assignment.partition, log.partition)
        if assignment.epoch == 1:
            self._routes.check_not_lost(name)
            _raise_if_unfinished(assignment)
            return False
        last = self._routes.along(assignment, log).head(name)
        if last.seq and not last.away:
            raise CorruptLog(
                f"the register assigns {name!r} to {log.partition}, but the agent's log ends at seq {last.seq} without "
                "a record of that move: records after it are missing. Nothing was changed; restore them from a backup."
            )
        self._routes.check_not_lost(name)
        if last.seq:
            before = self._register.before(assignment)[-1].partition
            append = arrival(name, last, before, assignment.epoch, self._now())
            log.append(name, last.seq, append.drafts)
        return last.seq > 0


def _next_assignment(assignment: Assignment, to: str, epoch: int) -> Assignment:
    """Return the assignment of the same agent to another partition."""
    return msgspec.structs.replace(assignment, partition=to, epoch=epoch)


def _raise_if_unfinished(assignment: Assignment) -> None:
    """Raise UsageError if the name is registered as a fork that was not completed."""
    if assignment.parent:
        name, parent, cut = assignment.agent_id, assignment.parent, assignment.parent_seq
        raise UsageError(
            f"creating {name!r} as a fork of {parent!r} at seq {cut} was interrupted. Finish it with `everlog fork "
            f"{parent} --as-of {cut} --new-name {name}`."
        )


def _departure(log: LogReader, name: str, head: Head) -> AgentMoved:
    """Return the record with which an agent that is away departed."""
    move = move_in(next(log.read(name, head.seq)))
    assert move is not None, "a stream is away because of that record"
    return move
