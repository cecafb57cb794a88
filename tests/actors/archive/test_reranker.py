"""The reranker: its order is used, and every answer that is none leaves the results in their own order."""

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import conversation
from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.api import open_system
from everlog.actors.archive import reranker as module
from everlog.actors.archive.archive_index import local_archive
from everlog.actors.archive.reranker import Reranker
from everlog.actors.functions.memgpt_functions import shown
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.memory.archive_questions import RERANK_CHARS_MAX, RERANKED, reranked
from everlog.actors.ports.effects import Hit, Page
from everlog.events import ArchiveDown
from everlog.store import FileStore
from tests.support.models.loopback_server import serving

KEY = "sk-very-secret-0123456789"


def scores(*pairs: tuple[int, float]) -> tuple[int, str]:
    """Return a server's answer with these scores by number."""
    rows = [{"index": number, "relevance_score": score, "document": {"text": "x"}} for number, score in pairs]
    return 200, json.dumps({"id": "1", "results": rows})


def described(root: Path, url: str, *more: str) -> Path:
    """Describe a reranker in the store, which need not exist otherwise."""
    root.mkdir(exist_ok=True)
    lines = ["[endpoints.office]", f'url = "{url}"', 'reranker = "best-model"', *more]
    (root / "models.toml").write_text("\n".join(lines))
    return root


def order(root: Path, *texts: str, notes: list[str] | None = None) -> list[int]:
    """Return the order of the reranker of a store."""
    found = Reranker(root, note=[].append if notes is None else notes.append)

    async def ask() -> list[int]:
        return await found.order("where is the boat?", texts)

    try:
        return asyncio.run(ask())
    finally:
        found.close()


def test_without_a_description_nothing_is_asked(tmp_path: Path) -> None:
    """There is a reranker only where models.toml describes one; a file that cannot be read is not the same as none."""
    assert not Reranker(tmp_path, note=print).is_on
    assert Reranker(described(tmp_path, "http://127.0.0.1:1/v1"), note=print).is_on
    (tmp_path / "models.toml").write_text("[endpoints")
    assert Reranker(tmp_path, note=print).is_on
    with pytest.raises(ArchiveDown, match="no TOML"):
        order(tmp_path, "a")


def test_the_scores_are_the_order_and_texts_without_one_come_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal scores stay in their order. Texts are cut; the key is that of the endpoint, sent only as its header."""
    monkeypatch.setenv("OFFICE_KEY", KEY)
    with serving(scores((3, 0.5), (0, -2), (1, 0.5))) as server:
        root = described(tmp_path, server.url, 'key = "OFFICE_KEY"')
        assert order(root, "a", "b" * 10_000, "c", "d") == [1, 3, 0, 2]
    (sent,) = map(json.loads, server.bodies)
    assert sent == {
        "model": "best-model", "query": "where is the boat?", "top_n": 4,
        "documents": ["a", "b" * RERANK_CHARS_MAX, "c", "d"],
    }  # fmt: skip
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("answer", "said"), [
    ((200, "<html>"), "no list of scores"),
    ((200, '{"results": []}'), "it gave 0 for 0"),
    ((200, '{"results": [{"index": 0}]}'), "no list of scores"),
    ((200, '{"results": [{"index": 0, "relevance_score": "high"}]}'), "no list of scores"),
    ((200, '{"results": [{"index": 0, "relevance_score": NaN}]}'), "no list of scores"),
    ((200, '{"results": [{"index": 0, "relevance_score": 1e999}]}'), "no list of scores|inf for text 0"),
    (scores((2, 1.0)), "1.0 for text 2"),
    (scores((-1, 1.0), (0, 0.5)), "1.0 for text -1"),
    (scores((0, 1.0), (0, 0.5)), "it gave 2 for 1 of them"),
    ((401, f"expired: {KEY}"), "key"),
    ((500, f"oops {KEY}"), "500"),
])  # fmt: skip
def test_nonsense_is_no_order_and_the_reason_never_has_the_key(
    answer: tuple[int, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong numbers, scores that are none and refusals are noted with the endpoint."""
    monkeypatch.setenv("OFFICE_KEY", KEY)
    notes: list[str] = []
    with serving(answer) as server, pytest.raises(ArchiveDown, match=said):
        order(described(tmp_path, server.url, 'key = "OFFICE_KEY"'), "a", "b", notes=notes)
    assert len(notes) == 1 and server.url in notes[0] and KEY not in notes[0]


