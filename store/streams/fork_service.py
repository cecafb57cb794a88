"""Forks: a stream that goes on from a point in another one's past.

A fork is one record, `agent_forked`, which names the parent, the cut and the chain value there. Nothing of the parent
is copied, and nothing is written to it: whoever reads the fork reads the parent up to the cut. It is made in two steps,
each durable before the next, and harmless when it comes again:

    1. its assignment in the register, which names the parent and the cut      the name is taken
    2. `agent_forked`, its first record, with seq cut + 1                      there is a fork
"""

from collections import defaultdict
from collections.abc import Sequence

from everlog.events import AgentForked, BadInput, Draft, Record, StoreError, draft
from everlog.store.base.block_streams import refuse_reserved
from everlog.store.base.contract import Log
from everlog.store.base.names import name_of, partition_of
from everlog.store.streams.move_service import MoveService
from everlog.store.streams.register import Assignment


class ForkService(MoveService):
    """The part of a store that makes forks, and knows which there are."""

    def open_partition(self, partition: str, command: str, *, label: str = "", take_over: bool = False) -> Log:
        """Own a partition by its name; see `store.Store`."""
        raise NotImplementedError

    def fork(
        self, parent: str, at: int, name: str, *, event_id: str, closing: Sequence[Draft] = ()
    ) -> Sequence[Record]:
        """Begin `name` as what `parent` was at seq `at`. Gives its own first records. See `store.Store`."""
        parent, name = name_of(parent), name_of(name)
        refuse_reserved(parent)
        refuse_reserved(name)
        reader = self.reader(parent)
        head = reader.head(parent).seq
        if not 1 <= at <= head:
            raise BadInput(f"{parent!r} cannot be forked at seq {at}: it has records 1 to {head}, the head.")
        if reader.erasing(parent):
            raise StoreError(
                f"{parent!r} cannot be forked now: records of it, or of an agent that it was forked from, are being "
                "erased. Try again when that is done; `everlog log seal` finishes an erasure that was interrupted."
            )
        now = self._now()
        event = AgentForked(parent=parent, parent_seq=at, chain=reader.chain(parent, at).hex())
        first = draft(event, event_id=event_id, recorded_at=now, turn=0, step=0)
        assignment = Assignment(name, partition_of(name), 1, parent, at)
        self._claim(assignment)
        log = self.open_partition(assignment.partition, "everlog fork", label=name)
        try:
            if log.head(name).seq:
                raise _taken(name)
            return log.append(name, at, [first, *closing]).records
        finally:
            log.close()

    def _claim(self, wanted: Assignment) -> None:
        """Register a fork, or find that it was registered by an attempt that did not come to its end."""
        if self._register.add(wanted):
            return
        found = self._assigned(wanted.agent_id)
        if found != wanted:
            raise _taken(wanted.agent_id, found)

    def parent_of(self, agent_id: str) -> tuple[str, int] | None:
        """Of a fork its parent and the cut, None for everybody else. Raises UnknownAgent."""
        assignment = self._assigned(name_of(agent_id))
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


def _taken(name: str, found: Assignment | None = None) -> BadInput:
    of = f", a fork of {found.parent!r} at seq {found.parent_seq}" if found is not None and found.parent else ""
    return BadInput(f"There is an agent {name!r} already{of}. Choose another name for the fork; names are never freed.")
