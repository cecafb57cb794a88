"""Sources: the records of a load, interrupted loads, and the agents that can search a source."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st

from everlog.actors.memory import source_service as module
from everlog.actors.memory.document_load import (
    DOCUMENT_BYTES_MAX,
    NAME_CHARS_MAX,
    Document,
    LoadReport,
    UnreadableDocument,
)
from everlog.actors.memory.source_service import Sources
from everlog.actors.ports.ports import Ports
from everlog.events import (
    BadInput,
    DocumentLoaded,
    DocumentRemoved,
    Draft,
    PartitionBusy,
    Record,
    StoreError,
    event_of,
    uuid7,
)
from everlog.projections import DERIVER, ArchivalSearch, Projections
from everlog.store import FileLog, FileStore, MemoryLog, MemoryStore, Store, stream_of
from everlog.testing import CountingIds, ManualClock
from tests.support.law import law

FOLDER = "/handbook"
CLOCK, IDS = ManualClock(tick_us=1000), CountingIds()
"""Shared by all tests of this file, so that a restarted process makes ids that were not used before."""


def sources_of(store: Store) -> Sources:
    return Sources(store, clock=CLOCK, ids=IDS)


def texts(store: Store, source: str = "sea") -> dict[str, str]:
    """Return the documents that the log implies: the last text of each name, without the removed ones."""
    stream, found = stream_of(source), {}
    for record in store.reader(stream).read(stream):
        event = event_of(record)
        if isinstance(event, DocumentLoaded):
            found[event.document] = event.text
        elif isinstance(event, DocumentRemoved):
            found.pop(event.document, None)
    return found


def docs(**words: str) -> list[Document]:
    return [Document(name=name, text=text, origin=FOLDER) for name, text in words.items()]


NAMES = st.sampled_from(["a", "b", "c/d", "c/é", "it's", '"q"', "x\n"])
LOADS = st.lists(
    st.tuples(st.dictionaries(NAMES, st.sampled_from(["fog", "tide", "wind\nrain"]), max_size=5), st.booleans()),
    min_size=1,
    max_size=6,
)


@law(LOADS, few=4, many=60)
def test_the_documents_of_a_source_are_the_fold_of_its_log(loads: Sequence[tuple[dict[str, str], bool]]) -> None:
    """After any loads, the projection equals the documents of the log, now and as of earlier moments.

    The report of a load equals its records: one for each new, changed or removed document.
    """
    store = MemoryStore()
    known, then = sources_of(store), []
    for words, prune in loads:
        before = texts(store) if "sea" in store.sources() else {}
        loaded = known.load("sea", docs(**words), origins=[FOLDER], prune=prune)
        assert set(loaded.new) == words.keys() - before.keys()
        assert set(loaded.changed) == {name for name in words.keys() & before.keys() if words[name] != before[name]}
        assert len(loaded.new) + len(loaded.changed) + len(loaded.unchanged) == loaded.documents == len(words)
        gone = before.keys() - words.keys()
        assert (set(loaded.removed), set(loaded.vanished)) == ((gone, set()) if prune else (set(), gone))
        assert texts(store) == {**({} if prune else before), **words}
        then.append((store.reader(stream_of("sea")).head(stream_of("sea")).seq, texts(store)))
    written = list(store.reader(stream_of("sea")).read(stream_of("sea")))
    with Projections() as whole:
        whole.add(written)
        for seq, expected in then:
            rows = whole.rows("documents", stream_of("sea"), seq)
            assert {row["document"]: row["chars"] for row in rows} == {k: len(v) for k, v in expected.items()}
        plain = [{k: v for k, v in row.items() if k != "as_of"} for row in whole.rows("documents", stream_of("sea"))]
    assert plain == [{k: v for k, v in row.items() if k != "as_of"} for row in known.documents("sea")]


class Killed(BaseException):
    """The process dies here."""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("batch", range(5))
def test_a_load_that_is_killed_continues_where_it_was(batch: int, after: bool, tmp_path: Path, monkeypatch) -> None:
    """After a kill before or after any commit, only whole batches are there, and a second load adds only the rest."""
    monkeypatch.setattr(module, "BATCH_DOCUMENTS", 10)
    store = FileStore.create(tmp_path, ManualClock(tick_us=1000).now, "a store")
    brought = docs(**{f"{number:02d}": f"The tide turns {number} times." for number in range(45)})
    append, commits = FileLog.append, []

    def dying(log: FileLog, agent_id: str, expected_seq: int, drafts: Sequence[Draft]):
        commits.append(len(drafts))
        if len(commits) == batch + 1:
            if after:
                append(log, agent_id, expected_seq, drafts)
            log.close()  # as the operating system would
            raise Killed
        return append(log, agent_id, expected_seq, drafts)

    with monkeypatch.context() as dies:
        dies.setattr(FileLog, "append", dying)
        dies.setattr(FileLog, "seal", lambda *_: None)
        with pytest.raises(Killed):
            sources_of(store).load("sea", brought)
    whole = sum(commits[: batch + 1 if after else batch])
    assert list(texts(store)) == [document.name for document in brought[:whole]]
    again = sources_of(store).load("sea", brought)
    assert (len(again.unchanged), len(again.new), again.changed) == (whole, 45 - whole, [])
    assert len(list(store.reader(stream_of("sea")).read(stream_of("sea")))) == 45
    assert texts(store) == {document.name: document.text for document in brought}


def test_an_interrupted_load_keeps_its_committed_batches(monkeypatch) -> None:
    """If the documents or the disk fail in the middle, earlier batches stay, and nothing is removed."""
    monkeypatch.setattr(module, "BATCH_DOCUMENTS", 2)
    store = MemoryStore()
    known = sources_of(store)
    known.load("sea", docs(old="fog"))

    def failing():
        yield from docs(a="1", b="2", c="3")
        raise BadInput("row 4 cannot be had")

    with pytest.raises(BadInput, match="row 4"):
        known.load("sea", failing(), origins=[FOLDER], prune=True)
    assert texts(store) == {"old": "fog", "a": "1", "b": "2"}
    with monkeypatch.context() as full:
        full.setattr(MemoryLog, "append", lambda *_: (_ for _ in ()).throw(StoreError("the disk is full")))
        with pytest.raises(StoreError, match="full"):
            known.load("sea", docs(d="4"))
    assert len(known.load("sea", docs(d="4")).new) == 1


def test_batches_are_bounded_by_bytes(monkeypatch) -> None:
    """A commit exceeds the limit of bytes by one document at most."""
    monkeypatch.setattr(module, "BATCH_BYTES", 1000)
    store = MemoryStore()
    sources_of(store).load("sea", docs(**{f"{n}": "x" * 400 for n in range(7)}))
    log = store.reader(stream_of("sea"))
    assert [record.commit for record in log.read(stream_of("sea"))] == [1, 1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (Document(name="a", text=" \n"), "it has no text"),
        (Document(name="a", text="x" * (DOCUMENT_BYTES_MAX + 1)), "a document has at most 16,777,216; divide it"),
        (Document(name="a", text="half \ud800"), "half of a character"),
        (Document(name=" ", text="x"), "its name has 1 characters"),
        (Document(name="n" * (NAME_CHARS_MAX + 1), text="x"), "its name has 1001 characters"),
    ],
    ids=range(5),
)
def test_a_document_that_no_source_can_hold_is_reported_and_the_rest_continues(document: Document, said: str) -> None:
    store = MemoryStore()
    loaded = sources_of(store).load("sea", [document, *docs(b="fog")])
    assert said in loaded.failed[0].reason
    assert texts(store) == {"b": "fog"}


def test_unreadable_documents_are_not_removed() -> None:
    """A document whose folder or file could not be read is not removed; a document whose name only begins like the
    folder's is.
    """
    store = MemoryStore()
    known = sources_of(store)
    known.load("sea", docs(**{"a/1": "x", "a/2": "x", "ab": "x", "b": "x"}))
    failed = [UnreadableDocument("a", "the folder cannot be read"), UnreadableDocument("b", "it is empty")]
    assert known.load("sea", failed, origins=[FOLDER], prune=True).removed == ["ab"]


def test_one_process_loads_into_a_source_at_a_time() -> None:
    store = MemoryStore()
    known = sources_of(store)
    known.load("sea", docs(a="fog"))
    log = store.open(stream_of("sea"), "everlog load")
    with pytest.raises(PartitionBusy):
        known.load("sea", docs(b="fog"))
    assert known.load("sea", docs(b="fog"), dry_run=True).new == ["b"]
    log.close()
    assert known.load("sea", docs(b="fog")) == LoadReport("sea", new=["b"])


def test_the_log_of_a_source_is_sealed_and_read_as_before(tmp_path: Path) -> None:
    """Sealing does not change the documents; the state of a source holds its last record only."""
    store = FileStore.create(tmp_path, ManualClock(tick_us=1000).now, "a store")
    known = sources_of(store)
    known.load("sea", docs(a="fog " * 1000, b="tide", c="rain"))
    before = known.documents("sea"), texts(store)
    log = store.open(stream_of("sea"), "test")
    assert log.seal(DERIVER).records == 3
    log.close()
    assert (known.documents("sea"), texts(store)) == before
    state = store.reader(stream_of("sea")).state(stream_of("sea"), DERIVER.maker)
    assert state is not None
    assert (state.seq, state.rows.column("seq").to_pylist()) == (3, [3])


def test_attaching_is_an_event_of_the_agent_that_counts_from_then_on(tmp_path: Path) -> None:
    """A second attach, or a repeated command, changes nothing; the searched sources are correct as of any moment."""
    from everlog.actors.agent import commands
    from everlog.actors.api import open_system

    async def live() -> tuple[list[Record], list[Sequence[str]]]:
        async with open_system(
            tmp_path, ports=Ports(clock=ManualClock(tick_us=1000), ids=CountingIds()), timers=False
        ) as system:
            sam = await system.agent("sam")
            assert [
                await sam.attach_source("sea"),
                await sam.attach_source("sea"),
                await sam.attach_source("land"),
            ] == [True, False, True]
            assert [await sam.detach_source("sea"), await sam.detach_source("sea")] == [True, False]
            with pytest.raises(BadInput, match="a source name must have"):
                await sam.attach_source(" ")
            again = commands.AttachSource(id=uuid7(ManualClock(tick_us=1000).now(), 99), source="letters")
            for _ in range(2):
                answer = sam._sender.run(again)
                await answer
                assert answer.value is True
            assert await system.sources.attached() == {"land": ["sam"], "letters": ["sam"]}
            view = system._reading.view("sam")
            records = [r for r in view.reader.read("sam") if r.type.startswith("source_")]
            covered = [ArchivalSearch(view.projections, "sam", r.seq).attached().sources for r in records]
            assert all(ArchivalSearch(view.projections, "sam", r.seq).attached().time == r.recorded_at for r in records)
            view.close()
            return records, covered

    records, covered = asyncio.run(live())
    assert [record.type.removeprefix("source_") for record in records] == ["attached"] * 2 + ["detached", "attached"]
    assert covered == [["sea"], ["land", "sea"], ["land"], ["land", "letters"]]


def test_no_agent_can_have_the_name_of_a_source(tmp_path: Path) -> None:
    """Creating one agent or many, and sending, refuse the name of a source before anything is registered."""
    from everlog.actors.api import open_system

    async def tried() -> None:
        async with open_system(
            tmp_path, ports=Ports(clock=ManualClock(tick_us=1000), ids=CountingIds()), timers=False
        ) as system:
            await system.sources.load("sea", docs(a="fog"))
            with pytest.raises(BadInput, match="names that begin with 'source:'"):
                await system.agent("source:sea")
            with pytest.raises(BadInput, match="names that begin with 'source:'"):
                _ = [sent async for sent in system.create_many(["ann", "source:new"])]
            (sent,) = [sent async for sent in system.send_many([("source:sea", "Hello")])]
            assert isinstance(sent.error, BadInput)
            assert await system.agents() == []
            assert list(system.store.assigned()) == ["source:sea"]
            assert len(list(system.store.reader("source:sea").read("source:sea"))) == 1

    asyncio.run(tried())
