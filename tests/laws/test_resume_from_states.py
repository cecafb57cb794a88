"""Laws of states: an engine that continues from a state equals one that has read every record (P11, P13)."""

import msgspec
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from everlog.actors.prompt.context import context_of
from everlog.events import (
    ApprovalDecided,
    ApprovalRequested,
    ArchivalInserted,
    Call,
    Heartbeat,
    MemoryEdited,
    MessageSent,
    ModelReply,
    Record,
    Summary,
    SummaryExpanded,
    TimerCancelled,
    TimerSet,
    Usage,
    UserMessage,
    draft,
    event_of,
    place,
    uuid7,
)
from everlog.projections import DERIVER, HEAD, ArchivalSearch, Projections, RecallSearch
from everlog.projections.resumed_agents import kept_from, shown_from
from everlog.store import SCHEMA, States, batch_of
from tests.laws.test_projections import BIRTH, STREAMS, loaded, small_life, tables
from tests.support import event_strategies
from tests.support.law import law
from tests.support.seeds import few_and_all, pick

LIVES = event_strategies.lives(BIRTH)

PRESENT = (
    "configurations", "context_window", "core_memory", "memory_pressure", "open_turns", "sources", "standing",
    "timers", "turn_records",
)  # fmt: skip
PAST = ("agents", "recall_memory", "archival_memory", "turns", "summaries", "memory_history")


def table_of(records: list[Record]) -> pa.Table:
    return pa.Table.from_batches([batch_of(records)] if records else [], SCHEMA)


