"""The archive service: answers about the index, and waits that never exceed the caller's limit."""

import asyncio
import re
from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from everlog.actors.archive import archive_service
from everlog.actors.archive.archive_service import (
    ArchiveService,
    ClusterArchiveClient,
    LocalArchiveClient,
    MeaningQuery,
)
from everlog.actors.ports.effects import Page
from everlog.events import ArchiveDown, ForeignRows, StoreError, UnknownAgent
from everlog.store import ArchiveQuery

BROKEN = MeaningQuery("sam", "broken", 5)
WANTED = ArchiveQuery(agent_id="sam", query="wifi", as_of=9, as_of_time=9, sources=("handbook",))


class Index:
    """An index that records the requests it gets, and can be made to fail."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.fails: Exception | None = None
        self.closed = False

    def follow(self, partitions: Iterable[str] | None = None) -> SimpleNamespace:
        self.asked.append(None if partitions is None else sorted(partitions))
        if self.fails is not None:
            raise self.fails
        return SimpleNamespace(commits=0)

    def search(self, wanted: ArchiveQuery) -> SimpleNamespace:
        self.asked.append(wanted.query)
        row = SimpleNamespace(
            seq=3, time=7, text="the wifi", memory="m", score=0.5, tags=["home"], source="", document="",
            part=2, parts=3,
        )  # fmt: skip
        return SimpleNamespace(total=11, results=[row], by_meaning=True)

    def meanings(self, agent_id: str, query: str, said_by: int) -> dict[int, float]:
        self.asked.append((agent_id, said_by))
        if query == "broken":
            raise ForeignRows("somebody wrote into it")
        return {1: 0.5}

    def status(self) -> int:
        return 7

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
        answers = await archive.ask_many([WANTED, MeaningQuery("ann", "wifi", 5)])
        await archive.close()
        return answers

    page, near = run(ask())
    assert index.asked == [["log of ann", "log of sam", "log of source:handbook"], "wifi", ("ann", 5)]
    assert page.total == 11
    assert (page.results[0].ref, page.results[0].part, page.results[0].tags) == ("m", 2, ["home"])
    assert page.by_meaning
    assert near == {1: 0.5}
    assert index.closed


def test_questions_that_wait_are_answered_together() -> None:
    """The logs are followed once for all waiting callers; a caller that leaves takes no other caller's answer along."""
    index = Index()

    async def ask():
        archive = served(index)
        asking = [asyncio.ensure_future(archive.ask(MeaningQuery(f"a{number}", "wifi", number))) for number in range(5)]
        await asyncio.sleep(0)
        asking[2].cancel()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        await archive.close()
        return answers

    answers = run(ask())
    assert [answer for answer in answers if isinstance(answer, dict)] == [{1: 0.5}] * 4
    assert sum(isinstance(asked, list) for asked in index.asked) < 5
    assert ("a4", 4) in index.asked


def test_no_search_waits_for_the_vector_of_the_newest_message_where_logs_are_followed() -> None:
    index = Index()

    async def ask():
        archive = served(index)
        archive.begin()
        await archive.status()
        index.asked.clear()
        await archive.ask_many([MeaningQuery("ann", "wifi", 5), WANTED])
        await archive.close()

    run(ask())
    assert ["log of sam", "log of source:handbook"] in index.asked
    assert ["log of ann"] not in index.asked


def test_the_logs_of_the_ancestors_of_a_fork_are_followed_too() -> None:
    """The logs of a fork's ancestors are followed as well: the fork shares their records up to the fork point."""
    index = Index()
    run(served(index).ask(MeaningQuery("tom", "wifi", 5)))
    assert index.asked[0] == ["log of ann", "log of tom"]


def test_a_source_that_was_never_loaded_into_is_no_obstacle() -> None:
    index = Index()
    assert run(served(index).ask(MeaningQuery("nobody", "wifi", 5))) == {1: 0.5}
    assert index.asked[0] == []


