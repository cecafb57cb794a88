"""Deliver committed records to a host's subscribers.

Used by `Host`. Each subscriber gets the records of its own turn and those that belong to no caller. Only durable
records are delivered; previews are not durable, and may be dropped where records may not.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import Literal

import msgspec

from everlog.actors.agent.commands import (
    Command,
    DecideApproval,
    DeliverLetter,
    FireTimer,
    ResumeTurns,
    RetryTurn,
    SendInput,
    WatchAgent,
)
from everlog.actors.formats.reply_preview import Preview, PreviewStream
from everlog.actors.ports.agent_constants import BUSY_S, PREVIEW_CHARS_MAX, SUBSCRIBERS_MAX, WATCHED_COMMITS_MAX
from everlog.events import INPUTS, Busy, Record

SubscriberRole = Literal["asker", "watcher", "schedule"]
"""Role of a subscriber: an asker gets the answer to its own command, a watcher gets the records that no caller asked
for, and a schedule, of timers or of messages of other agents, only waits for the end of its command.
"""
WITH_PAST = (SendInput, RetryTurn, DecideApproval, FireTimer, WatchAgent)
"""Commands whose caller may first need records that are in the log already: they were sent before, or came late."""
PREVIEWED_COMMANDS = (SendInput, RetryTurn, DecideApproval, ResumeTurns)
"""Commands whose callers may ask for previews of streamed replies."""
_COMMIT = attrgetter("commit")


class Subscriber:
    """Subscriber to the records that follow from one command. Subclasses define the delivery."""

    __slots__ = ("_held", "command_id", "missed", "over", "previews", "role", "turn")

    def __init__(self, command_id: str, role: SubscriberRole, *, held: bool) -> None:
        """Create the subscriber. `held`: deliver nothing before `attach_turn`."""
        self.command_id = command_id
        self.role = role
        self.turn = 0
        """Turn that the command opened; 0 while there is none."""
        self.missed = 0
        """First seq that a slow watcher missed: records from there on are not delivered but read from the log. 0:
        none.
        """
        self.over = False
        """True after the last delivery."""
        self.previews = False
        """True if the subscriber gets previews of streamed replies."""
        self._held: list[Record] | None = [] if held else None
        """Records that wait for `attach_turn`; None if records are delivered at once."""

    def on_commit(self, records: Sequence[Record]) -> None:
        """Deliver the records of a durable commit, or hold them until `attach_turn`."""
        if self.over:
            return
        if self._held is None:
            self._deliver(records)
        else:
            self._held += records

    def attach_turn(self, turn: int = 0, past: Iterable[Record] = ()) -> None:
        """Set the turn of the command, then deliver `past` (its records in the log) and held records, each once, by
        seq.
        """
        self.turn = turn
        held, self._held = self._held or [], None
        if past:
            known = {record.seq: record for record in [*past, *held]}
            held = [known[seq] for seq in sorted(known)]
        for _, commit in groupby(held, _COMMIT):
            self._deliver(list(commit))

    def end(self) -> None:
        """End the deliveries. Records that are still held are delivered first."""
        if self._held is not None:
            self.attach_turn()
        self.over = True

    def owns(self, record: Record) -> bool:
        """Return True if the record is about this subscriber's turn.

        Records of step 0 are about the agent and therefore for all, except inputs: an input is for the command that
        sent it.
        """
        if record.step == 0:
            return record.type not in INPUTS or record.event_id == self.command_id
        return record.turn == self.turn

    def wants(self, record: Record, claimed: set[int]) -> bool:
        """Return True if the record is the subscriber's own, or of a turn that no caller claims (`claimed`)."""
        return self.owns(record) or (record.step != 0 and record.turn not in claimed)

    def on_preview(self, preview: Preview) -> None:
        """Receive a preview of a reply. The text is not durable yet."""

    def _deliver(self, records: Sequence[Record]) -> None:
        raise NotImplementedError


def _chars(preview: Preview) -> int:
    """Return the size of a preview in characters."""
    return len(preview.text) + (len(preview.call.arguments) if preview.call is not None else 0)


class _QueuedPreview:
    """Previews of one text, merged while they wait in the queue."""

    __slots__ = ("chars", "first", "parts")

    def __init__(self, first: Preview) -> None:
        self.first = first
        self.parts = [first.text]
        self.chars = _chars(first)

    def adds(self, preview: Preview) -> bool:
        """Append a preview of the same text, or replace a line of progress by a newer one. Return False if the preview
        is of another text.
        """
        first = self.first
        if preview.call is not None or (preview.turn, preview.step, preview.kind) != (
            first.turn,
            first.step,
            first.kind,
        ):
            return False
        if preview.kind == "progress":
            self.parts, self.chars = [], 0
        self.parts.append(preview.text)
        self.chars += len(preview.text)
        return True

    @property
    def whole(self) -> Preview:
        return msgspec.structs.replace(self.first, text="".join(self.parts))


