"""Laws of archival memory: the projection equals a fold in plain Python, and its searches equal a scan."""

import random

import msgspec
from hypothesis import strategies as st

from everlog.events import (
    AgentCreated,
    ArchivalDeleted,
    ArchivalInserted,
    ArchivalUpdated,
    Event,
    Record,
    SourceAttached,
    SourceDetached,
    UserMessage,
    draft,
    event_of,
    is_erased,
    place,
    tombstone,
    uuid7,
)
from everlog.projections import HEAD, ArchivalSearch, Projections
from everlog.projections.archival_memory import FOUND_CHARS, WHITE
from everlog.store.base.stemming import phrases_in, query_stems, stems
from tests.laws.test_projections import BIRTH, loaded
from tests.support.law import law

TEXTS = ("oak", "elm", " oak ", "oak\n", "the oak and the elm", "“Oak” trees", "50% oak_", "")
QUERIES = (*TEXTS, '"the oak" elm', '"oak"', '""')
TAGS = ("gold", "tree", "a, b")
SOURCES = ("", "", "books")


class Folded(msgspec.Struct):
    """A memory as the fold computes it."""

    ref: str
    seq: int
    time: int
    text: str
    tags: list[str]
    source: str


def fold(records: list[Record]) -> list[Folded]:
    """Return the memories after these records, in order: the definition of the projection as a loop."""
    memories: dict[str, Folded] = {}
    deleted: set[str] = set()
    for record in records:
        if record.type == "agent_created":
            memories, deleted = {}, set()
        if is_erased(record.payload):
            continue
        event = event_of(record)
        if isinstance(event, ArchivalInserted):
            memories[record.event_id] = Folded(
                record.event_id, record.seq, record.recorded_at, event.text, event.tags, event.source
            )
        elif isinstance(event, ArchivalUpdated):
            before = memories.get(event.memory_id)
            if before is None:
                before = Folded(event.memory_id, record.seq, record.recorded_at, "", [], "")
            memories[event.memory_id] = msgspec.structs.replace(before, text=event.text, tags=event.tags)
        elif isinstance(event, ArchivalDeleted):
            deleted.add(event.memory_id)
    return sorted((m for m in memories.values() if m.ref not in deleted), key=lambda memory: memory.seq)


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Draw a stream that stores, changes and deletes memories; sometimes with a second incarnation or an erasure."""
    chance: random.Random = draw(st.randoms(use_true_random=False))
    events: list[Event] = list(BIRTH)
    ids: list[str] = []
    for _ in range(chance.randint(1, 25)):
        tags = chance.sample(TAGS, chance.randint(0, 2))
        kind = chance.choice(["insert", "insert", "update", "update", "delete", "say", "life"])
        if kind == "insert" or not ids:
            ids.append(name_of(len(events) + 1))
            events.append(ArchivalInserted(text=chance.choice(TEXTS), tags=tags, source=chance.choice(SOURCES)))
        elif kind == "update":
            events.append(ArchivalUpdated(memory_id=chance.choice(ids), text=chance.choice(TEXTS), tags=tags))
        elif kind == "delete":
            events.append(ArchivalDeleted(memory_id=chance.choice(ids)))
        elif kind == "say":
            events.append(UserMessage(text="oak"))
        elif chance.random() < 0.2:
            events.append(AgentCreated())
            ids = []
    records = [recorded(event, seq) for seq, event in enumerate(events, 1)]
    erased = chance.sample(range(len(BIRTH), len(records)), chance.choice([0, 0, min(2, len(records) - len(BIRTH))]))
    return [tombstone(record) if n in erased else record for n, record in enumerate(records)]


def name_of(seq: int) -> str:
    return uuid7(seq * 1000, seq)


def recorded(event: Event, seq: int) -> Record:
    return place(draft(event, event_id=name_of(seq), recorded_at=seq * 1000, turn=0, step=0), "sam", seq, seq)


def shown(engine: Projections, as_of: int) -> list[Folded]:
    """Return the rows of the projection, in order."""
    names = {"memory_id": "ref"}
    rows = engine.rows("archival_memory", "sam", as_of)
    return [
        msgspec.convert({names.get(key, key): row[key] for key in row if key not in ("agent_id", "as_of")}, Folded)
        for row in rows
    ]


@law(histories(), st.data(), few=3, many=240)
def test_the_projection_is_the_fold(records: list[Record], data: st.DataObject) -> None:
    """The rows are equal now and as of any seq, loaded at once or record by record."""
    cut = data.draw(st.integers(1, len(records)))
    with loaded(records) as whole, Projections() as bit_by_bit:
        for record in records:
            bit_by_bit.add([record])
        assert shown(whole, HEAD) == shown(bit_by_bit, HEAD) == fold(records)
        assert shown(whole, cut) == fold(records[:cut])


@law(histories(), st.data(), few=3, many=240)
def test_searches_find_the_same_as_a_scan(records: list[Record], data: st.DataObject) -> None:
    """Lookups by id and by whole text, lists and searches by words agree with a scan under every filter; pages are
    parts of one list.
    """
    cut = data.draw(st.integers(1, len(records)))
    memories = fold(records[:cut])
    text, query = data.draw(st.sampled_from(TEXTS)), data.draw(st.sampled_from(QUERIES))
    tags = data.draw(st.lists(st.sampled_from(TAGS), max_size=2, unique=True))
    source = data.draw(st.sampled_from(["", "books"]))
    after, before = data.draw(st.none() | st.just(9000)), data.draw(st.none() | st.just(15_000))
    filters = {"tags": tags, "source": source, "after": after, "before": before}
    passing = [
        memory
        for memory in memories
        if set(tags) <= set(memory.tags)
        and source in ("", memory.source)
        and (after or 0) <= memory.time < (before or 2**62)
    ]
    with loaded(records) as engine:
        kept = ArchivalSearch(engine, "sam", cut)
        holding = [memory.ref for memory in memories if memory.text.strip() == text.strip()]
        assert kept.holding(text) == (holding[0] if holding else "")
        assert kept.sources() == {memory.source for memory in memories if memory.source}
        for ref in (name_of(n) for n in range(1, len(records) + 1)):
            row = kept.memory(ref)
            assert (row and row["text"]) == next((memory.text for memory in memories if memory.ref == ref), None)
        listed = kept.listed(0, 100, **filters)
        assert [row["ref"] for row in listed] == [memory.ref for memory in passing]
        found = kept.search(query, 0, 100, **filters)
        quoted, rest = phrases_in(query)
        words, phrase = set(query_stems(query)), quoted[0] if quoted and not rest else query.strip().lower()
        hits = {
            memory.ref
            for memory in passing
            if words & set(stems(memory.text)) or (phrase and phrase in memory.text.lower())
            if all(each in memory.text.lower() for each in quoted)
        }
        assert {row["ref"] for row in found} == hits
        assert found.total == len(hits)
        pages = [row for first in range(0, len(hits) + 2, 2) for row in kept.search(query, first, 2, **filters)]
        assert pages == list(found)


@law(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["books", "notes"])), max_size=12), st.data(), few=3, many=160
)
def test_the_sources_that_are_searched_are_those_of_the_projection(
    changes: list[tuple[int, str]], data: st.DataObject
) -> None:
    """The attached sources and the time of the last record agree as of any seq; after a new creation no source is
    attached.
    """
    made = {0: SourceAttached, 1: SourceAttached, 2: SourceDetached}
    events: list[Event] = [*BIRTH]
    for kind, source in changes:
        events.append(
            made[kind](source=source) if kind in made else UserMessage(text="oak") if kind == 3 else AgentCreated()
        )
    records = [recorded(event, seq) for seq, event in enumerate(events, 1)]
    erased = data.draw(st.sets(st.integers(len(BIRTH), len(records)), max_size=1))
    cut = data.draw(st.integers(1, len(records)))
    with loaded([tombstone(record) if n in erased else record for n, record in enumerate(records)]) as engine:
        rows = engine.rows("sources", "sam", cut)
        expected = sorted(row["source"] for row in rows if row["source"])
        assert ArchivalSearch(engine, "sam", cut).attached() == (expected, max(row["as_of_time"] for row in rows))


def test_a_long_text_is_shown_as_an_excerpt() -> None:
    """An excerpt is short, has the words of the query, and marks omitted text on either side."""
    text = f"{'sand ' * 3000}the gold is here {'salt ' * 3000}"
    life = [*BIRTH, ArchivalInserted(text=text)]
    with loaded([recorded(event, seq) for seq, event in enumerate(life, 1)]) as engine:
        for query, words in (("gold", "the gold is here"), ("is here salt", "is here salt"), ("sand", "sand sand")):
            (row,) = ArchivalSearch(engine, "sam", HEAD).search(query, 0, 5)
            assert words in row["text"]
            assert len(row["text"]) <= FOUND_CHARS + 4
            assert row["text"].startswith("… ") == (query != "sand")
            assert row["text"].endswith(" …")
        assert ArchivalSearch(engine, "sam", HEAD).holding(text) == name_of(len(life))


def test_white_space_is_what_python_says_it_is() -> None:
    """SQL strips exactly the characters that Python's `strip` does."""
    assert set(WHITE) == {character for character in map(chr, range(0x110000)) if character.isspace()}
