"""The law of any moment: a log's state as of N is its state when N was its head, and the fold of its first N
records. Projections of a few kinds of records need no others.
"""

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from everlog.actors.prompt.context import context_of, is_configured
from everlog.events import (
    ApprovalDecided,
    ApprovalRequested,
    BlockRemoved,
    Draft,
    Record,
    SummaryExpanded,
    draft,
    is_erased,
    place,
    uuid7,
)
from everlog.projections import DERIVER, HEAD, Projections, activate
from everlog.projections.engine_pool import EnginePool
from everlog.projections.narrow_rows import READ_KINDS, narrow_rows
from everlog.store import FileStore
from tests.laws.test_projections import BIRTH, STREAMS, loaded, tables
from tests.laws.test_resume_from_states import table_of
from tests.support import event_strategies
from tests.support.law import law
from tests.support.store.faulty_disk import FaultyDisk

LIVES = event_strategies.lives(BIRTH)
CLOSE = patch.multiple("everlog.store.sealed.checkpoints", CHECKPOINT_RECORDS=8, MARK_RECORDS=2)
"""Checkpoint intervals for short streams."""


def drafted(record: Record) -> Draft:
    return Draft(**{field: getattr(record, field) for field in Draft.__struct_fields__})


@st.composite
def expanding(draw: st.DrawFn) -> list[Record]:
    """Draw a stream with some undone summaries."""
    records = draw(STREAMS | LIVES)
    assume(not any(is_erased(record.payload) for record in records))
    left = [drafted(record) for record in records]
    for number in range(draw(st.integers(0, 2))):
        at = draw(st.integers(len(BIRTH), len(left)))
        event = SummaryExpanded(summary_seq=1, kept_from=draw(st.integers(1, at)))
        left.insert(at, draft(event, event_id=uuid7(10**9, number), recorded_at=10**9, turn=left[at - 1].turn, step=0))
    return [place(one, "sam", n, n) for n, one in enumerate(left, 1)]


@law(expanding(), st.data(), few=2, many=40)
def test_as_of_any_seq_by_way_of_checkpoints_is_the_fold_of_the_records_up_to_it(
    records: list[Record], data: st.DataObject
) -> None:
    """With seals at any records, every projection as of a seq is what it was when that seq was the head."""
    store = FileStore.create(Path("/law"), lambda: 10**9, "law", disk=FaultyDisk())
    store.register("sam")
    log = store.open("sam", "law")
    seals = data.draw(st.sets(st.integers(1, len(records)), max_size=2))
    with CLOSE:
        for record in records:
            log.append("sam", record.seq - 1, [drafted(record)])
            if record.seq in seals:
                log.seal(DERIVER)
    log.close()
    reader = store.reader("sam")
    for seq in data.draw(st.lists(st.integers(1, len(records)), min_size=1, max_size=2)):
        with Projections() as then, loaded(records[:seq]) as fold:
            activate(then, reader, "sam", seq)
            assert context_rows(then) == context_rows(fold)
            assert tables(then) == tables(fold)


def context_rows(engine: Projections) -> object:
    """Return the context as the renderer gets it; None without a configuration."""
    rows = engine.rows("context_window", "sam")
    return context_of("sam", HEAD, rows) if is_configured(rows) else None


def test_the_law_is_about_checkpoints() -> None:
    """A long stream has states and chain values in its middle, so the law above really reads checkpoints."""
    store = FileStore.create(Path("/law"), lambda: 10**9, "law", disk=FaultyDisk())
    store.register("sam")
    log = store.open("sam", "law")
    drafts = [draft(event, event_id=uuid7(n, n), recorded_at=n, turn=0, step=0) for n, event in enumerate(BIRTH * 9, 1)]
    log.append("sam", 0, drafts)
    with CLOSE:
        log.seal(DERIVER)
    found = {state.seq for seq in range(1, len(drafts)) if (state := log.state("sam", DERIVER.maker, seq)) is not None}
    assert found == set(range(8, len(drafts) - 8, 8))
    log.close()


@st.composite
def asking(draw: st.DrawFn) -> list[Record]:
    """Draw a stream with calls that ask for an approval, decisions, and blocks that are removed."""
    records = draw(STREAMS | LIVES)
    assume(not any(is_erased(record.payload) for record in records))
    left = [drafted(record) for record in records]
    for number in range(draw(st.integers(1, 5))):
        at = draw(st.integers(len(BIRTH), len(left)))
        event = draw(
            st.builds(ApprovalRequested, call_id=st.just("c"), name=st.just("f"), arguments=st.just("{}"))
            | st.builds(ApprovalDecided, request=st.integers(1, len(left)), call_id=st.just("c"), name=st.just("f"))
            | st.builds(BlockRemoved, label=st.sampled_from(["persona", "human"]))
        )
        left.insert(at, draft(event, event_id=uuid7(10**9, number), recorded_at=10**9, turn=left[at - 1].turn, step=0))
    return [place(one, "sam", n, n) for n, one in enumerate(left, 1)]


def reader_of(records: list[Record]) -> SimpleNamespace:
    """Return a reader of a log that has these records."""

    def table(_: str, first: int = 1, last: int | None = None) -> object:
        return table_of([one for one in records if first <= one.seq <= (HEAD if last is None else last)])

    return SimpleNamespace(table=table)


def plain(rows: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, rows))


@law(asking() | LIVES, st.data(), few=3, many=300)
def test_rows_from_the_kinds_that_are_read_are_the_rows_of_all_records(
    records: list[Record], data: st.DataObject
) -> None:
    """At any moment each projection is the same; from any record on, the calls that asked since then are the same."""
    reader, pool = reader_of(records), EnginePool(1)
    seq = data.draw(st.integers(1, len(records)))
    since = data.draw(st.integers(1, seq))
    with loaded(records[:seq]) as whole:
        for name in READ_KINDS:
            with pool.engine("sam") as engine:
                assert plain(narrow_rows(engine, name, reader, "sam", to_seq=seq)) == plain(whole.rows(name, "sam"))
        asked = [row for row in whole.rows("approvals", "sam") if row["seq"] >= since]
        with pool.engine("sam") as engine:
            assert plain(narrow_rows(engine, "approvals", reader, "sam", since, seq)) == plain(asked)
    pool.close()


def test_an_engine_that_was_given_back_holds_nothing_of_its_last_agent() -> None:
    """The next question gets an empty engine, and the pool keeps no more engines than it may."""
    pool = EnginePool(1)
    first, second = pool.take(), pool.take()
    first.load(table_of(BIRTH_RECORDS))
    pool.give_back(first, "sam")
    pool.give_back(second, "sam")
    assert pool.take() is first
    assert first.rows("core_memory", "sam") == []
    with pytest.raises(Exception, match="closed"):
        second.rows("core_memory", "sam")
    first.close()


def test_a_broken_engine_is_not_kept() -> None:
    """An engine that cannot forget its agent is closed, and the next question gets a new one."""
    pool = EnginePool(1)
    engine = pool.take()
    engine.close()
    pool.give_back(engine, "sam")
    again = pool.take()
    assert again is not engine
    assert isinstance(again, Projections)
    again.close()


BIRTH_RECORDS = [
    place(draft(event, event_id=uuid7(n, n), recorded_at=n, turn=0, step=0), "sam", n, n)
    for n, event in enumerate(BIRTH, 1)
]
