"""Who is told what, of a host's callers: each hears the records of its own turn, and those that are nobody's own."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from events import Record, UsageError

from .constants import LISTENERS_MAX
from .transitions import INPUTS


class Listener:
    """One caller, who waits for what follows from a command."""

    def __init__(self, command_id: str, *, waits: bool = False) -> None:
        """`waits`: nothing is passed on before `begin`, which knows what the log has of the turn already."""
        self.command_id = command_id
        self.turn = 0
        """The turn that the command opened; 0 while it has opened none."""
        self.heard: asyncio.Queue[Sequence[Record] | None] = asyncio.Queue()
        """Commits as they become durable; None at the end."""
        self._held: list[Sequence[Record]] | None = [] if waits else None

    def tell(self, records: Sequence[Record]) -> None:
        """Pass records on; none is no news."""
        if records and self._held is not None:
            self._held.append(records)
        elif records:
            self.heard.put_nowait(records)

    def begin(self, before: Sequence[Record] = ()) -> None:
        """Pass on what the log has of the turn up to now, then what was told meanwhile: in order, each once."""
        held, self._held = self._held or [], None
        last = before[-1].seq if before else 0
        self.tell(before)
        for records in held:
            self.tell([record for record in records if record.seq > last])

    def end(self) -> None:
        """There is nothing more to hear."""
        self.begin()
        self.heard.put_nowait(None)

    def wants(self, record: Record, claimed: set[int]) -> bool:
        """Whether the record is for this caller. Records of step 0 are about the agent, but for the inputs."""
        if record.step == 0:
            return record.type not in INPUTS or record.event_id == self.command_id
        return record.turn == self.turn or record.turn not in claimed


class Audience:
    """All callers of one host."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    @contextmanager
    def joined(self, command_id: str, *, waits: bool = False) -> Iterator[Listener]:
        """A caller who listens while the block runs. Raises UsageError where LISTENERS_MAX listen already."""
        if len(self._listeners) >= LISTENERS_MAX:
            raise UsageError(f"The agent has {LISTENERS_MAX} callers waiting and takes no more now. Try again later.")
        listener = Listener(command_id, waits=waits)
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)

    def hear(self, records: Sequence[Record]) -> None:
        """A commit is durable."""
        claimed = {listener.turn for listener in self._listeners}
        for listener in self._listeners:
            listener.tell([record for record in records if listener.wants(record, claimed)])