def test_a_late_reranker_holds_up_one_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an answer that did not come in time, searches do not wait for the next one."""
    monkeypatch.setattr(module, "RERANK_S", 0.001)
    answer = threading.Event()
    notes: list[str] = []

    class Slow:
        def ask(self, _: bytes) -> str:
            answer.wait()
            return ""

        def close(self) -> None:
            answer.set()

    root = described(tmp_path, "http://127.0.0.1:1/v1")
    found = Reranker(root, note=notes.append, make=lambda _: Slow())

    async def ask() -> None:
        with pytest.raises(ArchiveDown, match="no answer in"):
            await found.order("boat", ["a"])
        with pytest.raises(ArchiveDown, match="a moment ago"):
            await found.order("boat", ["a"])

    asyncio.run(ask())
    found.close()
    assert notes == ["search results are not reranked: the reranker gave no answer in 0.001 seconds"]


class Turning:
    """An archive whose reranker turns the order around, or is down."""

    def __init__(self, *, down: bool = False) -> None:
        self.reranks = True
        self.sent: list[int] = []
        self._down = down

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        self.sent.append(len(texts))
        if self._down:
            raise ArchiveDown("gone")
        return range(len(texts))[::-1]


def pages(archive: Any, total: int, count: int, *numbers: int) -> list[Page]:
    """Return pages of a search that finds the texts 0 to `total` in this order."""

    async def search(page: int, count: int) -> Page:
        texts = range(total)[page * count : (page + 1) * count]
        hits = [Hit(seq=n, at=0, role="user", name="", text=str(n), ref="", score=1.0) for n in texts]
        return Page(total, page, -(-total // count), hits)

    async def ask() -> list[Page]:
        return [await reranked(archive, "boat", number, count, search) for number in numbers]

    return asyncio.run(ask())


def seqs(found: Page) -> list[int]:
    return [hit.seq for hit in found.results]


@pytest.mark.parametrize("count", [10, 20, 60])
def test_every_result_is_on_one_page_and_the_best_are_turned_around(count: int) -> None:
    """The best 50 are in the order of the reranker, the others follow in theirs; a later page asks nothing."""
    archive = Turning()
    found = pages(archive, 73, count, *range(-(-73 // count)))
    assert [seq for page in found for seq in seqs(page)] == [*range(RERANKED)[::-1], *range(RERANKED, 73)]
    assert {(page.total, page.pages) for page in found} == {(73, -(-73 // count))}
    assert [page.page for page in found] == list(range(len(found)))
    assert all(page.reranked == (page.page * count < RERANKED) and not page.reranker_down for page in found)
    assert set(archive.sent) == {RERANKED}


def test_a_reranker_that_is_down_leaves_the_order_and_the_page_says_so() -> None:
    """The model sees it too; a search without results asks nothing."""
    (found,) = pages(Turning(down=True), 12, 5, 1)
    assert seqs(found) == [5, 6, 7, 8, 9] and found.reranker_down and not found.reranked
    assert "not reranked: the reranker does not answer" in shown(found, "UTC", roles=True)
    empty = Turning()
    assert seqs(pages(empty, 0, 5, 0)[0]) == [] and empty.sent == []


def test_a_long_text_is_sent_as_its_best_passage() -> None:
    """The best passage of a text stands for it where the text is too long for a reranker."""
    sent: list[str] = []

    class Reading(Turning):
        async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[int]:
            sent.extend(texts)
            return range(len(texts))

    async def search(page: int, count: int) -> Page:
        texts = ("short", "x" * (RERANK_CHARS_MAX + 1))
        return Page(2, page, 1, [Hit(n, 0, "user", "", text, "", 1.0, passage="best") for n, text in enumerate(texts)])

    asyncio.run(reranked(Reading(), "boat", 0, 5, search))  # type: ignore[arg-type]
    assert sent == ["short", "best"]


def test_recall_and_archival_searches_of_a_store_are_reranked(tmp_path: Path) -> None:
    """Both searches send the texts that they find, and the pages have the order of the scores."""
    store = tmp_path / "store"

    async def insert() -> None:
        async with open_system(store, runtime="local", timers=False) as system:
            agent = await system.agent("sam", Settings(model="offline"))
            said = [f'{{"role": "user", "content": "boat {n}", "time": "2026-01-0{n}T10:00:00Z"}}' for n in (1, 2, 3)]
            await agent.import_messages(conversation(map(str.encode, said), "said"))
            await agent.archive.insert_many(["boat four", "boat five"])

    async def ask(searcher: AgentSearcher) -> list[list[str]]:
        found = [await searcher.recall("boat", 0), await searcher.archival("boat", 0)]
        assert all(page.reranked and page.by_meaning for page in found)
        return [[hit.text for hit in page.results] for page in found]

    asyncio.run(insert())
    with serving(scores((0, 1), (1, 3), (2, 2)), scores((0, 1), (1, 2))) as server:
        described(store, server.url)
        files = FileStore(store, lambda: 0)
        archive = local_archive(files, note=pytest.fail)
        with LocalSystem(files, services=AgentServices(archive=archive)).view("sam") as view:
            recalled, kept = asyncio.run(ask(view.searcher()))
        asyncio.run(archive.close())
    sent = [json.loads(body)["documents"] for body in server.bodies]
    assert recalled == [sent[0][1], sent[0][2], sent[0][0]] and kept == sent[1][::-1]
    assert [len(some) for some in sent] == [3, 2]
