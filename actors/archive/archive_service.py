"""The archive, served: what hosts and commands ask of the index, one thing after the other in a thread of its own.

It follows the logs by itself, now and then, and those of an agent whenever that agent is asked for: whatever was
durable when a question came counts in the answer. Nobody pushes anything to it, so nothing can be lost on the way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Literal, Protocol

import msgspec

from everlog.actors.ports.agent_constants import FOLLOW_AT_ONCE, FOLLOW_S, FOLLOW_S_MAX, MEANING_S, SEARCH_S, SPARE_S
from everlog.actors.ports.effects import Hit, Page
from everlog.events import ArchiveDown, ArchiveError, StoreError, UnknownAgent
from everlog.store import ArchiveQuery, stream_of


class MeaningQuery(msgspec.Struct, frozen=True):
    """Asks how near in meaning an agent's messages come to a query; see `effects.Archive.meanings`."""

    agent_id: str
    query: str
    said_by: int


ArchiveRequest = ArchiveQuery | MeaningQuery
ArchiveResponse = Page | Mapping[int, float] | ArchiveDown
"""An error is a value, so that one question that fails leaves the others alone."""


class LogSource(Protocol):
    """What is followed: a store."""

    def partitions(self) -> Sequence[str]: ...

    def route(self, agent_id: str) -> Sequence[str]: ...

    def parent_of(self, agent_id: str) -> tuple[str, int] | None: ...


def places(store: LogSource, stream: str) -> Iterator[str]:
    """The partitions that a stream was in, and those that its ancestors were in. Raises UnknownAgent."""
    above: tuple[str, int] | None = (stream, 0)
    while above is not None:
        yield from store.route(above[0])
        above = store.parent_of(above[0])


class SearchIndex(Protocol):
    """What is served: `everlog.store.archive.Archive`."""

    def follow(self, partitions: Iterable[str] | None = None) -> Any: ...

    def search(self, wanted: ArchiveQuery) -> Any: ...

    def meanings(self, agent_id: str, query: str, said_by: int) -> dict[int, float]: ...

    def status(self) -> Any: ...

    def close(self) -> None: ...


