"""Who is told what, of a host's callers: each hears the records of its own turn, and those that are nobody's own."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import Literal

from everlog.actors.agent.commands import Command, FireTimer, ResumeTurns, RetryTurn, SendInput, WatchAgent
from everlog.actors.formats.reply_preview import Preview, PreviewFactory, PreviewStream
from everlog.actors.ports.agent_constants import BUSY_S, HEARD_MAX, LISTENERS_MAX, PREVIEW_CHARS_MAX
from everlog.events import INPUTS, Busy, Record

SubscriberRole = Literal["asker", "watcher", "schedule"]
"""Who asked hears the answer; a watcher hears what nobody asked for; a schedule only wants to know when it is done."""
LOOKS_BACK = (SendInput, RetryTurn, FireTimer, WatchAgent)
"""Commands whose caller may have to be told first what the log has already: they were sent before, or came late."""
PREVIEWED_COMMANDS = (SendInput, RetryTurn, ResumeTurns)
"""Commands whose callers may want to hear what replies say while they are coming."""
_COMMIT = attrgetter("commit")


class Subscriber:
    """One who waits for what follows from a command, in one way or another."""

    __slots__ = ("_held", "command_id", "missed", "over", "previews", "role", "turn")

    def __init__(self, command_id: str, role: SubscriberRole, *, held: bool) -> None:
        """`held`: hear nothing before `attach_turn`."""
        self.command_id = command_id
        self.role = role
        self.turn = 0
        """The turn that the command opened; 0 while it has opened none."""
        self.missed = 0
        """A watcher who does not keep up is told nothing from this seq on, and finds it in the log; 0: nothing yet."""
        self.over = False
        """There is nothing more to hear."""
        self.previews = False
        """Whether it is told what replies say while they are coming."""
        self._held: list[Record] | None = [] if held else None

    def on_commit(self, records: Sequence[Record]) -> None:
        """A commit is durable."""
        if self.over:
            return
        if self._held is None:
            self._deliver(records)
        else:
            self._held += records

    def attach_turn(self, turn: int = 0, past: Iterable[Record] = ()) -> None:
        """The command is about that turn, and `past` is what the log has of it: each record is told once, in order."""
        self.turn = turn
        held, self._held = self._held or [], None
        if past:
            known = {record.seq: record for record in [*past, *held]}
            held = [known[seq] for seq in sorted(known)]
        for _, commit in groupby(held, _COMMIT):
            self._deliver(list(commit))

    def end(self) -> None:
        """There is nothing more to hear."""
        if self._held is not None:
            self.attach_turn()
        self.over = True

    def owns(self, record: Record) -> bool:
        """Whether the record is about this caller's turn. Those of step 0 are about the agent, but for the inputs."""
        if record.step == 0:
            return record.type not in INPUTS or record.event_id == self.command_id
        return record.turn == self.turn

    def wants(self, record: Record, claimed: set[int]) -> bool:
        """Whether the record is for this caller: it is its own, or that of no other."""
        return self.owns(record) or (record.step != 0 and record.turn not in claimed)

    def on_preview(self, preview: Preview) -> None:
        """Something is on its way that may become durable."""

    def _deliver(self, records: Sequence[Record]) -> None:
        raise NotImplementedError


class _Coming:
    """Words of one text that nobody has taken yet."""

    __slots__ = ("chars", "first", "parts")

    def __init__(self, first: Preview) -> None:
        self.first = first
        self.parts = [first.text]
        self.chars = len(first.text)

    def adds(self, preview: Preview) -> bool:
        """Whether the preview goes on with the same text; it is added then."""
        first = self.first
        if (preview.turn, preview.step, preview.kind) != (first.turn, first.step, first.kind):
            return False
        self.parts.append(preview.text)
        self.chars += len(preview.text)
        return True

    @property
    def whole(self) -> Preview:
        return Preview(self.first.turn, self.first.step, self.first.kind, "".join(self.parts))


