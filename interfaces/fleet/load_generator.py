"""Generate load for many agents at once: each gets its next message when it has answered the one before.

Used by `everlog fleet` and by `bench.fleet`.

The results are counted but not trusted: `check` looks up every acknowledged input in the logs.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_system import AgentSystem
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.reply import SendOutcome
from everlog.events import EverlogError, ModelError
from everlog.projections import input_outcomes
from everlog.store import Disk, FileStore, PartitionReader, Progress, is_shared, partition_of
from everlog.store.base.disk import storage

RETRIES_MAX = 20
"""Retries of a message that a full queue rejected; after these it counts as an error."""
MEMORY_SEARCHES = ("conversation_search", "conversation_search_date", "archival_memory_search")
"""Functions that search memory."""


class ErrorTally(msgspec.Struct):
    """Errors of one kind."""

    count: int
    example: str
    refused: bool
    """True if a full queue rejected the message until the retries ended."""


class LoadTally(msgspec.Struct):
    """Counts of the results of a load."""

    answered: int = 0
    """Messages whose turn was completed."""
    latencies_us: list[int] = msgspec.field(default_factory=list)
    """Time of each of these from sending to the end of its turn, microseconds."""
    acknowledged: list[str] = msgspec.field(default_factory=list)
    """Ids of the inputs that were acknowledged as durable."""
    model_calls: int = 0
    searched: int = 0
    """Turns that searched memory."""
    acted: int = 0
    """Turns that called any function but `send_message`."""
    retried: int = 0
    """Messages that were sent again after a rejection."""
    faults: dict[str, ErrorTally] = msgspec.field(default_factory=dict)
    """Messages whose turn was not completed, by kind of error."""
    began_us: int = 0
    ended_us: int = 0

    @property
    def seconds(self) -> float:
        """Seconds from the first message to the last answer."""
        return (self.ended_us - self.began_us) / 1e6

    @property
    def per_s(self) -> float:
        """Answered messages per second."""
        return self.answered / self.seconds if self.seconds > 0 else 0.0

    def fault(self, error: EverlogError) -> None:
        """Count an error."""
        fault = self.faults.setdefault(kind_of(error), ErrorTally(0, str(error), retry_after_s(error) is not None))
        fault.count += 1

    def record_outcome(self, sent: SendOutcome) -> None:
        """Count the acknowledgement, the model calls and the function calls of a message."""
        if any(record.event_id == sent.event_id for record in sent.records):
            self.acknowledged.append(sent.event_id)
        kinds = Counter(record.type for record in sent.records)
        self.model_calls += kinds["model_reply"] + kinds["model_failed"]
        called = {_name(record.payload) for record in sent.records if record.type == "function_result"}
        called -= {SEND_MESSAGE}
        self.acted += bool(called)
        self.searched += any(name in MEMORY_SEARCHES for name in called)


class _CallName(msgspec.Struct):
    name: str = ""


_named = msgspec.json.Decoder(_CallName)


def _name(payload: str) -> str:
    return _named.decode(payload).name


def kind_of(error: EverlogError) -> str:
    """Return the kind by which an error is counted."""
    name = type(error).__name__
    return f"{name}: {error.kind}" if isinstance(error, ModelError) else name


def retry_after_s(error: EverlogError | None) -> float | None:
    """Return the seconds until a rejected message may be sent again; None for any other error."""
    return None if isinstance(error, ModelError) else getattr(error, "retry_after_s", None)


class _LoadTurn(msgspec.Struct):
    """An agent in the load, and the position of its next message."""

    name: str
    place: int
    """Index of its first line."""
    said: int = 0
    """Messages that it has answered, or that failed."""
    tries: int = 0
    """Retries of the current message."""


_LoadEvent = tuple[SendOutcome, int] | _LoadTurn | BaseException


class LoadRun:
    """A load that sends `messages` lines to each of the agents. `run` it once."""

    def __init__(
        self,
        system: AgentSystem,
        names: Sequence[str],
        lines: Sequence[str],
        messages: int,
        *,
        at_once: int,
        now: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        moved: Progress = lambda _done, _total: None,
    ) -> None:
        """Prepare the load.

        `at_once`: most messages in progress at once; `now`: a clock in microseconds that never goes back; `moved` is
        called with the number of completed messages and the total. The lines repeat: an agent begins with the line
        after the last one of the agent before it.
        """
        self.tally = LoadTally()
        self._system = system
        self._lines = lines
        self._messages = messages
        self._at_once = at_once
        self._now = now
        self._sleep = sleep
        self._moved = moved
        self._turns = {name: _LoadTurn(name, number * messages % len(lines)) for number, name in enumerate(names)}
        self._ready = deque(self._turns.values() if messages else ())
        self._open = len(self._ready)
        """Agents that have messages left."""
        self._under_way = 0
        self._done = 0
        self._news: asyncio.Queue[_LoadEvent] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> LoadTally:
        """Send all messages and wait for all answers. Raises ClusterError or StoreError, which end the whole run.

        After a cancellation no more messages are sent, and the agents complete the messages in progress on their own.
        """
        self.tally.began_us = self.tally.ended_us = self._now()
        try:
            while self._open:
                self._say()
                self._take(await self._news.get())
                while not self._news.empty():
                    self._take(self._news.get_nowait())
                self._moved(self._done, len(self._turns) * self._messages)
        finally:
            self.tally.ended_us = self._now()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        return self.tally

    def _say(self) -> None:
        """Send the next messages of all ready agents in one batch, up to the limit of messages in progress."""
        room = min(len(self._ready), self._at_once - self._under_way)
        if room:
            turns = [self._ready.popleft() for _ in range(room)]
            self._under_way += room
            self._spawn(self._sent([(turn.name, self._words(turn)) for turn in turns]))

    def _words(self, turn: _LoadTurn) -> str:
        return self._lines[(turn.place + turn.said) % len(self._lines)]

    async def _sent(self, said: Sequence[tuple[str, str]]) -> None:
        began = self._now()
        async for sent in self._system.send_many(said):
            self._news.put_nowait((sent, self._now() - began))

    async def _later(self, turn: _LoadTurn, seconds: float) -> None:
        await self._sleep(seconds)
        self._news.put_nowait(turn)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._news.put_nowait(error)

    def _take(self, news: _LoadEvent) -> None:
        """Handle one outcome, or an agent that is ready again. Raise the error that ended a whole batch."""
        if isinstance(news, BaseException):
            raise news
        if isinstance(news, _LoadTurn):
            self._ready.append(news)
            return
        sent, took_us = news
        self._under_way -= 1
        turn = self._turns[sent.agent_id]
        self.tally.record_outcome(sent)
        again = retry_after_s(sent.error)
        if again is not None and turn.tries < RETRIES_MAX:
            turn.tries += 1
            self.tally.retried += 1
            self._spawn(self._later(turn, again))
            return
        if sent.error is None:
            self.tally.answered += 1
            self.tally.latencies_us.append(took_us)
        else:
            self.tally.fault(sent.error)
        self._send_next(turn)

    def _send_next(self, turn: _LoadTurn) -> None:
        self._done += 1
        turn.said += 1
        turn.tries = 0
        if turn.said < self._messages:
            self._ready.append(turn)
        else:
            self._open -= 1


async def make(
    system: AgentSystem,
    names: Sequence[str],
    settings: Settings,
    *,
    at_once: int,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    moved: Progress = lambda _done, _total: None,
) -> list[SendOutcome]:
    """Create the agents that do not exist and open the others, `at_once` of them together; retry rejected ones.

    Return the outcomes of those that could not be opened.
    """
    failed: list[SendOutcome] = []
    left, tries, done = deque(names), 0, 0
    while left:
        refused: list[SendOutcome] = []
        async for sent in system.create_many([left.popleft() for _ in range(min(at_once, len(left)))], settings):
            if retry_after_s(sent.error) is not None and tries < RETRIES_MAX:
                refused.append(sent)
                continue
            failed += [sent] if sent.error is not None else []
            done += 1
            moved(done, len(names))
        if refused:
            tries += 1
            left.extendleft(sent.agent_id for sent in refused)
            await sleep(max(retry_after_s(sent.error) or 0 for sent in refused))
    return failed


class LoadCheck(msgspec.Struct, frozen=True):
    """Counts of the inputs of a load in the logs."""

    acknowledged: int
    lost: int
    """Acknowledged inputs that are in no log, or whose turn did not end."""
    doubled: int
    """Inputs that are in the logs more than once."""
    unanswered: int
    """Inputs whose turn ended without a message of the agent."""


def logs_of(store: FileStore, names: Sequence[str]) -> Iterator[str]:
    """Return the partitions that may hold records of these agents: all shared ones, and their own."""
    own = {partition_of(name) for name in names}
    return (partition for partition in store.partitions() if partition in own or is_shared(partition))


def check(store: FileStore, names: Sequence[str], event_ids: Sequence[str]) -> LoadCheck:
    """Look up the inputs in the logs. Raises StoreError."""
    logs = (PartitionReader(store.partition(partition)) for partition in logs_of(store, names))
    found = list(input_outcomes(logs, event_ids).values())
    return LoadCheck(
        acknowledged=len(event_ids),
        lost=sum(fate.lost for fate in found),
        doubled=sum(fate.times > 1 for fate in found) + len(event_ids) - len(found),
        unanswered=sum(not fate.answered and not fate.lost for fate in found),
    )


def store_bytes(store: FileStore, names: Sequence[str]) -> int:
    """Return the size of all files in the partitions that may hold these agents, in bytes."""
    folders = [store.partition(partition).path for partition in logs_of(store, names)]
    with storage("measure the logs in", store.root):
        return sum(_size(store.disk, folder / name) for folder in folders for name in store.disk.names(folder))


def _size(disk: Disk, path: Path) -> int:
    try:
        return disk.size(path)
    except FileNotFoundError:  # sealing or cleaning removed it meanwhile
        return 0
