"""The archive service: answers about the index, and waits that never exceed the caller's limit."""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from everlog.actors.archive import archive_service
from everlog.actors.archive.archive_service import (
    ArchiveService,
    ClusterArchiveClient,
    LocalArchiveClient,
)
from everlog.actors.archive.message_meanings import NOTHING_SAID
from everlog.actors.archive.reranker import Reranker
from everlog.actors.ports.effects import Page
from everlog.events import ArchiveDown, ForeignRows, StoreError, UnknownAgent
from everlog.store import ArchiveQuery
from tests.support.store.message_vectors import Vectors, meant

WANTED = ArchiveQuery(agent_id="sam", query="wifi", as_of=9, as_of_time=9, sources=("handbook",))


def wanted(agent_id: str, query: str = "wifi") -> ArchiveQuery:
    """Return a query without sources."""
    return ArchiveQuery(agent_id=agent_id, query=query, as_of=9, as_of_time=9)


OFF = Reranker(Path("no store"), note=print)
BROKEN = wanted("sam", "broken")


class Index:
    """An index that records the requests it gets, and can be made to fail."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.fails: Exception | None = None
        self.closed = False
        self.commits = 0

    def follow(self, partitions: Iterable[str] | None = None) -> SimpleNamespace:
        self.asked.append(None if partitions is None else sorted(partitions))
        if self.fails is not None:
            raise self.fails
        return SimpleNamespace(commits=self.commits)

    def search(self, wanted: ArchiveQuery) -> SimpleNamespace:
        self.asked.append(wanted.query)
        if wanted.query == "broken":
            raise ForeignRows("somebody wrote into it")
        row = SimpleNamespace(
            seq=3, time=7, text="the wifi", memory="m", score=0.5, tags=["home"], source="", document="",
            part=2, parts=3, near=0.25,
        )  # fmt: skip
        return SimpleNamespace(total=11, results=[row], by_meaning=True)

    def status(self) -> int:
        return 7

    def rest(self) -> None:
        self.asked.append("rest")

    def sizes(self) -> int:
        return 9

    def close(self) -> None:
        self.closed = True


class Logs:
    """A store of three logs."""

    def partitions(self) -> list[str]:
        return ["a", "b", "c"]

    def parent_of(self, stream: str) -> tuple[str, int] | None:
        return ("ann", 3) if stream == "tom" else None

    def route(self, stream: str) -> list[str]:
        if stream == "nobody":
            raise UnknownAgent("nobody")
        return [f"log of {stream}"]


def served(index: Index, notes: list[str] | None = None) -> ArchiveService:
    return ArchiveService(lambda: index, Logs(), note=[].append if notes is None else notes.append)


def run(work):
    return asyncio.run(work)


def test_the_logs_of_all_that_is_asked_for_are_followed_before_anything_is_answered() -> None:
    index = Index()

    async def ask():
        archive = served(index)
        answers = await archive.ask_many([WANTED, wanted("ann")])
        await archive.close()
        return answers

    page, other = run(ask())
    assert index.asked == [["log of ann", "log of sam", "log of source:handbook"], "wifi", "wifi"]
    assert page.total == 11
    assert (page.results[0].ref, page.results[0].part, page.results[0].tags) == ("m", 2, ["home"])
    assert page.by_meaning
    assert other.total == 11
    assert index.closed


def test_questions_that_wait_are_answered_together() -> None:
    """The logs are followed once for all waiting callers; a caller that leaves takes no other caller's answer along."""
    index = Index()

    async def ask():
        archive = served(index)
        asking = [asyncio.ensure_future(archive.ask(wanted(f"a{number}", f"q{number}"))) for number in range(5)]
        await asyncio.sleep(0)
        asking[2].cancel()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        await archive.close()
        return answers

    answers = run(ask())
    assert sum(isinstance(answer, Page) for answer in answers) == 4
    assert sum(isinstance(asked, list) for asked in index.asked) < 5
    assert "q4" in index.asked


def test_the_logs_of_the_ancestors_of_a_fork_are_followed_too() -> None:
    """The logs of a fork's ancestors are followed as well: the fork shares their records up to the fork point."""
    index = Index()
    run(served(index).ask(wanted("tom")))
    assert index.asked[0] == ["log of ann", "log of tom"]


def test_a_source_that_was_never_loaded_into_is_no_obstacle() -> None:
    index = Index()
    assert run(served(index).ask(wanted("nobody"))).total == 11
    assert index.asked[0] == []


def test_one_question_that_fails_leaves_the_others_alone_and_is_noted_once() -> None:
    notes: list[str] = []

    async def ask():
        archive = served(Index(), notes)
        first = await archive.ask_many([BROKEN, wanted("sam")])
        second = await archive.ask_many([BROKEN])
        return [*first, *second]

    broken, fine, again = run(ask())
    assert isinstance(broken, ArchiveDown)
    assert isinstance(again, ArchiveDown)
    assert fine.total == 11
    assert notes == ["the archive does not answer, and searches in it go by words alone: somebody wrote into it"]


@pytest.mark.parametrize(
    "error",
    [StoreError("no such disk"), ForeignRows("another wrote"), ArchiveDown("gone"), OSError(24, "too many open files")],
)
def test_any_failure_to_follow_is_reported_as_an_archive_that_does_not_answer(error: Exception) -> None:
    index = Index()
    index.fails = error
    with pytest.raises(ArchiveDown, match=re.escape(str(error))):
        run(served(index).ask(WANTED))


