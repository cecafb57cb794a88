"""The journal of many agents around one log: what waits is committed, projected and queried together, in ticks.

A tick: all waiting appends become one group, one frame and one sync, in a thread, while the agents of the tick before
go on; one transaction takes the group into the projections; one query for each projection answers all who wait for
rows. No row is read before that transaction, so everyone reads their own writes. An agent alone is a tick of one.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from itertools import groupby
from operator import attrgetter
from typing import Any

import duckdb
import msgspec

from everlog.actors.hosting.metrics import ProcessMetrics
from everlog.actors.ports.agent_constants import SHARD_MEMORY_MB
from everlog.actors.ports.effects import ThreadRunner
from everlog.events import (
    INPUTS,
    BadInput,
    Draft,
    EverlogError,
    Fenced,
    HostLost,
    ModelReply,
    Moved,
    Record,
    StoreError,
)
from everlog.projections import HEAD, Projections, Rows, activate, activate_many
from everlog.store import Append, Commit, FileLog, LogReader


class TickCounts:
    """What ticks have done since the process began; each log that is opened goes on counting."""

    def __init__(self) -> None:
        self.ticks = 0
        self.commits = 0
        self.inputs = 0
        """Those that opened a turn."""
        self.model_calls = 0

    def add(self, commits: int, records: Sequence[Record]) -> None:
        """A tick committed that."""
        self.ticks += 1
        self.commits += commits
        for record in records:
            if not record.turn:  # what agents begin with
                continue
            if record.type == ModelReply.kind:
                self.model_calls += 1
            elif record.type in INPUTS and not record.step:
                self.inputs += 1


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


class ShardJournal:
    """One partition with its engine. A Journal for each of its agents that has a seat."""

    def __init__(
        self,
        log: FileLog,
        *,
        aside: ThreadRunner,
        on_lost: Callable[[EverlogError], None],
        counts: TickCounts,
        meters: ProcessMetrics,
    ) -> None:
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
        self._over: set[str] = set()
        """Agents that commit nothing more before they have left: they were deleted, or do not know their head."""
        self._readers: dict[str, LogReader] = {}
        """Of agents that have come from other partitions."""
        self._taken: list[asyncio.Future[Any]] = []
        """What the tick that runs will set."""
        self._task: asyncio.Task[None] | None = None

    async def enter(self, agent_id: str, reader: LogReader | None = None) -> int:
        """Take an agent into the projections; the seq of its last record. Raises StoreError.

        `reader`: of one that has come from other partitions, and was not always in this log.
        """
        if reader is not None:
            self._readers[agent_id] = reader
        began = asyncio.get_running_loop().time()
        seated: asyncio.Future[int] = self._future()
        self._entering.append((agent_id, seated))
        try:
            head = await seated
        except asyncio.CancelledError:  # it may have been taken in already
            self.leave(agent_id)
            raise
        self._meters.activated(asyncio.get_running_loop().time() - began)
        return head

    def leave(self, agent_id: str) -> None:
        """Drop what the projections hold of an agent."""
        self._over.discard(agent_id)
        self._readers.pop(agent_id, None)
        if self._lost is None:
            self._leaving.append(agent_id)
            self._wake()

    async def commit(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append durably, then project: when this returns, `rows` sees the records. Raises EverlogError; HostLost where
        the agent has to be opened anew first.
        """
        if agent_id in self._over:
            raise HostLost(f"{agent_id!r} was let go of meanwhile. What it acknowledged is in the log.")
        done: asyncio.Future[Commit] = self._future()
        self._appends.append((Append(agent_id, expected_seq, drafts), done))
        try:
            commit = await done
        except asyncio.CancelledError:  # nobody heard whether it was kept
            self._over.add(agent_id)
            raise
        if any(draft.type == "agent_deleted" for draft in drafts):
            self._over.add(agent_id)
        return commit

    async def rows(self, name: str, agent_id: str, as_of: int) -> Rows:
        """Rows of a projection as of a seq, inclusive."""
        answer: asyncio.Future[Rows] = self._future()
        self._asks.append(_Ask(name, agent_id, as_of, answer))
        return await answer

    def read(self, agent_id: str, from_seq: int) -> Iterator[Record]:
        """The agent's records from a seq (inclusive) on, in order."""
        return self._reader(agent_id).read(agent_id, from_seq)

    def seq_at(self, agent_id: str, time: int) -> int:
        """The agent's last seq that was recorded up to a time (microseconds UTC, inclusive); 0 for none."""
        return self._reader(agent_id).seq_at(agent_id, time)

    async def close(self) -> None:
        """Finish the tick that runs, refuse what comes after it, and give the log up."""
        self.lose(HostLost(f"{self.log.partition} was let go of. What was acknowledged is in its log."))
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
        bug = None if task.cancelled() else task.exception()
        if bug is None and not task.cancelled():
            return
        for waiting in self._taken + self._waiting():
            if not waiting.done():
                waiting.set_exception(self._gone() if bug is None or isinstance(bug, duckdb.Error) else bug)
        self._appends, self._asks, self._entering = [], [], []

    def _waiting(self) -> "list[asyncio.Future[Any]]":
        waits: list[asyncio.Future[Any]] = [done for _, done in self._appends]
        return waits + [ask.rows for ask in self._asks] + [seated for _, seated in self._entering]

    def lose(self, error: EverlogError) -> None:
        """The log can no longer be written. Idempotent."""
        if self._lost is None:
            self._lost = error
            self._on_lost(error)

    async def _run(self) -> None:
        """Tick as long as anybody waits. What is not finished leaves an engine that must not be used again."""
        finished = False
        try:
            while self._appends or self._asks or self._entering or self._leaving:
                await self._tick()
                await asyncio.sleep(0)  # who was answered goes on, and asks for more
            finished = True
        except asyncio.CancelledError:  # the end of the loop: nobody is to open anything
            self._lost = self._lost or HostLost("it was interrupted")
            raise
        finally:
            if not finished:
                self.lose(HostLost(f"its work has ended: {sys.exception()!r}"))

    async def _tick(self) -> None:
        appends = [one for one in self._appends if not one[1].done()]  # who was cancelled sits here no more, perhaps
        self._appends = []
        self._taken = [done for _, done in appends]
        if appends:
            await self._commit(appends)
        self._taken = self._waiting()
        self._admit_joining()
        asks, self._asks = self._asks, []
        self._answer(asks)

    async def _commit(self, appends: Sequence[tuple[Append, asyncio.Future[Commit]]]) -> None:
        """One group: made durable beside, then projected here, then acknowledged."""
        began = asyncio.get_running_loop().time()
        try:
            if self._lost is not None:
                raise self._gone()
            results = await self._durable([append for append, _ in appends])
        except (StoreError, HostLost) as error:
            self.lose(error)
            results = [self._gone() if isinstance(error, Fenced) else copy(error) for _ in appends]
        commits = [result for result in results if isinstance(result, Commit) and not result.repeated]
        records = [record for commit in commits for record in commit.records]
        self._meters.ticked(len(commits), asyncio.get_running_loop().time() - began)
        self._counts.add(len(commits), records)
        try:
            self._project(records)
        finally:  # what is on disk is acknowledged, whatever becomes of the engine
            for (_, done), result in zip(appends, results, strict=True):
                _resolve(done, result)

    async def _durable(self, appends: Sequence[Append]) -> Sequence[Commit | EverlogError]:
        """The results of appends. Raises StoreError where all of them failed."""
        try:
            return await self._aside(self.log.append_group, appends)
        except BadInput as error:
            if len(appends) == 1:
                return [error]
        half = len(appends) // 2  # one has a wrong shape, and nothing was written: the others do not suffer
        return [*await self._durable(appends[:half]), *await self._durable(appends[half:])]

    def _project(self, records: Sequence[Record]) -> None:
        """Take records in. The acknowledgement stands: if it fails, their agents are built again from the log."""
        try:
            self.projections.add(records)
        except duckdb.Error:
            for agent_id in {record.agent_id for record in records}:
                self.projections.forget(agent_id)
                activate(self.projections, self._reader(agent_id), agent_id)

    def _admit_joining(self) -> None:
        """Take in who comes, after who has left."""
        leaving, self._leaving = self._leaving, []
        if leaving:
            self.projections.forget_many(leaving)
        entering = [one for one in self._entering if not one[1].done()]
        self._entering = []
        if self._lost is not None:
            for _, seated in entering:
                _resolve(seated, self._gone())
        elif entering:
            self._activate(entering)

    def _reader(self, agent_id: str) -> LogReader:
        return self._readers.get(agent_id, self.log)

    def _activate(self, entering: "Sequence[tuple[str, asyncio.Future[int]]]") -> None:
        """Take agents in together; where the log is damaged, one by one, so that it is seen whose records are."""
        agents = dict.fromkeys(agent_id for agent_id, _ in entering)
        try:
            activate_many(self.projections, self.log, [agent for agent in agents if agent not in self._readers])
            for agent_id in agents.keys() & self._readers.keys():
                activate(self.projections, self._readers[agent_id], agent_id)
        except (EverlogError, duckdb.Error) as error:
            if len(entering) == 1:
                agent_id, seated = entering[0]
                _resolve(seated, self._unknown(agent_id, error))
            else:
                for one in entering:
                    self._activate([one])
        else:
            for agent_id, seated in entering:
                _resolve(seated, self.log.head(agent_id).seq)

    def _answer(self, asks: Sequence[_Ask]) -> None:
        """One query for each kind of ask."""
        for (name, _), group in groupby(sorted(asks, key=attrgetter("kind")), key=attrgetter("kind")):
            self._answer_alike(name, list(group))

    def _answer_alike(self, name: str, asks: Sequence[_Ask]) -> None:
        """One query; where it fails, one for each, so that it is seen for whom."""
        try:
            answers = self.projections.answers(name, [(ask.agent_id, ask.as_of) for ask in asks])
        except (EverlogError, duckdb.Error) as error:
            if len(asks) == 1:
                _resolve(asks[0].rows, self._unknown(asks[0].agent_id, error))
            else:
                for ask in asks:
                    self._answer_alike(name, [ask])
        else:
            for ask, rows in zip(asks, answers, strict=True):
                _resolve(ask.rows, rows)

    def _unknown(self, agent_id: str, error: Exception) -> EverlogError:
        """Why nothing can be said of one agent. Raises duckdb.Error where the engine is broken for all of them."""
        if isinstance(error, EverlogError):  # the log is damaged where its records are
            return error
        self.projections.execute("SELECT 1")
        return StoreError(f"What the records of {agent_id!r} mean cannot be told; they are all in its log. {error}")


def _resolve(waiting: "asyncio.Future[Any]", result: object) -> None:
    """Tell who waits, if they still do."""
    if waiting.done():
        return
    if isinstance(result, Moved):
        result = HostLost(str(result))  # it is asked again where the agent is now
    if isinstance(result, EverlogError):
        waiting.set_exception(result)
    else:
        waiting.set_result(result)
