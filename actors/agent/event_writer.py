"""Track an agent's position in its log, and append to the log: the only way in which an agent writes.

Base class of `Agent`. The lock `_writing` is held during each commit: `cancel` relies on it, so that no commit of a
turn can follow the record that ends the turn.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from everlog.actors.agent.activation_state import MAILED, TIMED
from everlog.actors.agent.cancellation import STOPPED, CancellableTurn
from everlog.actors.agent.undo import PositionedEvent, cancelled, endings_of
from everlog.actors.ports.agent_constants import BUSY_S, INBOX_MAX
from everlog.actors.ports.journal import Journal
from everlog.actors.ports.loggers import logger_of
from everlog.actors.ports.ports import Ports
from everlog.events import ApprovalDecided, Busy, Draft, DuplicateId, Event, Record, TurnCancelled, draft
from everlog.projections import HEAD
from everlog.store import Commit

if TYPE_CHECKING:
    from everlog.actors.mail.open_messages import OpenMessages

_log = logger_of("agent")

CommitListener = Callable[[Sequence[Record]], None]
NewEvents = Sequence[Event | PositionedEvent]
EventsFrom = Callable[[int], NewEvents]
"""Makes the events of a commit, given the seq of the first one: for events that refer to each other."""


class RecordFold(Protocol):
    """Value that is kept up to date from record to record."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None: ...

    def add(self, records: Sequence[Record]) -> None:
        """Take the next records of the agent."""


FoldT = TypeVar("FoldT", bound=RecordFold)