def test_an_unexpected_error_is_a_bug_and_propagates() -> None:
    index = Index()
    index.fails = ZeroDivisionError("ours")
    with pytest.raises(ZeroDivisionError):
        run(served(index).ask(WANTED))


def test_a_bug_in_following_is_reported_and_searches_are_answered() -> None:
    index, notes = Index(), []
    index.fails = ZeroDivisionError("ours")

    async def ask():
        archive = served(index, notes)
        archive.begin()
        await asyncio.wait([archive._following])
        index.fails = None
        return await archive.ask(wanted("ann"))

    assert run(ask()).total == 11
    assert "ZeroDivisionError" in notes[0]
    assert index.asked[-2:] == [["log of ann"], "wifi"]


def test_logs_are_followed_in_batches_with_growing_pauses(monkeypatch) -> None:
    monkeypatch.setattr(archive_service, "FOLLOW_LOGS_BATCH", 2)
    index = Index()
    pauses: list[float] = []

    async def ask():
        enough = asyncio.Event()

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 6:
                enough.set()
                await asyncio.Event().wait()

        archive = ArchiveService(lambda: index, Logs(), note=print, sleep=sleep)
        archive.begin()
        await enough.wait()
        await archive.close()

    run(ask())
    assert [what for what in index.asked if what != "rest"] == [["a", "b"], ["c"]] * 6
    assert pauses == sorted(pauses)
    assert pauses[-1] == archive_service.FOLLOW_S_MAX


def test_an_index_without_new_records_rests_once_until_there_are_some() -> None:
    """The index rests after the longest pause without a new record, once, and again after new records."""
    index = Index()
    rounds = 0

    async def ask():
        enough = asyncio.Event()

        async def sleep(_: float) -> None:
            nonlocal rounds
            rounds += 1
            index.asked.append(rounds)
            index.commits = int(rounds == 10)
            if rounds == 20:
                enough.set()
                await asyncio.Event().wait()

        archive = ArchiveService(lambda: index, Logs(), note=print, sleep=sleep)
        archive.begin()
        await enough.wait()
        await archive.close()

    run(ask())
    quiet = index.asked[: index.asked.index("rest")]
    assert quiet.count(["a", "b", "c"]) == 5  # pauses of 0.5, 1, 2, 4 and 5 seconds lie between
    later = index.asked[index.asked.index(10) :]
    assert index.asked.count("rest") == 2 == 1 + later.count("rest")


def test_messages_are_compared_before_the_index_is_open() -> None:
    """The first answer about messages needs no index, and opens none."""

    async def ask():
        archive = LocalArchiveClient(
            ArchiveService(lambda: pytest.fail("opened"), Logs(), note=print), meant(Vectors()), OFF
        )
        found = await archive.meanings("sam", "wifi", NOTHING_SAID)
        await archive.close()
        return found

    assert run(ask()).tolist() == [0.5]


def test_the_logs_are_followed_from_the_first_search_in_a_process_that_stays() -> None:
    """A process that stays follows the logs after its first search in archival memory; one that ends soon does not."""

    async def ask(stays: bool) -> bool:
        service = served(Index())
        archive = LocalArchiveClient(service, meant(Vectors()), OFF, stays=stays)
        assert service._following is None
        await archive.search(WANTED)
        following = service._following is not None
        await archive.close()
        return following

    assert [run(ask(stays)) for stays in (True, False)] == [True, False]


def test_simultaneous_questions_are_one_call() -> None:
    calls: list[int] = []

    async def ask():
        archive = served(Index())

        async def send(questions):
            calls.append(len(questions))
            return await archive.ask_many(questions)

        clerk = ClusterArchiveClient(send, meant(Vectors()), OFF)
        questions = (WANTED, wanted("ann"), BROKEN)
        answers = await asyncio.gather(*map(clerk.search, questions), return_exceptions=True)
        await archive.close()
        return answers

    page, other, broken = run(ask())
    assert calls == [3]
    assert isinstance(page, Page) and isinstance(other, Page)
    assert isinstance(broken, ArchiveDown)


def test_a_slow_archive_ends_a_search(monkeypatch) -> None:
    """A search waits for the archive no longer than SEARCH_S."""
    monkeypatch.setattr(archive_service, "SEARCH_S", 0.001)

    async def ask():
        late = asyncio.Event()

        async def send(questions):
            await late.wait()
            return [ArchiveDown("late")] * len(questions)

        clerk = ClusterArchiveClient(send, meant(Vectors()), OFF)
        with pytest.raises(ArchiveDown, match="no answer"):
            await clerk.search(WANTED)
        late.set()
        await asyncio.gather(*clerk._calls)

    run(ask())


def test_without_an_archive_every_caller_gets_an_error() -> None:
    async def send(questions):
        raise ArchiveDown("the archive is gone")

    async def ask():
        clerk = ClusterArchiveClient(send, meant(Vectors()), OFF)
        return await asyncio.gather(clerk.search(WANTED), clerk.search(BROKEN), return_exceptions=True)

    assert [str(error) for error in run(ask())] == ["the archive is gone"] * 2


def test_an_unreadable_log_does_not_block_searches_of_other_logs() -> None:
    class Damaged(Index):
        def follow(self, partitions=None):
            if "log of sam" in (names := list(partitions or ())):
                raise StoreError("damaged")
            return super().follow(names)

    async def ask():
        archive = served(Damaged())
        answers = await archive.ask_many([WANTED, wanted("ann")])
        await archive.close()
        await archive.close()
        return answers

    sam, ann = run(ask())
    assert isinstance(sam, ArchiveDown)
    assert ann.total == 11