def test_one_question_that_fails_leaves_the_others_alone_and_is_noted_once() -> None:
    notes: list[str] = []

    async def ask():
        archive = served(Index(), notes)
        first = await archive.ask_many([BROKEN, MeaningQuery("sam", "wifi", 5)])
        second = await archive.ask_many([BROKEN])
        return [*first, *second]

    broken, fine, again = run(ask())
    assert isinstance(broken, ArchiveDown)
    assert isinstance(again, ArchiveDown)
    assert fine == {1: 0.5}
    assert notes == ["the archive does not answer, and searches go by words alone: somebody wrote into it"]


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
        return await archive.ask(MeaningQuery("ann", "wifi", 5))

    assert run(ask()) == {1: 0.5}
    assert "ZeroDivisionError" in notes[0]
    assert index.asked[-2:] == [["log of ann"], ("ann", 5)]


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
    assert index.asked == [["a", "b"], ["c"]] * 6
    assert pauses == sorted(pauses)
    assert pauses[-1] == archive_service.FOLLOW_S_MAX


def test_optional_searches_do_not_wait_for_an_archive_to_open() -> None:
    async def ask():
        spare = LocalArchiveClient(served(Index()), "spare")
        with pytest.raises(ArchiveDown):
            await spare.meanings("sam", "wifi", 3)
        assert (await spare.search(WANTED)).total == 11
        assert await spare.meanings("sam", "wifi", 3) == {1: 0.5}
        await spare.close()
        patient = LocalArchiveClient(served(Index()), "wait")
        assert await patient.meanings("sam", "wifi", 3) == {1: 0.5}
        await patient.close()

    run(ask())


def test_an_archive_that_was_begun_is_open_for_later_callers() -> None:
    async def ask():
        inner = served(Index())
        archive = LocalArchiveClient(inner, "begin")
        with pytest.raises(ArchiveDown):
            await archive.meanings("sam", "wifi", 3)
        await inner.status()  # returns after the index was opened: one thread does both
        assert await archive.meanings("sam", "wifi", 3) == {1: 0.5}
        await archive.close()

    run(ask())


def test_simultaneous_questions_are_one_call() -> None:
    calls: list[int] = []

    async def ask():
        archive = served(Index())

        async def send(questions):
            calls.append(len(questions))
            return await archive.ask_many(questions)

        clerk = ClusterArchiveClient(send)
        answers = await asyncio.gather(
            clerk.search(WANTED), clerk.meanings("sam", "wifi", 3), clerk.meanings("sam", "broken", 3),
            return_exceptions=True,
        )  # fmt: skip
        await archive.close()
        return answers

    page, near, broken = run(ask())
    assert calls == [3]
    assert isinstance(page, Page)
    assert near == {1: 0.5}
    assert isinstance(broken, ArchiveDown)


def test_after_a_slow_search_later_searches_do_not_wait_for_the_archive(monkeypatch) -> None:
    monkeypatch.setattr(archive_service, "OPTIONAL_RANKING_S", 0.001)

    async def ask():
        late = asyncio.Event()

        async def send(questions):
            await late.wait()
            return [{}] * len(questions)

        clerk = ClusterArchiveClient(send)
        with pytest.raises(ArchiveDown, match="no answer"):
            await clerk.meanings("sam", "wifi", 3)
        with pytest.raises(ArchiveDown, match="a moment ago"):
            await clerk.meanings("ann", "wifi", 3)
        late.set()
        await asyncio.gather(*clerk._calls)

    run(ask())


def test_without_an_archive_every_caller_gets_an_error() -> None:
    async def send(questions):
        raise ArchiveDown("the archive is gone")

    async def ask():
        clerk = ClusterArchiveClient(send)
        return await asyncio.gather(clerk.search(WANTED), clerk.meanings("sam", "wifi", 3), return_exceptions=True)

    assert [str(error) for error in run(ask())] == ["the archive is gone"] * 2


def test_an_unreadable_log_does_not_block_searches_of_other_logs() -> None:
    class Damaged(Index):
        def follow(self, partitions=None):
            if "log of sam" in (names := list(partitions or ())):
                raise StoreError("damaged")
            return super().follow(names)

    async def ask():
        archive = served(Damaged())
        answers = await archive.ask_many([WANTED, MeaningQuery("ann", "wifi", 5)])
        await archive.close()
        await archive.close()
        return answers

    sam, ann = run(ask())
    assert isinstance(sam, ArchiveDown)
    assert ann == {1: 0.5}
