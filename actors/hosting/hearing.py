"""Who is told what, of a host's callers: each hears the records of its own turn, and those that are nobody's own."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Literal

from actors.constants import BUSY_S, HEARD_MAX, LISTENERS_MAX
from actors.transitions import INPUTS
from events import Busy, Record

Role = Literal["asker", "watcher", "schedule"]
"""Who asked hears the answer; a watcher hears what nobody asked for; a schedule only wants to know when it is done."""


class Listener:
    """One caller, who waits for what follows from a command."""

    def __init__(self, command_id: str, role: Role, *, held: bool) -> None:
        """`held`: hear nothing before `settle`."""
        self.command_id = command_id
        self.role = role
        self.turn = 0
        """The turn that the command opened; 0 while it has opened none."""
        self.heard: asyncio.Queue[Sequence[Record] | None] = asyncio.Queue()
        """Commits as they become durable; None at the end."""
        self.missed = 0
        """A watcher who does not keep up is told nothing from this seq on, and finds it in the log; 0: nothing yet."""
        self._ended = False
        self._held: list[Record] | None = [] if held else None

    def hear(self, records: Sequence[Record]) -> None:
        """A commit is durable."""
        if self._ended:
            return
        if self._held is None:
            self._tell(records)
        else:
            self._held += records

    def settle(self, turn: int = 0, past: Iterable[Record] = ()) -> None:
        """The command is about that turn, and `past` is what the log has of it: each record is told once, in order."""
        self.turn = turn
        known = {record.seq: record for record in [*past, *(self._held or ())]}
        self._held = None
        for _, commit in groupby((known[seq] for seq in sorted(known)), lambda record: record.commit):
            self._tell(list(commit))

    def end(self) -> None:
        """There is nothing more to hear."""
        if self._held is not None:
            self.settle()
        self._ended = True
        self.heard.put_nowait(None)

    def wants(self, record: Record, claimed: set[int]) -> bool:
        """Whether the record is for this caller. Records of step 0 are about the agent, but for the inputs."""
        if record.step == 0:
            return record.type not in INPUTS or record.event_id == self.command_id
        return record.turn == self.turn or record.turn not in claimed

    def _tell(self, records: Sequence[Record]) -> None:
        if not records or self.missed:
            return
        if self.role == "watcher" and self.heard.qsize() >= HEARD_MAX:
            self.missed = records[0].seq
        else:
            self.heard.put_nowait(records)


class Audience:
    """All callers of one host."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._left: deque[int] = deque(maxlen=LISTENERS_MAX)
        """Turns of callers who have gone away: what follows is still nobody else's answer."""

    @contextmanager
    def joined(self, command_id: str, role: Role, *, held: bool) -> Iterator[Listener]:
        """A caller who listens while the block runs. Raises Busy where LISTENERS_MAX listen already.

        `held`: it may be told of the past first, so it hears nothing before it is settled what there is to tell.
        """
        if len(self._listeners) >= LISTENERS_MAX:
            waits = f"The agent has {LISTENERS_MAX} callers waiting and takes no more now. Try again later."
            raise Busy(waits, retry_after_s=BUSY_S)
        listener = Listener(command_id, role, held=held)
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)
            if role == "asker":
                self._left.append(listener.turn)

    def of_nobody(self, records: Iterable[Record]) -> Iterator[Record]:
        """Those of records that are past which no caller asked for."""
        claimed = {listener.turn for listener in self._listeners if listener.role == "asker"} | set(self._left)
        return (record for record in records if record.turn not in claimed)

    def hear(self, records: Sequence[Record]) -> None:
        """A commit is durable."""
        callers = [listener for listener in self._listeners if listener.role != "watcher"]
        claimed = {listener.turn for listener in callers} | set(self._left)
        for listener in callers:
            listener.hear([record for record in records if listener.wants(record, claimed)])
        askers = [listener for listener in callers if listener.role == "asker"]
        unheard = [record for record in records if not any(asker.wants(record, claimed) for asker in askers)]
        for listener in self._listeners:
            if listener.role == "watcher":
                listener.hear(unheard)
