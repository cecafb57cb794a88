"""Group the commits, projections and queries of many agents around one log, in ticks.

Used by `Shard`, and by agents of a shard through `ShardActivation`.

One tick: all waiting appends become one group, one frame and one sync, in a thread, while the agents of the previous
tick continue; one transaction adds the group to the projections; one query for each projection answers the requests for
rows of up to ANSWERS_AT_ONCE agents. No row is read before that transaction, so every agent reads its own writes.
Contexts and talks in memory have the same records, and need no tick. A single agent is a tick of one.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from everlog.actors.hosting.metrics import ProcessMetrics, TickCounts
from everlog.actors.ports.agent_constants import SHARD_MEMORY_MB
from everlog.actors.ports.effects import ThreadRunner
from everlog.events import (
    BadInput,
    Draft,
    EverlogError,
    Fenced,
    HostLost,
    Moved,
    Record,
    StoreError,
)
from everlog.projections import HEAD, KeptRows, Projections, Rows, Wanted, activate, activate_many, read_talks
from everlog.projections.projection_constants import HISTORY_BYTES_MAX
from everlog.store import Append, Commit, FileLog, LogReader, repeated_elsewhere

if TYPE_CHECKING:
    from everlog.projections.search.talk_index import TalkView

TALK = "talk"
"""Name of the requests for talks, among the names of projections."""


ANSWERS_AT_ONCE = 128
"""Maximum requests that one query answers. An answer takes about 40 kB of objects until its agent has made a request of
it, so the agents of one portion do that before the next portion is read.
"""


class _Ask(msgspec.Struct):
    """Request for the rows of a projection, or for a talk; `rows` is resolved by a tick."""

    name: str
    wanted: Wanted
    rows: "asyncio.Future[Any]"

    @property
    def kind(self) -> tuple[str, bool, int]:
        """Key of the requests that one query can answer."""
        return self.name, self.wanted[1] == HEAD, len(self.wanted)


class ShardJournal:
    """One partition and its engine: the journal of each of its activated agents."""

    def __init__(
        self,
        log: FileLog,
        *,
        aside: ThreadRunner,
        on_lost: Callable[[EverlogError], None],
        counts: TickCounts,
        meters: ProcessMetrics,
    ) -> None:
        """Create the journal. `on_lost` is called once when the log can no longer be written: this process or another
        one then opens it again.
        """
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
        """Agents that must not commit before they leave: they were deleted, or the outcome of their last commit is
        unknown.
        """
        self._readers: dict[str, LogReader] = {}
        """Readers of agents that came from other partitions."""
        self._taken: list[asyncio.Future[Any]] = []
        """Futures that the running tick will resolve."""
        self._task: asyncio.Task[None] | None = None

    async def enter(self, agent_id: str, reader: LogReader | None = None) -> int:
        """Add an agent to the projections. Return the seq of its last record. Raises StoreError, HostLost.

        `reader`: for an agent with records in other partitions.
        """
        if reader is not None:
            self._readers[agent_id] = reader
        began = asyncio.get_running_loop().time()
        seated: asyncio.Future[int] = self._future()
        self._entering.append((agent_id, seated))
        try:
            head = await seated
        except asyncio.CancelledError:  # a tick may have added the agent already
            self.leave(agent_id)
            raise
        self._meters.activated(asyncio.get_running_loop().time() - began)
        return head

    def leave(self, agent_id: str) -> None:
        """Drop the rows of an agent from the projections."""
        self._over.discard(agent_id)
        self._readers.pop(agent_id, None)
        if self._lost is None:
            self._leaving.append(agent_id)
            self._wake()

    async def commit(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        """Append durably, then project: when this returns, `rows` sees the records.

        Raises EverlogError; HostLost if the agent must be activated again first.
        """
        if agent_id in self._over:
            raise HostLost(
                f"{agent_id!r} was unloaded before the command finished. Acknowledged events are in the log; send the "
                "command again."
            )
        if agent_id in self._readers and (known := repeated_elsewhere(self._readers[agent_id], drafts)) is not None:
            return known
        done: asyncio.Future[Commit] = self._future()
        self._appends.append((Append(agent_id, expected_seq, drafts), done))
        try:
            commit = await done
        except asyncio.CancelledError:  # the outcome is unknown, so the agent does not know its head any more
            self._over.add(agent_id)
            raise
        if any(draft.type == "agent_deleted" for draft in drafts):
            self._over.add(agent_id)
        return commit

    async def rows(self, name: str, agent_id: str, as_of: int, turn: int | None = None) -> Rows | KeptRows:
        """Return the rows of a projection as of a seq, inclusive. `turn`: the turn of the call whose context is asked
        for; None: no call. Only a context that is not in memory, and rows of others, wait for a tick.
        """
        wanted: Wanted = (agent_id, as_of) if turn is None else (agent_id, as_of, turn)
        known = self.projections.known(name, wanted)
        return await self._asked(name, wanted) if known is None else known

    async def talk(self, agent_id: str, said_by: int) -> "TalkView":
        """Return what the agent had said and heard by a seq, inclusive. Only a talk that is not in memory takes a
        query: one for all agents that wait for the next tick.
        """
        known = self.projections.caches.talks.view(agent_id, said_by)
        return await self._asked(TALK, (agent_id, said_by)) if known is None else known

    async def _asked(self, name: str, wanted: Wanted) -> Any:
        """Return the answer of the next tick."""
        answer = self._future()
        self._asks.append(_Ask(name, wanted, answer))
        return await answer

    def read(self, agent_id: str, from_seq: int) -> Iterator[Record]:
        """Yield the agent's records from a seq (inclusive) on, in order."""
        return self._reader(agent_id).read(agent_id, from_seq)

    def seq_at(self, agent_id: str, time: int) -> int:
        """Return the agent's last seq that was recorded up to a time (microseconds UTC, inclusive); 0 for none."""
        return self._reader(agent_id).seq_at(agent_id, time)

    async def close(self) -> None:
        """Finish the running tick, refuse later requests, and close the log."""
        self.lose(HostLost("it was closed"))
        if self._task is not None:
            await asyncio.wait([self._task])
        self.projections.close()
        await self._aside(self.log.close)

    def _future(self) -> "asyncio.Future[Any]":
        """Return a future that the next tick resolves. Raises HostLost if the log is lost."""
        if self._lost is not None:
            raise self._gone()
        self._wake()
        return asyncio.get_running_loop().create_future()

    def _gone(self) -> HostLost:
        return HostLost(
            f"{self.log.partition} must be opened again ({self._lost}). Acknowledged events are in its log; send the "
            "command again."
        )

    def _wake(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Fail all waiting requests, if a bug or the end of the event loop has ended the task."""
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
        """Declare the log lost: it can no longer be written. Idempotent."""
        if self._lost is None:
            self._lost = error
            self._on_lost(error)

    async def _run(self) -> None:
        """Run ticks while requests wait. An unfinished tick leaves an engine that must not be used again, so the log is
        lost.
        """
        finished = False
        try:
            while self._appends or self._asks or self._entering or self._leaving:
                await self._tick()
                await asyncio.sleep(0)  # answered agents run now, and their next requests join the next tick
            finished = True
        except asyncio.CancelledError:  # the event loop ends: set `_lost` without `on_lost`, which would open the log
            self._lost = self._lost or HostLost("it was interrupted")
            raise
        finally:
            if not finished:
                self.lose(HostLost(f"its work has ended: {sys.exception()!r}"))

    async def _tick(self) -> None:
        # An append whose caller was cancelled is dropped: its agent may have left.
        appends = [one for one in self._appends if not one[1].done()]
        self._appends = []
        self._taken = [done for _, done in appends]
        # The order is the promise: commit and project first, then answer, so that agents read their own writes.
        if appends:
            await self._commit(appends)
        self._taken = self._waiting()
        if self._asks or self._entering:
            self._project(self.projections.flush, ())
        self._admit_joining()
        self._shrink(HISTORY_BYTES_MAX)
        asks, self._asks = self._asks, []
        asks.sort(key=attrgetter("kind"))
        while asks:
            self._answer(asks[:ANSWERS_AT_ONCE])
            del asks[:ANSWERS_AT_ONCE]
            self._taken = [ask.rows for ask in asks]  # a future that is kept would keep its answer
            if asks:
                await asyncio.sleep(0)  # the agents use their answers now

    async def _commit(self, appends: Sequence[tuple[Append, asyncio.Future[Commit]]]) -> None:
        """Append one group durably in a thread, add it to the projections here, then acknowledge it."""
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
            self._project(partial(self.projections.add, records), [record.agent_id for record in records])
        finally:  # durable records are acknowledged, even if the projection fails
            for (_, done), result in zip(appends, results, strict=True):
                _resolve(done, result)

    async def _durable(self, appends: Sequence[Append]) -> Sequence[Commit | EverlogError]:
        """Append a group. Return a Commit or an error for each append. Raises StoreError if all of them failed."""
        try:
            return await self._aside(self.log.append_group, appends)
        except BadInput as error:
            if len(appends) == 1:
                return [error]
        # One append is malformed and nothing was written. Split the group, so that only the malformed append fails.
        half = len(appends) // 2
        return [*await self._durable(appends[:half]), *await self._durable(appends[half:])]

    def _project(self, change: Callable[[], None], agents: Sequence[str]) -> None:
        """Change the projections. If that fails, rebuild `agents`, and all whose records were not inserted, from the
        log: the commits are acknowledged.
        """
        try:
            change()
        except duckdb.Error:
            damaged = sorted({*agents, *self.projections.pending})
            self.projections.forget_many(damaged)
            for agent_id in damaged:
                activate(self.projections, self._reader(agent_id), agent_id)

    def _admit_joining(self) -> None:
        """Drop the agents that left, then activate those that joined."""
        # In this order: an agent that left and joined again between two ticks must end up in the projections.
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

    def _shrink(self, bytes_max: int) -> None:
        """Leave the past of some agents to the log if the projections have more than `bytes_max` bytes of it."""
        if agents := self.projections.surplus(bytes_max):
            readers = {agent_id: self._reader(agent_id) for agent_id in agents}
            self._project(partial(self.projections.shrink, readers), agents)

    def _reader(self, agent_id: str) -> LogReader:
        return self._readers.get(agent_id, self.log)

    def _activate(self, entering: "Sequence[tuple[str, asyncio.Future[int]]]") -> None:
        """Activate agents together; if that fails, one by one, to find the agent whose records are damaged."""
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
        """Answer requests, sorted by kind, with one query for each kind."""
        for (name, *_), group in groupby(asks, key=attrgetter("kind")):
            self._answer_with_one_query(name, list(group))

    def _answer_with_one_query(self, name: str, asks: Sequence[_Ask]) -> None:
        """Answer requests of one kind with one query; if that fails, with one query each, to find the agent at
        fault.
        """
        try:
            read = partial(read_talks, self.projections) if name == TALK else partial(self.projections.answers, name)
            answers = read([ask.wanted for ask in asks])
        except (EverlogError, duckdb.Error) as error:
            if len(asks) == 1:
                _resolve(asks[0].rows, self._unknown(asks[0].wanted[0], error))
            else:
                for ask in asks:
                    self._answer_with_one_query(name, [ask])
        else:
            for ask, rows in zip(asks, answers, strict=True):
                _resolve(ask.rows, rows)

    def _unknown(self, agent_id: str, error: Exception) -> EverlogError:
        """Return the error for one agent whose rows cannot be computed. Raises duckdb.Error if the engine fails for all
        agents.
        """
        if isinstance(error, EverlogError):  # the log is damaged where its records are
            return error
        self.projections.execute("SELECT 1")
        return StoreError(f"The records of {agent_id!r} cannot be projected; all of them are in its log. {error}")


def _resolve(waiting: "asyncio.Future[Any]", result: object) -> None:
    """Resolve a future with a result or an error, unless it is done (its caller was cancelled)."""
    if waiting.done():
        return
    if isinstance(result, Moved):
        result = HostLost(str(result))  # the caller looks the partition up, and sends the command there
    if isinstance(result, EverlogError):
        waiting.set_exception(result)
    else:
        waiting.set_result(result)