class ArchiveService:
    """Serves one index to any number of callers of one event loop."""

    def __init__(
        self,
        open_index: Callable[[], SearchIndex],
        store: LogSource,
        *,
        note: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`open_index` is called when something is first asked, in the thread: it may take seconds. `note` is told
        what a person should know.
        """
        self._open_index = open_index
        self._store = store
        self._note = note
        self._sleep = sleep
        self._index: SearchIndex | None = None
        self._thread = ThreadPoolExecutor(1, "archive")
        self._following: asyncio.Task[None] | None = None
        self._noted = ""
        self._closed = False
        self._waiting: list[tuple[Sequence[ArchiveRequest], asyncio.Future[list[ArchiveResponse]]]] = []
        self._answering: asyncio.Task[None] | None = None

    @property
    def open(self) -> bool:
        """Whether the index has been opened."""
        return self._index is not None

    async def ask(self, question: ArchiveRequest) -> Any:
        """The answer. Raises ArchiveDown where there is none."""
        (answered,) = await self.ask_many([question])
        if isinstance(answered, ArchiveDown):
            raise answered
        return answered

    async def ask_many(self, questions: Sequence[ArchiveRequest]) -> list[ArchiveResponse]:
        """An answer for each question, in order. What is asked while others are answered is answered together."""
        answers: asyncio.Future[list[ArchiveResponse]] = asyncio.get_running_loop().create_future()
        self._waiting.append((questions, answers))
        if self._answering is None or self._answering.done():
            self._answering = asyncio.get_running_loop().create_task(self._answer_all())
        return await answers

    async def _answer_all(self) -> None:
        """Answer all that wait, and what comes meanwhile, until nobody waits."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            questions = [question for some, _ in waiting for question in some]
            work = self._run(partial(self._answers, questions))
            outcome: list[ArchiveResponse] | BaseException
            (outcome,) = await asyncio.gather(work, return_exceptions=True)
            first = 0
            for some, answers in waiting:
                if answers.done():  # whoever asked has gone away
                    pass
                elif isinstance(outcome, BaseException):
                    answers.set_exception(outcome)
                else:
                    answers.set_result(outcome[first : first + len(some)])
                first += len(some)

    async def status(self) -> Any:
        """How far the index is. Raises ArchiveDown."""
        return await self._run(lambda: self._opened().status())

    def begin(self) -> None:
        """Open the index, and follow the logs from now on."""
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._follow())
            self._following.add_done_callback(self._stopped)

    def _stopped(self, following: asyncio.Task[None]) -> None:
        """Nobody awaits the task: what ended it, a bug of ours, is to be heard of. Questions follow by themselves."""
        if not following.cancelled() and (error := following.exception()) is not None:
            self._following = None
            self._note(f"the archive follows the logs no more by itself, which is a bug: {error!r}")

    async def close(self) -> None:
        """Let go of the index. Idempotent."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            await asyncio.wait([following])
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close_index)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _follow(self) -> None:
        """Now and then, rarely where nothing happens; a few logs at a time, so that questions come in between."""
        pause = FOLLOW_S
        while True:
            found = 0
            names: Sequence[str] = ()
            with suppress(ArchiveDown):
                names = await self._run(self._store.partitions)
            for first in range(0, len(names), FOLLOW_AT_ONCE):
                with suppress(ArchiveDown):  # one log that cannot be read holds up no other
                    some = names[first : first + FOLLOW_AT_ONCE]
                    found += (await self._run(partial(self._followed, some))).commits
            pause = FOLLOW_S if found else min(2 * pause, FOLLOW_S_MAX)
            await self._sleep(pause)

    def _followed(self, partitions: Iterable[str]) -> Any:
        return self._opened().follow(partitions)

    async def _run(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(self._understood, work))

    def _understood(self, work: Callable[[], Any]) -> Any:
        """What `work` gives. What keeps the index from answering is noted, once, and raised as ArchiveDown."""
        try:
            return work()
        except ArchiveDown:
            raise
        except (ArchiveError, StoreError, OSError, MemoryError) as error:
            if str(error) != self._noted:
                self._noted = str(error)
                self._note(f"the archive does not answer, and searches go by words alone: {error}")
            if isinstance(error, ArchiveError):
                self._close_index()  # another process may have made it anew, with another embedder even
            raise ArchiveDown(str(error)) from error

    def _opened(self) -> SearchIndex:
        if self._index is None:
            self._index = self._open_index()
        return self._index

    def _close_index(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()

    def _answers(self, questions: Sequence[ArchiveRequest]) -> list[ArchiveResponse]:
        """An answer for each. What their logs have new is taken in at once; where that fails, for each by itself."""
        taken_in = False
        if len(questions) > 1:
            with suppress(ArchiveDown):
                self._understood(lambda: self._followed(set().union(*map(self._partitions, questions))))
                taken_in = True
        return [self._answer(question, taken_in=taken_in) for question in questions]

    def _partitions(self, question: ArchiveRequest) -> set[str]:
        """Where all that the question is about is written down. What was said a moment ago is found by its words:
        nobody waits for its vector where the logs are followed anyway.
        """
        if isinstance(question, MeaningQuery):
            streams = {question.agent_id} if self._following is None else set()
        else:
            streams = {question.agent_id, *map(stream_of, question.sources)}
        found: set[str] = set()
        for stream in streams:
            with suppress(UnknownAgent):  # a source that was never loaded into
                found.update(places(self._store, stream))
        return found

    def _answer(self, question: ArchiveRequest, *, taken_in: bool) -> ArchiveResponse:
        try:
            return self._understood(partial(self._asked, question, taken_in=taken_in))
        except ArchiveDown as error:
            return error

    def _asked(self, question: ArchiveRequest, *, taken_in: bool) -> ArchiveResponse:
        index = self._opened()
        if not taken_in:
            index.follow(self._partitions(question))
        return _answer(index, question)


def _answer(index: SearchIndex, question: ArchiveRequest) -> ArchiveResponse:
    if isinstance(question, MeaningQuery):
        return index.meanings(question.agent_id, question.query, question.said_by)
    return _page(index, question)


def _page(index: SearchIndex, wanted: ArchiveQuery) -> Page:
    found = index.search(wanted)
    hits = [
        Hit(
            seq=row.seq, time=row.time, role="archival", name="", text=row.text, ref=row.memory, score=row.score,
            tags=row.tags, source=row.source, document=row.document, part=row.part, parts=row.parts,
        )
        for row in found.results
    ]  # fmt: skip
    pages = -(-found.total // wanted.count)
    return Page(found.total, wanted.first // wanted.count, pages, hits, by_meaning=found.by_meaning)


WaitPolicy = Literal["wait", "begin", "spare"]
"""What a search does that could go by words alone, while the archive of its process is not open: it waits, has it
opened for those that come later, or leaves it closed, in a process that ends at once.
"""


class LocalArchiveClient:
    """The archive of a process that runs agents by itself. See `effects.Archive`.

    Opening takes seconds. A search in archival memory waits for it; what can do without goes by words alone meanwhile.
    """

    def __init__(self, archivist: ArchiveService, patience: WaitPolicy) -> None:
        self._archivist = archivist
        self._patience = patience

    async def search(self, wanted: ArchiveQuery) -> Page:
        """What was kept, best match first."""
        page: Page = await self._archivist.ask(wanted)
        return page

    async def meanings(self, agent_id: str, query: str, said_by: int) -> Mapping[int, float]:
        """How near in meaning each message comes to the query."""
        self._spare()
        found: Mapping[int, float] = await self._archivist.ask(MeaningQuery(agent_id, query, said_by))
        return found

    def _spare(self) -> None:
        """Raises ArchiveDown where whoever asks can do without, and nobody has opened the archive yet."""
        if self._archivist.open or self._patience == "wait":
            return
        if self._patience == "begin":
            self._archivist.begin()
        raise ArchiveDown("the archive of this process is not open yet")

    async def close(self) -> None:
        """Let go of it. Idempotent."""
        await self._archivist.close()


class ClusterArchiveClient:
    """The way from a host to the archive of its cluster. What is asked in the same moment is one call.

    See `effects.Archive`. Where no answer comes in time the caller goes on without.
    """

    def __init__(self, send: Callable[[Sequence[ArchiveRequest]], Awaitable[Sequence[ArchiveResponse]]]) -> None:
        """`send` raises ArchiveDown where nobody is there."""
        self._send = send
        self._waiting: list[tuple[ArchiveRequest, asyncio.Future[Any]]] = []
        self._calls: set[asyncio.Task[None]] = set()
        self._asks_again = 0.0
        """When, on the clock of the loop, what can do without is asked again, after nobody answered."""

    async def search(self, wanted: ArchiveQuery) -> Page:
        """What was kept, best match first."""
        page: Page = await self._ask(wanted, SEARCH_S)
        return page

    async def meanings(self, agent_id: str, query: str, said_by: int) -> Mapping[int, float]:
        """How near in meaning each message comes to the query."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._asks_again:
            raise ArchiveDown("the archive gave no answer a moment ago")
        try:
            found: Mapping[int, float] = await self._ask(MeaningQuery(agent_id, query, said_by), MEANING_S)
        except ArchiveDown:
            self._asks_again = loop.time() + SPARE_S
            raise
        return found

    async def _ask(self, question: ArchiveRequest, wait_s: float) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._begin)
        self._waiting.append((question, answer))
        try:
            return await asyncio.wait_for(answer, wait_s)
        except TimeoutError:
            raise ArchiveDown(f"the archive gave no answer in {wait_s} seconds") from None

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, []
        call = asyncio.get_running_loop().create_task(self._call(waiting))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _call(self, waiting: "Sequence[tuple[ArchiveRequest, asyncio.Future[Any]]]") -> None:
        """One call for all that wait."""
        try:
            answers = await self._send([question for question, _ in waiting])
        except ArchiveDown as error:
            answers = [error] * len(waiting)
        for (_, future), answered in zip(waiting, answers, strict=True):
            if future.done():
                continue
            if isinstance(answered, ArchiveDown):
                future.set_exception(answered)
            else:
                future.set_result(answered)
