"""Laws of the projections: the tables are equal however the records were added, now and as of an earlier moment."""

import msgspec
import pyarrow as pa
from hypothesis import strategies as st

from everlog.actors.agent import agent_setup
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.prompt.context import context_of, is_configured
from everlog.events import (
    Call,
    FunctionResult,
    MessageSent,
    ModelReply,
    Record,
    Summary,
    SummaryExpanded,
    Usage,
    UserMessage,
    draft,
    place,
    uuid7,
)
from everlog.projections import HEAD, PROJECTIONS, Projections, RecallSearch
from everlog.store import batch_of
from tests.support import event_strategies
from tests.support.law import law

TOOLS = {tool.name: tool for tool in BUILTIN}
ASKED = agent_setup.Settings(model="scripted", window=8192)
BIRTH = tuple(agent_setup.birth("sam", ASKED, agent_setup.configuration(ASKED, None, TOOLS, {})))
STREAMS = event_strategies.streams(birth=BIRTH)


def loaded(records: list[Record]) -> Projections:
    engine = Projections()
    engine.load(pa.Table.from_batches([batch_of(records)]))
    return engine


def tables(engine: Projections, as_of: int = HEAD) -> dict[str, object]:
    """Return every projection as plain rows in one order; checksums compare engines, rows explain a difference."""
    return {
        name: sorted(
            ({k: str(v) for k, v in row.items() if k != "as_of"} for row in engine.rows(name, "sam", as_of)), key=repr
        )
        for name in PROJECTIONS
    }


@law(STREAMS, st.data(), few=2, many=60)
def test_incremental_equals_rebuilt_equals_rebuilt_from_any_cut(records: list[Record], data: st.DataObject) -> None:
    """Added commit by commit, loaded at once, or loaded up to a record and then added commit by commit, the tables are
    equal.
    """
    cut = data.draw(st.integers(0, len(records)))
    whole = loaded(records)
    with Projections() as step_by_step, Projections() as from_cut:
        for record in records:
            step_by_step.add([record])
        if cut:
            from_cut.load(pa.Table.from_batches([batch_of(records[:cut])]))
        from_cut.add(records[cut:])
        expected = tables(whole)
        assert tables(step_by_step) == expected
        assert tables(from_cut) == expected
        assert all(
            len({engine.checksum(name, "sam") for engine in (whole, step_by_step, from_cut)}) == 1
            for name in PROJECTIONS
        )
    whole.close()


@law(STREAMS, st.data(), few=2, many=60)
def test_as_of_a_seq_is_the_state_when_that_seq_was_the_head(records: list[Record], data: st.DataObject) -> None:
    """Later records never change a projection as of an earlier moment."""
    seq = data.draw(st.integers(1, len(records)))
    now, then = loaded(records), loaded(records[:seq])
    assert tables(now, as_of=seq) == tables(then)
    now.close()
    then.close()


def test_a_summary_hides_records_from_the_context_alone_until_it_is_undone() -> None:
    """The context shows what a summary covers again when the summary is undone; a search finds the same results
    meanwhile.
    """
    life = small_life()
    head = len(life)
    covered = head - 3
    place_of = {"recorded_at": 0, "turn": 2, "step": 0}
    summary = Summary(
        text="s", covers_from=1, covers_to=covered, kept_from=covered + 1, hidden=1, total=2, summarized=1
    )
    expanded = SummaryExpanded(summary_seq=head + 1, kept_from=1)
    with Projections() as engine:
        engine.add(life)
        found = RecallSearch(engine, "sam", HEAD).recall("hello", 0, 5)
        engine.add([place(draft(summary, event_id=uuid7(1, 1), **place_of), "sam", head + 1, head + 1)])
        assert _first_shown(engine) > covered
        assert RecallSearch(engine, "sam", HEAD).recall("hello", 0, 5) == found
        engine.add([place(draft(expanded, event_id=uuid7(1, 2), **place_of), "sam", head + 2, head + 2)])
        assert _first_shown(engine) < covered
        assert RecallSearch(engine, "sam", HEAD).recall("hello", 0, 5) == found


def _first_shown(engine: Projections) -> int:
    """Return the seq of the first record that the context shows as a message."""
    return min(row["seq"] for row in engine.rows("context_records", "sam") if row["shown"])