class _Shelf:
    """The part of a log's reader that an engine needs for an agent."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self.read: list[int] = []
        """Seqs up to which all records were read."""

    def table(self, _agent_id: str, _from_seq: int, head: int) -> pa.Table:
        self.read.append(head)
        return table_of([record for record in self._records if record.seq <= head])

    def states(self, _maker: None, agents: list[str]) -> list[States]:
        return [States(agents, None, table_of(self._records))]


def resumed(records: list[Record], cut: int) -> Projections:
    """Return an engine that has the state after `cut` records, and can read the earlier records on demand."""
    engine = Projections()
    rows = DERIVER(None, table_of(records[:cut]))
    engine.resume(rows, {"sam": _Shelf(records)})  # type: ignore[dict-item]
    return engine


def rows_of(engine: Projections, names: tuple[str, ...]) -> dict[str, list[str]]:
    return {name: sorted(map(repr, engine.rows(name, "sam", HEAD))) for name in names}


@law(STREAMS | LIVES, st.data(), few=2, many=100)
def test_p11_a_state_and_later_records_equal_all_records(records: list[Record], data: st.DataObject) -> None:
    """Resumed at any record, with the rest loaded or added, the present rows are equal, and so are the past rows once
    they are read.
    """
    cut = data.draw(st.integers(1, len(records)))
    middle = data.draw(st.integers(cut, len(records)))
    with loaded(records) as whole, resumed(records, cut) as engine:
        engine.load(table_of(records[cut:middle]))
        for record in records[middle:]:
            engine.add([record])
        assert rows_of(engine, PRESENT) == rows_of(whole, PRESENT)
        assert rows_of(engine, PAST) == rows_of(whole, PAST)
        assert rows_of(engine, PRESENT) == rows_of(whole, PRESENT)


@law(STREAMS | LIVES, st.data(), few=2, many=100)
def test_p11_a_state_of_a_state_is_the_state_of_all_records(records: list[Record], data: st.DataObject) -> None:
    """Derived in steps or at once, the rows are equal; if an undone summary shows more records again, there are no
    rows.
    """
    cut = data.draw(st.integers(1, len(records)))
    earlier = DERIVER(None, table_of(records[:cut]))
    in_steps = DERIVER(earlier, table_of(records[cut:]))
    at_once = DERIVER(None, table_of(records))
    shown = kept_from(earlier).get("sam", 0)
    summaries = [r for r in records[cut:] if r.type in ("summary", "summary_expanded")]
    if any(shown_from(record.payload) < shown for record in summaries):
        assert in_steps.num_rows == 0
    else:
        assert in_steps.to_pylist() == at_once.to_pylist()
    assert DERIVER(earlier, SCHEMA.empty_table()).to_pylist() == earlier.to_pylist()


def asked(engine: Projections, seq: int) -> dict[str, object]:
    """Return what all projections and searches say of the past, now and as of a seq."""
    found: dict[str, object] = {"now": tables(engine), "then": tables(engine, seq)}
    for moment in (seq, HEAD):
        recall, archive = RecallSearch(engine, "sam", moment), ArchivalSearch(engine, "sam", moment)
        found[f"said by {moment}"] = list(recall.recall("hello sail boat", 0, 100))
        found[f"days by {moment}"] = list(recall.recall_between("1970-01-01", "2100-01-01", 0, 100))
        found[f"kept by {moment}"] = (
            archive.places(),
            list(archive.listed(0, 100)),
            archive.holding("kept"),
            archive.sources(),
        )
    return found


@law(STREAMS | LIVES, st.data(), few=4, many=100)
def test_p11_an_engine_that_leaves_the_past_to_the_log_gives_the_same_answers(
    records: list[Record], data: st.DataObject
) -> None:
    """Shrunk to its state after any records, and then extended, an engine says the same of now as one with all rows in
    memory; so do all projections and searches of any moment, and again those of now.
    """
    cuts = data.draw(st.sets(st.integers(1, len(records)), min_size=1, max_size=4))
    seq = data.draw(st.integers(1, len(records)))
    with loaded(records) as whole, Projections() as engine:
        for number, record in enumerate(records, 1):
            engine.add([record])
            if number in cuts:
                engine.shrink({"sam": _Shelf(records)})  # type: ignore[dict-item]
                assert engine.surplus(0) == []
        assert rows_of(engine, PRESENT) == rows_of(whole, PRESENT)
        assert asked(engine, seq) == asked(whole, seq)
        assert rows_of(engine, PRESENT) == rows_of(whole, PRESENT)


def test_a_shrunk_agent_reads_its_log_for_its_past_only_and_keeps_its_talk() -> None:
    """Shrinking an agent leaves the words that searches keep; a search reads nothing, a question about the past reads
    the history once, and that leaves the words, too.
    """
    records = counted_life()
    shelf = _Shelf(records)
    with Projections() as engine:
        engine.add(records)
        said = len(RecallSearch(engine, "sam", HEAD).talk())
        engine.shrink({"sam": shelf})  # type: ignore[dict-item]
        assert len(RecallSearch(engine, "sam", HEAD).talk()) == said
        assert rows_of(engine, PRESENT)
        assert not shelf.read
        assert len(engine.rows("recall_memory", "sam")) == said
        assert len(engine.rows("summaries", "sam")) == 2
        assert shelf.read == [len(records)]
        assert engine.caches.talks.knows("sam")
        assert engine.caches.memories.known("sam", HEAD) is not None


@law(STREAMS, st.data(), few=2, many=100)
def test_undone_turns_stay_undone_after_a_resume_from_a_state(records: list[Record], data: st.DataObject) -> None:
    """The context, without hidden turns and with reworded replies, equals that of all records, resumed at any record,
    and after the newest summary is undone completely.
    """
    cut = data.draw(st.integers(1, len(records)))
    place_of = {"recorded_at": 0, "turn": 9, "step": 0}
    back = draft(SummaryExpanded(summary_seq=1, kept_from=1), event_id=uuid7(10**9, 1), **place_of)
    expanded = [*records, place(back, "sam", len(records) + 1, len(records) + 1)]
    with loaded(records) as whole, resumed(records, cut) as engine:
        for record in records[cut:]:
            engine.add([record])
        assert context_of("sam", HEAD, engine.rows("context_window", "sam")) == context_of(
            "sam", HEAD, whole.rows("context_window", "sam")
        )
        engine.add(expanded[-1:])
        seen = context_of("sam", HEAD, engine.rows("context_window", "sam"))
    with loaded(expanded) as whole:
        assert seen == context_of("sam", HEAD, whole.rows("context_window", "sam"))
    hidden = hidden_turns(records)
    assert all(m.turn not in hidden for m in seen.messages)


def hidden_turns(records: list[Record]) -> set[int]:
    """Return the turns that were hidden in the newest incarnation."""
    born = max((r.seq for r in records if r.type == "agent_created"), default=1)
    hidden = [event_of(r) for r in records if r.type == "turns_hidden" and r.seq >= born]
    return {turn for event in hidden for turn in event.turns}


@pytest.mark.parametrize("over", ["cancelled", "fired", "decided"])
def test_what_is_over_does_not_come_back_with_the_turn_that_began_it(over: str) -> None:
    """A timer that was cancelled or has fired, and a call that was decided, are over also for an engine that continues
    from a state which has the turn that began them, for the sake of an edit of memory, and not the turn that ended
    them. If the turn that began them is still open, the state has all of it.
    """
    reply = ModelReply(text="hm", usage=Usage(9, 1, 10), context_sha256="0", context_bytes=9)
    edit = MemoryEdited(text="Bob", label="human", operation="appended", limit=2000)
    begun = {
        "decided": ApprovalRequested(call_id="d", name="delete", arguments="{}", expires_at=10**12)
    }.get(over, TimerSet(text="t", timer="a", due_at=10**9))  # fmt: skip
    head = len(BIRTH)
    ended = {
        "cancelled": TimerCancelled(timer="a"),
        "fired": Heartbeat(reason="timer", timer="a"),
        "decided": ApprovalDecided(request=head + 4, call_id="d", name="delete", decision="refused"),
    }[over]
    for calls in ([], [Call("open", "f", "{}")]):
        replied = msgspec.structs.replace(reply, calls=calls)
        first = [(UserMessage(text="u"), 1, 0), (replied, 1, 1), (edit, 1, 1), (begun, 1, 1)]
        second = [(UserMessage(text="u"), 2, 0), (reply, 2, 1), (ended, 3, 0), (reply, 3, 1)]
        rest = [(event, turn, step) for turn in (4, 5) for step, event in enumerate((UserMessage(text="u"), reply))]
        left = [*((event, 0, 0) for event in BIRTH), *first, *second, *rest]
        last = len(left)
        summary = Summary(text="s", covers_from=1, covers_to=last - 2, kept_from=last - 1, hidden=1, total=2,
                          summarized=1)  # fmt: skip
        records = [
            place(draft(event, event_id=uuid7(n, n), recorded_at=n, turn=turn, step=step), "sam", n, n)
            for n, (event, turn, step) in enumerate([*left, (summary, 5, 1)], 1)
        ]
        with loaded(records) as whole, resumed(records, len(records)) as engine:
            assert whole.rows("timers", "sam") == []
            assert rows_of(engine, PRESENT) == rows_of(whole, PRESENT)


def counted_life() -> list[Record]:
    """Return a stream with a summary, then messages and memories that no context shows, then changes that are
    counted.
    """
    place_of = {"recorded_at": 0, "turn": 2, "step": 1}
    life = small_life()
    head = len(life)
    later = [
        Summary(text="s", covers_from=1, covers_to=head - 1, kept_from=head, hidden=1, total=2, summarized=1),
        MessageSent(text="said after it", call_id="c"),
        ArchivalInserted(text="kept after it"),
        MemoryEdited(label="human", operation="appended", text="Bob", limit=2000),
        MessageSent(text="and again", call_id="c"),
        Summary(text="t", covers_from=1, covers_to=head, kept_from=head, hidden=1, total=2, summarized=1),
    ]
    return life + [
        place(draft(event, event_id=uuid7(10**9 + n, n), **place_of), "sam", head + n, head + n)
        for n, event in enumerate(later, 1)
    ]


@pytest.mark.parametrize("count", few_and_all(8, part="laws"))
def test_the_counts_do_not_depend_on_where_the_records_were_cut(count: int | None) -> None:
    """Loaded up to any record, or resumed there, and then extended, the header has the same counts."""
    records = counted_life()
    with loaded(records) as whole:
        expected = rows_of(whole, ("context_window",))
    for cut in pick(range(1, len(records)), count, label="cuts of a life"):
        with loaded(records[:cut]) as engine, resumed(records, cut) as other:
            for record in records[cut:]:
                engine.add([record])
                other.add([record])
            assert rows_of(engine, ("context_window",)) == expected, cut
            assert rows_of(other, ("context_window",)) == expected, cut


def test_many_moments_of_a_resumed_agent_can_be_asked_for_at_once() -> None:
    """One query over several moments of one agent makes the engine read its history once, and each row is right."""
    records = counted_life()
    wanted = [("sam", seq) for seq in range(1, len(records))]
    with loaded(records) as whole, resumed(records, len(records)) as engine:
        for name in ("context_window", "agents"):
            assert sorted(map(repr, engine.batch(name, wanted))) == sorted(map(repr, whole.batch(name, wanted)))