class StreamSubscriber(Subscriber):
    """A caller who hears each commit when it is durable."""

    __slots__ = ("_chars", "_deaf", "_last", "collected")

    def __init__(self, command_id: str, role: SubscriberRole, *, held: bool) -> None:
        super().__init__(command_id, role, held=held)
        self.collected: asyncio.Queue[Sequence[Record] | _Coming | None] = asyncio.Queue()
        """Commits as they become durable, and what is coming; None at the end."""
        self._last: _Coming | None = None
        """What is coming and was heard last, while nobody has taken it."""
        self._chars = 0
        """Of what is coming and was not taken."""
        self._deaf: tuple[int, int] | None = None
        """The turn and step of a reply of which too much waited: no more is told before it is durable."""

    async def next(self) -> Sequence[Record] | Preview | None:
        """What is heard next; words that came together are one preview. None at the end."""
        collected = await self.collected.get()
        if not isinstance(collected, _Coming):
            return collected
        self._last = None if self._last is collected else self._last
        self._chars -= collected.chars
        return collected.whole

    def on_preview(self, preview: Preview) -> None:
        """It is dropped where too much waits, with the rest of its reply: records never are."""
        if preview.kind == "restart":
            self._deaf = None
        elif self._chars + len(preview.text) > PREVIEW_CHARS_MAX:
            self._deaf = preview.turn, preview.step
        if self.over or self._deaf == (preview.turn, preview.step):
            return
        self._chars += len(preview.text)
        if self._last is None or not self._last.adds(preview):
            self._last = _Coming(preview)
            self.collected.put_nowait(self._last)

    def end(self) -> None:
        super().end()
        self.collected.put_nowait(None)

    def _deliver(self, records: Sequence[Record]) -> None:
        if not records or self.missed:
            return
        if self.role == "watcher" and self.collected.qsize() >= HEARD_MAX:
            self.missed = records[0].seq
        else:
            self._last = None
            self.collected.put_nowait(records)


class Collector(Subscriber):
    """A caller who hears everything at the end, and is not woken before."""

    __slots__ = ("collected", "ended")

    def __init__(self, command_id: str, role: SubscriberRole, *, held: bool, collected: list[Record]) -> None:
        """`collected` gets the records."""
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
    """All callers of one host."""

    def __init__(self) -> None:
        self._callers: list[Subscriber] = []
        self._left: deque[int] = deque(maxlen=LISTENERS_MAX)
        """Turns of callers who have gone away: what follows is still nobody else's answer."""

    @contextmanager
    def joined(
        self, command_id: str, role: SubscriberRole, *, held: bool, previews: bool = False
    ) -> Iterator[StreamSubscriber]:
        """A caller who listens while the block runs; see `join`.

        `held`: it may be told of the past first, so it hears nothing before it is settled what there is to tell.
        """
        listener = StreamSubscriber(command_id, role, held=held)
        listener.previews = previews
        self.join(listener)
        try:
            yield listener
        finally:
            self.leave(listener)

    def join(self, caller: Subscriber) -> None:
        """Have a caller hear what happens, until it leaves. Raises Busy where LISTENERS_MAX listen already."""
        if len(self._callers) >= LISTENERS_MAX:
            waits = f"The agent has {LISTENERS_MAX} callers waiting and takes no more now. Try again later."
            raise Busy(waits, retry_after_s=BUSY_S)
        self._callers.append(caller)

    def leave(self, caller: Subscriber) -> None:
        """The caller has heard everything, or has gone away."""
        self._callers.remove(caller)
        if caller.role == "asker":
            self._left.append(caller.turn)

    @property
    def preview_for(self) -> PreviewFactory:
        """What tells callers of an agent's replies while they are coming."""
        return PreviewStream(lambda turn: any(self._preview_subscribers(turn)), self._send_preview).preview_for

    def _preview_subscribers(self, turn: int) -> Iterator[Subscriber]:
        """Who wants to hear what the replies of a turn say while they are coming."""
        claimed = {caller.turn for caller in self._callers if caller.role == "asker"} | set(self._left)
        for caller in self._callers:
            if caller.previews and (caller.turn == turn or (not caller.turn and turn not in claimed)):
                yield caller

    def _send_preview(self, preview: Preview) -> None:
        """Something is on its way that may become durable."""
        for caller in self._preview_subscribers(preview.turn):
            caller.on_preview(preview)

    def of_nobody(self, records: Iterable[Record]) -> Iterator[Record]:
        """Those of records that are past which no caller asked for."""
        claimed = {caller.turn for caller in self._callers if caller.role == "asker"} | set(self._left)
        return (record for record in records if record.turn not in claimed)

    def on_commit(self, records: Sequence[Record]) -> None:
        """A commit is durable."""
        if len(self._callers) == 1 and self._callers[0].role != "watcher" and all(map(self._callers[0].owns, records)):
            self._callers[0].on_commit(records)  # as it mostly is
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
    """The role of the caller of a command."""
    if isinstance(command, WatchAgent):
        return "watcher"
    return "schedule" if isinstance(command, FireTimer) else "asker"


def wants_previews(command: Command) -> bool:
    """Whether the caller of a command wants to hear what replies say while they are coming."""
    return isinstance(command, PREVIEWED_COMMANDS) and command.preview
