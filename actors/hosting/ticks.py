"""The journal of many agents around one log: what waits is committed, projected and queried together, in ticks.

A tick: all waiting appends become one group, one frame and one sync, in a thread, while the agents of the tick before
go on; one transaction takes the group into the projections; one query for each projection answers all who wait for
rows. No row is read before that transaction, so everyone reads their own writes. An agent alone is a tick of one.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from copy import copy
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol

import duckdb
import msgspec

from actors.constants import SHARD_MEMORY_MB
from events import BadInput, Draft, EverlogError, HostLost, Record, StoreError
from projections import HEAD, Projections, Rows, activate, activate_many
from store import Append, Commit, FileLog

from .meters import Meters

_KIND = attrgetter("type")


class Aside(Protocol):
    """Runs what takes long beside the event loop: `asyncio.to_thread`, or in place where a test says so."""

    def __call__(self, work: Callable[..., Any], /, *arguments: Any) -> Awaitable[Any]: ...


class Counts:
    """What ticks have done since the process began; each log that is opened goes on counting."""

    def __init__(self) -> None:
        self.ticks = 0
        self.commits = 0
        self.records: Counter[str] = Counter()
        """By kind."""


class _Ask(msgspec.Struct):
    """Somebody waits for rows."""

    name: str
    agent_id: str
    as_of: int
    rows: "asyncio.Future[Rows]"

    @property
    def kind(self) -> tuple[str, bool]:
        """Asks of one kind can be one query."""
        return self.name, self.as_of == HEAD


class Ticks:
    """One partition with its engine. A Journal for each of its agents that has a seat."""

    def __init__(self, log: FileLog, *, aside: Aside, on_lost: Callable[[EverlogError], None], counts: Counts,
                 meters: Meters) -> None:  # fmt: skip
        """`on_lost` is told when the log can no longer be written: it is opened anew, by this process or another."""
        self._meters = meters
        self.log = log
        self.projections = Projections(memory_mb=SHARD_MEMORY_MB)
        self._counts = counts
        self._aside = aside
        self._on_lost = on_lost
        self._lost: EverlogError | None = None
        self._appends: list[tuple[Append, asyncio.Future[Commit]]] = []
        self._asks: list[_Ask] = []
        self._entering: list[tuple[str, asyncio.Future[int]]] = []
        self._leaving: list[str] = []
        self._taken: list[asyncio.Future[Any]] = []
        """What the tick that runs will set."""
        self._task: asyncio.Task[None] | None = None

    async def enter(self, agent_id: str) -> int:
        """Take an agent into the projections; the seq of its last record. Raises StoreError."""
        began = asyncio.get_running_loop().time()
        seated: asyncio.Future[int] = self._future()
        self._entering.append((agent_id, seated))
        head = await seated
        self._meters.activated(asyncio.get_running_loop().time() - began)
        return head

    def leave(self, agent_id: str) -> None:
        """Drop what the projections hold of an agent."""
        if self._lost is None:
            self._leaving.append(agent_id)
            self._wake()

    async def commit(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append durably, then project: when this returns, `rows` sees the records."""
        done: asyncio.Future[Commit] = self._future()
        self._appends.append((Append(agent_id, expected_seq, drafts), done))
        return await done

    async def rows(self, name: str, agent_id: str, as_of: int) -> Rows:
        """Rows of a projection as of a seq, inclusive."""
        answer: asyncio.Future[Rows] = self._future()
        self._asks.append(_Ask(name, agent_id, as_of, answer))
        return await answer

    def read(self, agent_id: str, from_seq: int) -> Iterator[Record]:
        """The agent's records from a seq (inclusive) on, in order."""
        return self.log.read(agent_id, from_seq)

    async def close(self) -> None:
        """Finish the tick that runs, refuse what comes after it, and give the log up."""
        self._lose(HostLost(f"{self.log.partition} was let go of. What was acknowledged is in its log."))
        if self._task is not None:
            await asyncio.wait([self._task])
        self.projections.close()
        await self._aside(self.log.close)

    def _future(self) -> "asyncio.Future[Any]":
        """What the next tick will set. Raises HostLost where there is none."""
        if self._lost is not None:
            raise self._gone()
        self._wake()
        return asyncio.get_running_loop().create_future()

    def _gone(self) -> HostLost:
        return HostLost(f"{self.log.partition} is opened anew ({self._lost}). What was acknowledged is in its log.")

    def _wake(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """If a bug has ended it, or the end of the loop, all who wait hear of it."""
        interrupted = task.cancelled()
        error = None if interrupted else task.exception()
        if interrupted or error is not None:
            for waiting in self._taken + self._waiting():
                if not waiting.done():
                    waiting.set_exception(error or HostLost(f"{self.log.partition} was interrupted."))

    def _waiting(self) -> "list[asyncio.Future[Any]]":
        waits: list[asyncio.Future[Any]] = [done for _, done in self._appends]
        return waits + [ask.rows for ask in self._asks] + [seated for _, seated in self._entering]

    def _lose(self, error: EverlogError) -> None:
        """The log can no longer be written."""
        if self._lost is None:
            self._lost = error
            self._on_lost(error)

    async def _run(self) -> None:
        while self._appends or self._asks or self._entering or self._leaving:
            appends, self._appends = self._appends, []
            self._taken = [done for _, done in appends]
            if appends:
                await self._commit(appends)
            self._taken = self._waiting()
            self._seat()
            asks, self._asks = self._asks, []
            self._answer(asks)
            await asyncio.sleep(0)  # who was answered goes on, and asks for more

    async def _commit(self, appends: Sequence[tuple[Append, asyncio.Future[Commit]]]) -> None:
        """One group: made durable beside, then projected here, then acknowledged."""
        began = asyncio.get_running_loop().time()
        try:
            if self._lost is not None:
                raise self._gone()
            results = await self._durable([append for append, _ in appends])
        except (StoreError, HostLost) as error:
            self._lose(error)
            results = [copy(error) for _ in appends]
        commits = [result for result in results if isinstance(result, Commit) and not result.repeated]
        records = [record for commit in commits for record in commit.records]
        self._meters.ticked(len(commits), asyncio.get_running_loop().time() - began)
        self._counts.ticks += 1
        self._counts.commits += len(commits)
        self._counts.records.update(map(_KIND, records))
        self._project(records)
        for (_, done), result in zip(appends, results, strict=True):
            _settle(done, result)

    async def _durable(self, appends: Sequence[Append]) -> Sequence[Commit | EverlogError]:
        """The results of appends. Raises StoreError where all of them failed."""
        try:
            return await self._aside(self.log.append_group, appends)
        except BadInput as error:
            if len(appends) == 1:
                return [error]
        each = [await self._durable([append]) for append in appends]  # one has a wrong shape: the others do not suffer
        return [result for results in each for result in results]

    def _project(self, records: Sequence[Record]) -> None:
        """Take records in. The acknowledgement stands: if it fails, their agents are built again from the log."""
        try:
            self.projections.add(records)
        except duckdb.Error:
            for agent_id in {record.agent_id for record in records}:
                self.projections.forget(agent_id)
                activate(self.projections, self.log, agent_id)

    def _seat(self) -> None:
        """Take in who comes, after who has left."""
        leaving, self._leaving = self._leaving, []
        if leaving:
            self.projections.forget_many(leaving)
        entering, self._entering = self._entering, []
        if entering:
            self._activate(entering)

    def _activate(self, entering: "Sequence[tuple[str, asyncio.Future[int]]]") -> None:
        """Take agents in together; where the log is damaged, one by one, so that it is seen whose records are."""
        try:
            activate_many(self.projections, self.log, list(dict.fromkeys(agent_id for agent_id, _ in entering)))
        except EverlogError as error:
            if len(entering) == 1:
                _settle(entering[0][1], error)
            else:
                for one in entering:
                    self._activate([one])
        else:
            for agent_id, seated in entering:
                _settle(seated, self.log.head(agent_id).seq)

    def _answer(self, asks: Sequence[_Ask]) -> None:
        """One query for each kind of ask."""
        for (name, _), group in groupby(sorted(asks, key=attrgetter("kind")), key=attrgetter("kind")):
            together = list(group)
            answers = self.projections.answers(name, [(ask.agent_id, ask.as_of) for ask in together])
            for ask, rows in zip(together, answers, strict=True):
                _settle(ask.rows, rows)


def _settle(waiting: "asyncio.Future[Any]", result: object) -> None:
    """Tell who waits, if they still do."""
    if waiting.done():
        return
    if isinstance(result, EverlogError):
        waiting.set_exception(result)
    else:
        waiting.set_result(result)
