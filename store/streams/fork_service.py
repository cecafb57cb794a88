"""Create forks: streams that continue from a point in another stream's past.

A fork is one record, `agent_forked`, which names the parent, the fork point and the chain value there. No record of the
parent is copied, and nothing is written to the parent: a reader of the fork reads the parent up to the fork point. A
fork is created in two steps, each durable before the next, and each idempotent:

    1. its assignment in the register, which names the parent and fork point   the name is taken
    2. `agent_forked`, its first record, with seq fork point + 1               the fork exists

Used by `FileStore` and `MemoryStore`, and by `backup.restore_service` for forks in an export.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from everlog.events import AgentForked, BadInput, Draft, Record, StoreError, draft
from everlog.store.base.block_streams import check_not_reserved
from everlog.store.base.contract import Log
from everlog.store.base.names import name_of, partition_of
from everlog.store.streams.register_file import Assignment
from everlog.store.streams.routes import Assignments, Routes


class Opener(Protocol):
    """Opens the partitions of a store."""

    def open(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> Log:
        """Own a partition by its name; see `store.Store.open_partition`."""
        ...


class ForkService:
    """Creates the forks of a store."""

    def __init__(self, register: Assignments, routes: Routes, opener: Opener, now: Callable[[], int]) -> None:
        """Store the collaborators; `now` returns microseconds UTC."""
        self._register = register
        self._routes = routes
        self._opener = opener
        self._now = now

    def fork(
        self, parent: str, at: int, name: str, *, event_id: str, closing: Sequence[Draft] = (), by: str = ""
    ) -> Sequence[Record]:
        """Create `name` from the records of `parent` up to seq `at`. Return the fork's first records. See
        `store.Store`.
        """
        parent, name = name_of(parent), name_of(name)
        check_not_reserved(parent)
        check_not_reserved(name)
        reader = self._routes.reader(parent)
        head = reader.head(parent).seq
        if not 1 <= at <= head:
            raise BadInput(f"{parent!r} cannot be forked at seq {at}: it has records 1 to {head}.")
        # The fork would share content that an erasure is about to remove: finish the erasure first.
        if reader.erasing(parent):
            raise StoreError(
                f"{parent!r} cannot be forked now: an erasure of its records, or of an ancestor's, is not finished. "
                "Try again when it is; `everlog log seal` finishes an erasure that was interrupted."
            )
        now = self._now()
        event = AgentForked(parent=parent, parent_seq=at, chain=reader.chain(parent, at).hex(), by=by)
        first = draft(event, event_id=event_id, recorded_at=now, turn=0, step=0)
        assignment = Assignment(name, partition_of(name), 1, parent, at)
        self._claim(assignment)
        log = self._opener.open(assignment.partition, "everlog fork", label=name)
        try:
            if log.head(name).seq:
                raise _taken_error(name)
            return log.append(name, at, [first, *closing]).records
        finally:
            log.close()

    def _claim(self, wanted: Assignment) -> None:
        """Register a fork, or accept the same registration of an interrupted attempt. Raises BadInput if the name is
        taken.
        """
        if self._register.add(wanted):
            return
        found = self._routes.assignment(wanted.agent_id)
        if found != wanted:
            raise _taken_error(wanted.agent_id, found)
        self._routes.check_not_lost(wanted.agent_id)


def _taken_error(name: str, found: Assignment | None = None) -> BadInput:
    of = f", a fork of {found.parent!r} at seq {found.parent_seq}" if found is not None and found.parent else ""
    return BadInput(
        f"There is an agent {name!r} already{of}. Choose another name for the fork. "
        "The name of a deleted agent can be used again."
    )