class StreamSubscriber(Subscriber):
    """Subscriber that gets each commit as soon as it is durable."""

    __slots__ = ("_chars", "_last", "_muted_reply", "collected")

    def __init__(self, command_id: str, role: SubscriberRole, *, held: bool) -> None:
        super().__init__(command_id, role, held=held)
        self.collected: asyncio.Queue[Sequence[Record] | _QueuedPreview | None] = asyncio.Queue()
        """Queue of durable commits and merged previews; None at the end."""
        self._last: _QueuedPreview | None = None
        """Newest element of the queue, if it is a preview that further previews can extend."""
        self._chars = 0
        """Number of characters of the queued previews."""
        self._muted_reply: tuple[int, int] | None = None
        """Turn and step of a reply whose previews are dropped, because too many characters are queued."""

    async def next(self) -> Sequence[Record] | Preview | None:
        """Return the next commit or merged preview; None at the end."""
        collected = await self.collected.get()
        if not isinstance(collected, _QueuedPreview):
            return collected
        self._last = None if self._last is collected else self._last
        self._chars -= collected.chars
        return collected.whole

    def on_preview(self, preview: Preview) -> None:
        """Queue a preview. If PREVIEW_CHARS_MAX are queued, drop it and the rest of its reply; records are never
        dropped for it.
        """
        if preview.kind == "restart":
            self._muted_reply = None
        elif self._chars + _chars(preview) > PREVIEW_CHARS_MAX:
            self._muted_reply = preview.turn, preview.step
        if self.over or self._muted_reply == (preview.turn, preview.step):
            return
        before = self._last.chars if self._last is not None else 0
        if self._last is None or not self._last.adds(preview):
            self._last, before = _QueuedPreview(preview), 0
            self.collected.put_nowait(self._last)
        self._chars += self._last.chars - before

    def end(self) -> None:
        super().end()
        self.collected.put_nowait(None)

    def _deliver(self, records: Sequence[Record]) -> None:
        if not records or self.missed:
            return
        # A slow watcher would fill the memory. Its next watch begins at `missed` and reads the rest from the log.
        if self.role == "watcher" and self.collected.qsize() >= WATCHED_COMMITS_MAX:
            self.missed = records[0].seq
        else:
            self._last = None
            self.collected.put_nowait(records)


class Collector(Subscriber):
    """Subscriber that gets everything at the end, and is not woken before."""

    __slots__ = ("collected", "ended")

    def __init__(self, command_id: str, role: SubscriberRole, *, held: bool, collected: list[Record]) -> None:
        """Create the subscriber. `collected` gets the records."""
        super().__init__(command_id, role, held=held)
        self.collected = collected
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done at the end."""

    def end(self) -> None:
        super().end()
        if not self.ended.done():
            self.ended.set_result(None)

    def _deliver(self, records: Sequence[Record]) -> None:
        self.collected += records


class Subscribers:
    """All subscribers of one host."""

    def __init__(self) -> None:
        self._callers: list[Subscriber] = []
        self._left: list[int] = []  # a deque would take 700 bytes of each agent
        """Turns of askers that have left: later records of these turns still belong to no other caller."""

    @contextmanager
    def joined(
        self, command_id: str, role: SubscriberRole, *, held: bool, previews: bool = False
    ) -> Iterator[StreamSubscriber]:
        """Add a subscriber while the block runs; see `join`.

        `held`: the subscriber may need past records first, so nothing is delivered before `attach_turn`.
        """
        listener = StreamSubscriber(command_id, role, held=held)
        listener.previews = previews
        self.join(listener)
        try:
            yield listener
        finally:
            self.leave(listener)

    def join(self, caller: Subscriber) -> None:
        """Add a subscriber until it leaves. Raises Busy if there are SUBSCRIBERS_MAX already."""
        if len(self._callers) >= SUBSCRIBERS_MAX:
            waits = f"The agent has {SUBSCRIBERS_MAX} callers waiting and takes no more now. Try again later."
            raise Busy(waits, retry_after_s=BUSY_S)
        self._callers.append(caller)

    def leave(self, caller: Subscriber) -> None:
        """Remove a subscriber, after the last delivery or before."""
        self._callers.remove(caller)
        if caller.role == "asker":
            self._left.append(caller.turn)
            del self._left[:-SUBSCRIBERS_MAX]

    def previews(self) -> PreviewStream:
        """Return a stream that delivers previews of the agent's replies and calls."""
        return PreviewStream(lambda turn: any(self._preview_subscribers(turn)), self._send_preview)

    def _preview_subscribers(self, turn: int) -> Iterator[Subscriber]:
        """Yield the subscribers that get previews of a turn."""
        claimed = {caller.turn for caller in self._callers if caller.role == "asker"} | set(self._left)
        for caller in self._callers:
            if caller.previews and (caller.turn == turn or (not caller.turn and turn not in claimed)):
                yield caller

    def _send_preview(self, preview: Preview) -> None:
        """Deliver a preview to its subscribers."""
        for caller in self._preview_subscribers(preview.turn):
            caller.on_preview(preview)

    def without_caller(self, records: Iterable[Record]) -> Iterator[Record]:
        """Return an iterator over those of some past records that no caller asked for."""
        claimed = {caller.turn for caller in self._callers if caller.role == "asker"} | set(self._left)
        return (record for record in records if record.turn not in claimed)

    def on_commit(self, records: Sequence[Record]) -> None:
        """Deliver the records of a durable commit to their subscribers."""
        if len(self._callers) == 1 and self._callers[0].role != "watcher" and all(map(self._callers[0].owns, records)):
            self._callers[0].on_commit(records)  # the usual case, without the cost of the general one
            return
        callers = [caller for caller in self._callers if caller.role != "watcher"]
        claimed = {caller.turn for caller in callers} | set(self._left)
        for caller in callers:
            caller.on_commit([record for record in records if caller.wants(record, claimed)])
        askers = [caller for caller in callers if caller.role == "asker"]
        unheard = [record for record in records if not any(asker.wants(record, claimed) for asker in askers)]
        for caller in self._callers:
            if caller.role == "watcher":
                caller.on_commit(unheard)


def role_of(command: Command) -> SubscriberRole:
    """Return the role of the caller of a command."""
    if isinstance(command, WatchAgent):
        return "watcher"
    return "schedule" if isinstance(command, FireTimer | DeliverLetter) else "asker"


def wants_previews(command: Command) -> bool:
    """Return True if the caller of a command asked for previews."""
    return isinstance(command, PREVIEWED_COMMANDS) and command.preview
