"""The law of any moment: a log's state as of N is its state when N was its head, and the fold of its first N
records.
"""

from pathlib import Path
from unittest.mock import patch

from hypothesis import assume
from hypothesis import strategies as st

from everlog.actors.prompt.context import context_of, is_configured
from everlog.events import Draft, Record, SummaryExpanded, draft, is_erased, place, uuid7
from everlog.projections import DERIVER, HEAD, Projections, activate
from everlog.store import FileStore
from tests.laws.test_projections import BIRTH, STREAMS, loaded, tables
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


@law(expanding(), st.data(), few=3, many=40)
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