@law(STREAMS, few=2, many=80)
def test_the_context_and_the_projection_agree_on_memory_pressure(records: list[Record]) -> None:
    """At any moment `memory_pressure` equals the context that decides on the warning."""
    engine = loaded(records)
    moments = [("sam", record.seq) for record in records]
    pressures = {row["as_of"]: row for row in engine.batch("memory_pressure", moments)}
    rows = engine.batch("context_window", moments)
    for as_of, pressure in pressures.items():
        seen = [row for row in rows if row["as_of"] == as_of]
        if not is_configured(seen):
            continue
        context = context_of("sam", as_of, seen)
        assert (context.threshold, context.warned) == (pressure["threshold"], pressure["warned"])
        assert (context.config.window, context.config.pressure_fraction) == (pressure["window"], pressure["fraction"])
    engine.close()


def many(count: int) -> tuple[Projections, list[tuple[str, int]]]:
    """Return an engine with `count` agents with equal records, and a pair (agent, as_of) for each."""
    stream = small_life()
    records, wanted = [], []
    for number in range(count):
        name = f"agent-{number}"
        records.extend(place_again(record, name) for record in stream)
        wanted.append((name, len(stream) - number % 3))
    engine = Projections()
    engine.load(pa.Table.from_batches([batch_of(records)]))
    return engine, wanted


def place_again(record: Record, name: str) -> Record:
    return msgspec.structs.replace(record, agent_id=name)


def small_life() -> list[Record]:
    life = [(event, 0, 0) for event in BIRTH]
    for turn in (1, 2):
        life += [
            (UserMessage(text=f"hello {turn}"), turn, 0),
            (
                ModelReply(
                    calls=[Call("c", "send_message", "{}")],
                    usage=Usage(90, 10, 100),
                    context_sha256="0",
                    context_bytes=9,
                ),
                turn,
                1,
            ),
            (MessageSent(text="hi", call_id="c"), turn, 1),
            (FunctionResult(call_id="c", name="send_message"), turn, 1),
        ]
    return [
        place(draft(e, event_id=uuid7(n * 1000, n), recorded_at=n * 1000, turn=t, step=s), "sam", n, n)
        for n, (e, t, s) in enumerate(life, start=1)
    ]


def test_the_batched_form_answers_for_one_and_for_a_thousand_agents() -> None:
    """One query over 1,000 (agent, as_of) pairs returns for each agent what its own query returns."""
    engine, wanted = many(1000)
    for name in PROJECTIONS:
        rows = engine.batch(name, wanted)
        for agent_id, as_of in (wanted[0], wanted[500], wanted[999]):
            alone = engine.batch(name, [(agent_id, as_of)])
            among = [row for row in rows if row["agent_id"] == agent_id]
            assert sorted(map(repr, among)) == sorted(map(repr, alone)), name
    assert len(engine.batch("agents", wanted)) == 1000
    engine.close()


def test_people_can_use_every_projection_as_a_macro_alone_and_lateral() -> None:
    """`FROM wanted, LATERAL name(agent_id, as_of)` returns the rows of the batched form."""
    engine, wanted = many(3)
    values = ", ".join(f"('{agent}', {as_of})" for agent, as_of in wanted)
    for name in PROJECTIONS:
        batched = engine.batch(name, wanted)
        lateral = engine.sql(
            f"SELECT m.* FROM (VALUES {values}) AS wanted(agent_id, as_of), "
            f"LATERAL {name}(wanted.agent_id, wanted.as_of) AS m"
        )
        alone = engine.sql(f"SELECT * FROM {name}('{wanted[0][0]}', {wanted[0][1]})")
        assert sorted(map(repr, lateral)) == sorted(map(repr, batched)), name
        assert sorted(map(repr, alone)) == sorted(repr(r) for r in batched if r["agent_id"] == wanted[0][0]), name
    engine.close()


def test_any_name_can_be_asked_for() -> None:
    """Quotes, line breaks, NUL and SQL syntax are ordinary characters of a name."""
    names = ["o'hara", "a''b", "x'); DROP TABLE records; --", "nul\0name", "line\nbreak", "né 🌊", "\\"]
    records = [place_again(record, name) for name in names for record in small_life()]
    engine = loaded(records)
    rows = engine.batch("agents", [(name, HEAD) for name in names])
    assert sorted(row["agent_id"] for row in rows) == sorted(names)
    assert engine.rows("context_window", "x'); DROP TABLE records; --")
    engine.close()