class EventWriter:
    """Writer of one agent's log, one commit after the other. Tracks the turns that are not finished."""

    __slots__ = (
        "_clock", "_folds", "_ids", "_journal", "_keys", "_mailed", "_on_commit", "_runs", "_timed", "_turn",
        "_waiting", "_writing", "agent_id", "head", "repeats",
    )  # fmt: skip

    def __init__(
        self, agent_id: str, *, journal: Journal, head: int, ports: Ports, on_commit: CommitListener | None
    ) -> None:
        self.agent_id = agent_id
        self.head = head
        """Seq of the last record."""
        self._journal, self._clock, self._ids, self._on_commit = journal, ports.clock, ports.ids, on_commit
        self._turn = 0  # last opened turn
        self._timed = self._mailed = False  # True if a timer was ever set, or a message of agents sent or received
        self._folds: list[RecordFold] = []
        self._waiting: list[tuple[int, str]] = []
        """Unfinished turns, oldest first: number, and id of the opening input (empty: resume from the log)."""
        self._keys: dict[str, str] = {}
        """Ids of the keys of commands in progress, by command id."""
        self._writing = asyncio.Lock()
        self._runs = CancellableTurn()
        self.repeats: str | None = None
        """During a rerun: id of the fork's `agent_forked`, the cause of every input, which marks the rerun's inputs."""

    async def commit(
        self,
        events: NewEvents | EventsFrom,
        *,
        turn: int | None,
        step: int,
        cause: str | None = None,
        ids: Sequence[str] = (),
        said_at: Sequence[int | None] | None = None,
        at: int | None = None,
    ) -> Sequence[Record]:
        """Append events as one commit and return its records; the first event causes the others. `turn` None opens a
        turn.

        `ids`: ids of the first events. `said_at`: one time for each event, if given. `at`: the time that a function was
        given, recorded so that `verify` can give it the same. Raises Busy, and CancelledError for a stopped turn.
        """
        async with self._writing:
            # Checked under the lock: once `cancel` has committed the turn's end, no commit of the turn can follow.
            self._runs.raise_if_stopped(turn, step)
            # Made under the lock: no other commit can take the seqs that the events refer to.
            made = events(self.head + 1) if callable(events) else events
            commit = await self._append(made, turn, step, cause=cause, ids=ids, said_at=said_at, at=at)
        return self._notify(commit)

    def _notify(self, commit: Commit) -> Sequence[Record]:
        if self._on_commit is not None and not commit.repeated:
            self._on_commit(commit.records)
        return commit.records

    async def _append(
        self,
        events: NewEvents,
        turn: int | None,
        step: int,
        *,
        cause: str | None = None,
        ids: Sequence[str] = (),
        said_at: Sequence[int | None] | None = None,
        at: int | None = None,
    ) -> Commit:
        """Append as `commit` does, for a caller that holds the lock."""
        if turn is None and len(self._waiting) >= INBOX_MAX:
            waits = f"{self.agent_id!r} has {INBOX_MAX} inputs waiting and takes no more now. Try again later."
            raise Busy(waits, retry_after_s=BUSY_S)
        now = self._clock.now() if at is None else at
        names = [*ids, *(self._ids.new(now) for _ in events[len(ids) :])]
        if ids and self._keys:
            events = signed(events, self._keys.get(ids[0], ""))
        first = self.repeats if turn is None else cause
        drafts = _drafts_of(
            events, turn=self._turn + 1 if turn is None else turn, step=step, names=names, said_at=said_at, at=now,
            cause=first,
        )  # fmt: skip
        self._timed |= any(one.type in TIMED for one in drafts)
        if not self._mailed and any(one.type in MAILED for one in drafts):
            self._mailed = True
            self._folds.append(_open_messages()())
        commit = await self._journal.commit(self.agent_id, self.head, drafts)
        # A redelivered command added no records: position and open turns stay.
        if not commit.repeated:
            self.head += len(drafts)
            for fold in self._folds:
                fold.add(commit.records)
            if _log.isEnabledFor(logging.INFO):
                kinds = ", ".join(one.type for one in drafts)
                _log.info("%r wrote seq %d to %d: %s", self.agent_id, self.head - len(drafts) + 1, self.head, kinds)
            if turn is None:
                self._turn += 1
                # A decided call runs first: the turn begins as one that is resumed, from its records.
                resumed = drafts[0].type == ApprovalDecided.kind
                self._waiting.append((self._turn, "" if resumed else names[0]))
        return commit

    @contextmanager
    def signing(self, command_id: str, key_id: str) -> Iterator[None]:
        """While the block runs, the first event of the commit with the id `command_id` names the key `key_id`."""
        if not key_id:
            yield
            return
        self._keys[command_id] = key_id
        try:
            yield
        finally:
            self._keys.pop(command_id, None)

    def now(self) -> int:
        """Return the time of the agent's clock, microseconds UTC."""
        return self._clock.now()

    @property
    def turn(self) -> int:
        """Number of the last turn that was opened."""
        return self._turn

    @property
    def waiting(self) -> int:
        """Number of unfinished turns."""
        return len(self._waiting)

    @property
    def open_turns(self) -> Sequence[int]:
        """Numbers of the unfinished turns, oldest first."""
        return [turn for turn, _ in self._waiting]

    async def cancel(self, event_id: str | None = None, *, every: bool = False, turn: int = 0) -> Sequence[int]:
        """Cancel the running turn, else the oldest unfinished one; `every`: all of them; `turn`: only that one, if it
        is unfinished (0: any). Return their numbers, rising.

        Returns an empty list if no turn is open. Committed records stay, nothing else of the turn is kept, and its
        waiting is abandoned. A call that had started outside gets a result that says so. Idempotent by `event_id`
        (UUIDv7).
        """
        try:
            async with self._writing:  # no commit of the turn is in progress, and none follows
                unfinished = [number for number in self.open_turns if turn in {0, number}]
                turns = unfinished if every else unfinished[:1]
                left = endings_of(await self.rows("turn_records"), turns, TurnCancelled(text=STOPPED)) if turns else []
                commit = await self._append(left, self._turn, 0, ids=ids_of(event_id)) if left else None
                if commit is not None and not commit.repeated:
                    self._closed(turns)
                    self._runs.stop(turns)
        # Committed before the task is stopped: a crash in between must not leave the turn open.
        except DuplicateId:
            if not (before := cancelled(self.records(1), event_id)):
                raise
            return before
        if commit is None:
            return cancelled(self.records(1), event_id)
        return [record.turn for record in self._notify(commit) if record.type == TurnCancelled.kind]

    def records(self, from_seq: int) -> Iterator[Record]:
        """Return the agent's records from a seq (inclusive) on, as an iterator."""
        return self._journal.read(self.agent_id, from_seq)

    def recorded_since(self, time: int) -> Iterator[Record]:
        """Return the agent's records that were recorded after a time (microseconds UTC), as an iterator."""
        return self.records(self._journal.seq_at(self.agent_id, time) + 1)

    async def rows(self, name: str, as_of: int | None = None, turn: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Return rows of a projection over this agent's log, as of a seq (inclusive); None: now.

        `turn`: the turn of the call whose context is asked for.
        """
        return await self._journal.rows(name, self.agent_id, HEAD if as_of is None else as_of, turn)

    async def timers(self) -> Sequence[Mapping[str, Any]]:
        """Return the timers that will still send a heartbeat. Queries nothing if no timer was ever set."""
        return await self.rows("timers") if self._timed else ()

    async def messages(self) -> Sequence[Mapping[str, Any]]:
        """Return the messages between this agent and others that are not over. Queries them once in an activation."""
        if not self._mailed:
            return ()
        return (await self.folded(_open_messages(), "unfinished_messages")).rows(self.open_turns)

    async def folded(self, kind: type[FoldT], name: str) -> FoldT:
        """Return the fold of that kind over this agent's log: of the rows of a projection, read once in an activation,
        and of each record since.
        """
        if (found := self._fold(kind)) is not None:
            return found
        async with self._writing:  # no record comes between the query and what follows it
            if (found := self._fold(kind)) is None:
                found = kind(await self.rows(name))
                self._folds.append(found)
        return found

    def _fold(self, kind: type[FoldT]) -> FoldT | None:
        return next((fold for fold in self._folds if isinstance(fold, kind)), None)

    def may_work_for_others(self, turn: int, *, resumed: bool) -> bool:
        """Return True if a turn may work on a message of another agent. `resumed`: it was opened in an earlier
        activation.
        """
        if not self._mailed or self.repeats is not None:  # a rerun works for no other agent
            return False
        mail = self._fold(_open_messages())
        return resumed or mail is None or mail.opened(turn)

    def _closed(self, turns: Sequence[int]) -> None:
        self._waiting = [waiting for waiting in self._waiting if waiting[0] not in turns]


def _open_messages() -> "type[OpenMessages]":
    from everlog.actors.mail.open_messages import OpenMessages  # most agents never write to others

    return OpenMessages


def _drafts_of(
    events: Sequence[Event | PositionedEvent],
    *,
    turn: int,
    step: int,
    names: Sequence[str],
    said_at: Sequence[int | None] | None,
    at: int,
    cause: str | None,
) -> list[Draft]:
    """Make the drafts of one commit: each event with its id and place; the first event causes the others."""
    placed = [event if isinstance(event, PositionedEvent) else PositionedEvent(event, turn, step) for event in events]
    times = said_at or [None] * len(events)
    return [
        draft(
            one.event,
            event_id=names[number],
            recorded_at=at,
            said_at=times[number],
            turn=one.turn,
            step=one.step,
            cause=names[0] if number else cause,
        )
        for number, one in enumerate(placed)
    ]


def signed(events: NewEvents, key_id: str) -> NewEvents:
    """Return the events of a commit, the first with the id of the key that it was asked for with; empty: unchanged."""
    if not key_id:
        return events
    first, *rest = events
    if isinstance(first, PositionedEvent):
        return [msgspec.structs.replace(first, event=msgspec.structs.replace(first.event, by=key_id)), *rest]
    return [msgspec.structs.replace(first, by=key_id), *rest]


def ids_of(event_id: str | None) -> list[str]:
    """Return the ids of a commit for a caller that may give the first event's id."""
    return [event_id] if event_id else []
