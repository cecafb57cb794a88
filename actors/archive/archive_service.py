"""Serve the archive: answer the searches of hosts and commands from the index, one after the other in a thread.

Used by `open_system` through `archive_index.local_archive`, and by the archive's Ray actor. The index knows no
messages: the clients here compare them in their own process, with `message_meanings.py`.

The service follows the logs periodically, and the logs of an agent before each question about that agent, so that an
answer covers every event that was durable when the question arrived. Nothing is pushed to it, so nothing can be lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from everlog.actors.archive.message_meanings import MessageMeanings
from everlog.actors.archive.reranker import Reranker
from everlog.actors.ports.agent_constants import FOLLOW_LOGS_BATCH, FOLLOW_S, FOLLOW_S_MAX, SEARCH_S
from everlog.actors.ports.effects import Hit, Page
from everlog.events import ArchiveDown, ArchiveError, StoreError, UnknownAgent
from everlog.store import ArchiveQuery, MeaningQuery, SaidMessages, stream_of

if TYPE_CHECKING:
    import numpy as np

    from everlog.projections.search.memory_cache import KnownMemories
    from everlog.store.archive import Matches

ArchiveResponse = Page | ArchiveDown
"""Answer to one question. An error is a value, so that a failed question does not fail the others."""


class LogSource(Protocol):
    """Store whose logs are followed."""

    def partitions(self) -> Sequence[str]: ...

    def route(self, agent_id: str) -> Sequence[str]: ...

    def parent_of(self, agent_id: str) -> tuple[str, int] | None: ...


def places(store: LogSource, stream: str) -> Iterator[str]:
    """Yield the partitions that a stream was in, and those of its ancestors. Raises UnknownAgent."""
    above: tuple[str, int] | None = (stream, 0)
    while above is not None:
        yield from store.route(above[0])
        above = store.parent_of(above[0])


class SearchIndex(Protocol):
    """Index that is served, such as `everlog.store.archive.Archive`."""

    def follow(self, partitions: Iterable[str] | None = None) -> Any: ...

    def search(self, wanted: ArchiveQuery) -> Any: ...

    def rest(self) -> None: ...

    def status(self) -> Any: ...

    def sizes(self) -> Any: ...

    def close(self) -> None: ...


class ArchiveService:
    """Service of one index for any number of callers of one event loop."""

    def __init__(
        self,
        open_index: Callable[[], SearchIndex],
        store: LogSource,
        *,
        note: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Create the service. `open_index` is called in the thread at the first question; it may take seconds. `note`
        gets messages for people.
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
        self._waiting: list[tuple[Sequence[ArchiveQuery], asyncio.Future[list[ArchiveResponse]]]] = []
        self._answering: asyncio.Task[None] | None = None

    async def ask(self, question: ArchiveQuery) -> Any:
        """Return the answer to a question. Raises ArchiveDown if there is none."""
        (answered,) = await self.ask_many([question])
        if isinstance(answered, ArchiveDown):
            raise answered
        return answered

    async def ask_many(self, questions: Sequence[ArchiveQuery]) -> list[ArchiveResponse]:
        """Return an answer for each question, in order. Questions that arrive during an answer are answered
        together.
        """
        answers: asyncio.Future[list[ArchiveResponse]] = asyncio.get_running_loop().create_future()
        self._waiting.append((questions, answers))
        if self._answering is None or self._answering.done():
            self._answering = asyncio.get_running_loop().create_task(self._answer_all())
        return await answers

    async def _answer_all(self) -> None:
        """Answer all waiting questions, and those that arrive meanwhile."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            questions = [question for some, _ in waiting for question in some]
            work = self._run(partial(self._answers, questions))
            outcome: list[ArchiveResponse] | BaseException
            (outcome,) = await asyncio.gather(work, return_exceptions=True)
            first = 0
            for some, answers in waiting:
                if answers.done():  # the caller was cancelled
                    pass
                elif isinstance(outcome, BaseException):
                    answers.set_exception(outcome)
                else:
                    answers.set_result(outcome[first : first + len(some)])
                first += len(some)

    async def status(self) -> Any:
        """Return the figures of the index. Raises ArchiveDown."""
        return await self._run(lambda: self._opened().status())

    async def sizes(self) -> Any:
        """Return the sizes of the index that could grow; None if it is not open. Raises ArchiveDown."""
        return await self._run(lambda: None if self._index is None else self._index.sizes())

    def begin(self) -> None:
        """Open the index, and follow the logs from now on."""
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._follow())
            self._following.add_done_callback(self._stopped)

    def _stopped(self, following: asyncio.Task[None]) -> None:
        """Note the error that ended the following of logs, a bug: no task awaits it. Questions still read the logs they
        need.
        """
        if not following.cancelled() and (error := following.exception()) is not None:
            self._following = None
            self._note(f"the archive follows the logs no more by itself, which is a bug: {error!r}")

    async def close(self) -> None:
        """Close the index. Idempotent."""
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
        """Follow the logs periodically, less often if nothing is new; a few logs at a time, so that questions get
        between. Let the index rest once, when nothing was new for so long that the pause is the longest.
        """
        pause = FOLLOW_S
        rested = False
        while True:
            found = 0
            names: Sequence[str] = ()
            with suppress(ArchiveDown):
                names = await self._run(self._store.partitions)
            for first in range(0, len(names), FOLLOW_LOGS_BATCH):
                with suppress(ArchiveDown):  # an unreadable log does not stop the others
                    some = names[first : first + FOLLOW_LOGS_BATCH]
                    found += (await self._run(partial(self._followed, some))).commits
            if pause == FOLLOW_S_MAX and not (found or rested):
                with suppress(ArchiveDown):
                    await self._run(lambda: self._opened().rest())
                    rested = True
            rested = rested and not found
            pause = FOLLOW_S if found else min(2 * pause, FOLLOW_S_MAX)
            await self._sleep(pause)

    def _followed(self, partitions: Iterable[str]) -> Any:
        return self._opened().follow(partitions)

    async def _run(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(self._run_or_archive_down, work))

    def _run_or_archive_down(self, work: Callable[[], Any]) -> Any:
        """Return the result of `work`. An error that makes the index unusable is noted once, and raised as
        ArchiveDown.
        """
        try:
            return work()
        except ArchiveDown:
            raise
        except (ArchiveError, StoreError, OSError, MemoryError) as error:
            if str(error) != self._noted:
                self._noted = str(error)
                self._note(f"the archive does not answer, and searches in it go by words alone: {error}")
            if isinstance(error, ArchiveError):
                self._close_index()  # another process may have rebuilt it, even with another embedder
            raise ArchiveDown(str(error)) from error

    def _opened(self) -> SearchIndex:
        if self._index is None:
            self._index = self._open_index()
        return self._index

    def _close_index(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()

    def _answers(self, questions: Sequence[ArchiveQuery]) -> list[ArchiveResponse]:
        """Return an answer for each question. Their logs are read together; if that fails, separately for each
        question.
        """
        logs_read = False
        if len(questions) > 1:
            with suppress(ArchiveDown):
                self._run_or_archive_down(lambda: self._followed(set().union(*map(self._partitions, questions))))
                logs_read = True
        return [self._answer(question, logs_read=logs_read) for question in questions]

    def _partitions(self, question: ArchiveQuery) -> set[str]:
        """Return the partitions whose logs must be read before a question is answered."""
        found: set[str] = set()
        for stream in {question.agent_id, *map(stream_of, question.sources)}:
            with suppress(UnknownAgent):  # a source without documents
                found.update(places(self._store, stream))
        return found

    def _answer(self, question: ArchiveQuery, *, logs_read: bool) -> ArchiveResponse:
        try:
            return self._run_or_archive_down(partial(self._asked, question, logs_read=logs_read))
        except ArchiveDown as error:
            return error

    def _asked(self, question: ArchiveQuery, *, logs_read: bool) -> ArchiveResponse:
        index = self._opened()
        if not logs_read:
            index.follow(self._partitions(question))
        return page_of(index.search(question), question)


def page_of(found: "Matches", wanted: ArchiveQuery) -> Page:
    """Return the matches of a search as a page."""
    hits = [
        Hit(
            seq=row.seq, at=row.time, role="archival", name="", text=row.text, ref=row.memory, score=row.score,
            tags=row.tags, source=row.source, document=row.document, part=row.part, parts=row.parts,
            near=row.near,
        )
        for row in found.results
    ]  # fmt: skip
    pages = -(-found.total // wanted.count)
    return Page(found.total, wanted.first // wanted.count, pages, hits, by_meaning=found.by_meaning)


class _OwnProcess:
    """Part of an archive client that is done in its own process: searches of few memories, the meanings of messages,
    and reranking.
    """

    def __init__(self, meant: MessageMeanings, reranker: Reranker) -> None:
        self._meant = meant
        self._reranker = reranker

    async def search(self, wanted: ArchiveQuery, known: "KnownMemories | None" = None) -> Page:
        """Return the best matches in archival memory, best first. Raises ArchiveDown."""
        if known is None:
            return await self._search_index(wanted)
        if known.records:
            self._begin_index()
        return page_of(await self._meant.search_memories(known, wanted), wanted)

    async def _search_index(self, wanted: ArchiveQuery) -> Page:
        raise NotImplementedError

    def _begin_index(self) -> None:
        """Have the index follow the logs in the background: after a restart it is what answers."""
        raise NotImplementedError

    def begin(self, agent_id: str, records: int) -> None:
        """Prepare for searches of an agent in the background, if the process stays."""
        self._meant.begin(agent_id, records)

    def rest(self) -> None:
        """Give back memory that only searches need."""
        self._meant.rest()

    async def meanings(self, agent_id: str, query: str, said: SaidMessages) -> "np.ndarray":
        """Return the similarity of each message to the query, in their order. Raises ArchiveDown."""
        return await self._meant.near(agent_id, query, said)

    async def meanings_of_many(self, asked: Sequence[MeaningQuery]) -> "list[np.ndarray]":
        """Return the similarities of the messages of many agents. Raises ArchiveDown."""
        return await self._meant.near_many(asked)

    @property
    def reranks(self) -> bool:
        """True if the store has a reranker."""
        return self._reranker.is_on

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        """Return the numbers of these texts, best first. Raises ArchiveDown."""
        return await self._reranker.order(query, texts)


class LocalArchiveClient(_OwnProcess):
    """Archive of a process that runs agents itself; see `ArchiveClient`.

    Opening the index takes seconds, for which the first search in archival memory waits.
    """

    def __init__(
        self, archivist: ArchiveService, meant: MessageMeanings, reranker: Reranker, *, stays: bool = False
    ) -> None:
        """Create the client. `stays`: the process stays, so the index follows the logs from the first search on."""
        super().__init__(meant, reranker)
        self._archivist = archivist
        self._stays = stays

    async def _search_index(self, wanted: ArchiveQuery) -> Page:
        page: Page = await self._archivist.ask(wanted)
        self._begin_index()
        return page

    def _begin_index(self) -> None:
        if self._stays:
            self._archivist.begin()

    async def close(self) -> None:
        """Close the archive. Idempotent."""
        await self._meant.close()
        self._reranker.close()
        await self._archivist.close()


class ClusterArchiveClient(_OwnProcess):
    """Client of a cluster's archive, for a host; see `ArchiveClient`. Questions of the same moment go in one call.

    Messages are compared by meaning in the host's own process. Raises ArchiveDown if no answer arrives in time; the
    caller then uses words alone.
    """

    def __init__(
        self,
        send: Callable[[Sequence[ArchiveQuery]], Awaitable[Sequence[ArchiveResponse]]],
        meant: MessageMeanings,
        reranker: Reranker,
    ) -> None:
        """Create the client. `send` raises ArchiveDown if the archive does not answer."""
        super().__init__(meant, reranker)
        self._send = send
        self._waiting: list[tuple[ArchiveQuery, asyncio.Future[Any]]] = []
        self._calls: set[asyncio.Task[None]] = set()
        self._index_begun = False

    async def _search_index(self, wanted: ArchiveQuery) -> Page:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Page] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._begin_call)
        self._waiting.append((wanted, answer))
        try:
            return await asyncio.wait_for(answer, SEARCH_S)
        except TimeoutError:
            raise ArchiveDown(f"the archive gave no answer in {SEARCH_S} seconds") from None

    def _begin_index(self) -> None:
        if not self._index_begun:  # a call without a question starts the archive
            self._index_begun = True
            asyncio.get_running_loop().call_soon(self._begin_call)

    def _begin_call(self) -> None:
        waiting, self._waiting = self._waiting, []
        call = asyncio.get_running_loop().create_task(self._call(waiting))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _call(self, waiting: "Sequence[tuple[ArchiveQuery, asyncio.Future[Any]]]") -> None:
        """Send all waiting questions in one call."""
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
