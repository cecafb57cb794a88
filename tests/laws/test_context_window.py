"""Laws of `context_window`: its rows are what the model sees, with everything applied that was taken back since."""

from collections.abc import Sequence

from hypothesis import strategies as st

from everlog.actors.prompt.context import context_of, is_configured
from everlog.events import (
    ArchivalDeleted,
    ArchivalInserted,
    ContextTrimmed,
    Event,
    FunctionResult,
    MemoryEdited,
    MessageSent,
    ModelReply,
    ModelSwitched,
    Record,
    ReplyRejected,
    ReplyRethought,
    Summary,
    SystemAlert,
    TurnsHidden,
    UserMessage,
    draft,
    place,
    uuid7,
)
from everlog.projections import HEAD, Projections, Row
from everlog.projections.hot.kept_contexts import FOLLOWED
from everlog.projections.sql_catalogue import CHANGES, batch_query
from tests.laws import context_reference
from tests.laws.test_projections import BIRTH, STREAMS, loaded
from tests.support import event_strategies
from tests.support.law import law

LIVES = event_strategies.lives(BIRTH)


def kind_of(row: Row) -> str:
    """Return what a row of `context_window` is for the model; empty if it is not shown."""
    if row["message"]:
        heeded = {"model_switched": "switch", "reply_rejected": "refused"}
        return "message" if context_reference.erased(row) else heeded.get(row["type"], "message")
    if row["slot"].startswith("block:"):
        return "block" if row["type"] == "memory_edited" else ""
    return row["slot"] if row["slot"] in ("config", "summary") else ""


def assert_agrees(engine: Projections, records: Sequence[Record], seq: int, turn: int) -> None:
    """Compare the rows for a call in `turn` as of `seq` with the reference."""
    made_of = engine.rows("context_records", "sam", seq)
    rows = list(engine.answers("context_window", [("sam", seq, turn)])[0])
    seen = [(kind, row) for row in rows if (kind := kind_of(row))]
    assert [(kind, row["seq"], row["text"], row["shown_chars"]) for kind, row in seen] == context_reference.parts(
        made_of, turn
    )
    if is_configured(rows):
        assert rows[0]["warned"] == context_reference.warned(made_of, turn)
    counted = [(row["recall"], row["archival"], row["at"]) for row in rows if row["recall"] is not None]
    assert counted == [context_reference.header(made_of)] * len(counted)
    assert len(counted) == 1 or not made_of
    newest = [row["seq"] for row in made_of if row["slot"] == "reply"]
    assert {row["seq"] for row in rows} >= set(newest[-1:])


@law(STREAMS | LIVES, st.data(), few=2, many=120)
def test_the_rows_are_what_the_model_sees(records: list[Record], data: st.DataObject) -> None:
    """As of any record, and for a call in any turn, order, words, lengths, warning and header are the reference's."""
    with loaded(records) as engine:
        for seq in data.draw(st.lists(st.integers(1, len(records)), min_size=1, max_size=4, unique=True)):
            assert_agrees(engine, records, seq, data.draw(st.integers(0, 8)))
            assert_agrees(engine, records, seq, HEAD)


@law(STREAMS | LIVES, few=2, many=60)
def test_agents_with_unchanged_contexts_have_the_same_rows_by_the_shorter_query(records: list[Record]) -> None:
    """Without records that change how others are shown, the query without their joins returns the same rows in the same
    order.
    """
    with loaded([record for record in records if record.type not in CHANGES]) as engine:
        for name in ("context_window", "memory_pressure"):
            whole, short = (
                engine.query(batch_query(name, changed=changed), [["sam"], [HEAD]]) for changed in (True, False)
            )
            assert whole == short, name


def told(*events: tuple[Event, int]) -> list[Record]:
    """Return a life with these (event, turn) after a creation."""
    life = [*((event, 0) for event in BIRTH), *events]
    return [
        place(draft(e, event_id=uuid7(n * 1000, n), recorded_at=n * 1000, turn=t, step=1 if t else 0), "sam", n, n)
        for n, (e, t) in enumerate(life, start=1)
    ]


def test_everything_that_is_taken_back_is_taken_back_in_sql() -> None:
    """A hidden turn is out, a trimmed block and record show their beginning, a thought has its new words, a switch and
    a refusal are marked, and the first row says that the agent was warned.
    """
    first = len(BIRTH) + 1
    reply = ModelReply(text="hm", context_sha256="0", context_bytes=9)
    records = told(
        (UserMessage(text="one"), 1),
        (reply, 1),
        (SystemAlert(text="full", source="memory_pressure"), 1),
        (UserMessage(text="two"), 2),
        (reply, 2),
        (UserMessage(text="a long story"), 3),
        (ContextTrimmed(target_seq=first + 5, shown_chars=6), 3),
        (ContextTrimmed(label="human", shown_chars=3), 3),
        (ReplyRethought(text="aha", target_seq=first + 1), 3),
        (TurnsHidden(turns=[2]), 3),
        (ModelSwitched(to="other", model="scripted", failure="server", window=1000), 3),
        (ReplyRejected(text="no", attempt=1, shown=True), 3),
    )
    with Projections() as engine:
        engine.add(records)
        rows = engine.rows("context_window", "sam")
    assert [(kind_of(row), row["text"], row["shown_chars"]) for row in rows if row["turn"]] == [
        ("message", "one", None),
        ("message", "aha", None),
        ("message", "full", None),
        ("", "hm", None),
        ("message", "a long story", 6),
        ("switch", None, None),
        ("refused", "no", None),
    ]
    assert [row["shown_chars"] for row in rows if kind_of(row) == "block"] == [None, 3]
    assert rows[0]["warned"]
    assert {row["type"]: row["threshold"] for row in rows}["model_switched"] == 750
    assert rows[0]["threshold"] == 0.75 * 8192


@law(STREAMS | LIVES, st.data(), few=2, many=80)
def test_a_kept_context_is_that_of_the_whole_statement(records: list[Record], data: st.DataObject) -> None:
    """After every commit and for a call in any turn, a context that is kept has the rows of the whole statement, in the
    same order, also if several calls are asked about at once, and makes the same context.
    """
    kinds = data.draw(st.sampled_from([{record.type for record in records} - CHANGES, FOLLOWED, None]))
    left = [r for place, r in enumerate(records) if kinds is None or place < len(BIRTH) or r.type in kinds]
    with Projections() as engine:
        while left:
            size = data.draw(st.integers(1, 4))
            engine.add(left[:size])
            del left[:size]
            turns = data.draw(st.lists(st.integers(0, 8) | st.just(HEAD), max_size=2, unique=True))
            whole = batch_query("context_window", in_turns=True)
            for answer, turn in zip(
                engine.answers("context_window", [("sam", HEAD, turn) for turn in turns]), turns, strict=True
            ):
                rows = engine.query(whole, [["sam"], [HEAD], [turn]])
                assert list(answer) == rows
                if is_configured(rows):
                    assert context_of("sam", HEAD, answer, turn) == context_of("sam", HEAD, rows, turn)


OFTEN = ("said", "replied", "returned", "told")
STEPS = st.tuples(
    st.sampled_from((*OFTEN, *OFTEN, "waits", "edited", "warned", "summarized", "archived", "unarchived", "rest")),
    st.integers(0, 9),
)


def written(step: str, number: int, seq: int) -> Event:
    """Return the event of a step of an agent at work."""
    match step:
        case "said" | "waits":
            return UserMessage(text=f"message {number}")
        case "replied":
            return ModelReply(text=f"reply {number}", context_sha256="0", context_bytes=9)
        case "returned":
            return FunctionResult(name="f", call_id="c", text=f"result {number}", ok=True)
        case "told":
            return MessageSent(text=f"answer {number}")
        case "edited":
            return MemoryEdited(
                label=("human", "persona", "a", "z")[number % 4], operation="set", text=str(number), limit=9
            )
        case "warned":
            return SystemAlert(text="full", source="memory_pressure" if number % 4 else "manual")
        case "summarized":
            since = max(1, seq - 2 * number)
            return Summary(
                text=str(number), covers_from=1, covers_to=9, kept_from=since, hidden=1, total=2, summarized=1
            )
        case "archived":
            return ArchivalInserted(text="a fact")
        case _:
            return ArchivalDeleted(memory_id=f"{number}")


@law(st.lists(STEPS, min_size=4, max_size=30), few=12, many=400)
def test_a_context_at_work_is_followed_without_a_query(steps: list[tuple[str, int]]) -> None:
    """While an agent talks, remembers, is warned and summarizes, its context stays kept, and has the rows of the whole
    statement; so has the one that is read by the bounds that were followed, after a rest.
    """
    records, turn, shown_from = told(), 1, 0
    with Projections() as engine:
        engine.add(records)
        whole = batch_query("context_window", in_turns=True)
        engine.answers("context_window", [("sam", HEAD, turn)])
        for step, number in steps:
            was_kept = engine.known("context_window", ("sam", HEAD, turn)) is not None
            if step == "rest":
                engine.rest()
            else:
                turn += step == "said"
                event, seq = written(step, number, len(records) + 1), len(records) + 1
                made = draft(event, event_id=uuid7(seq, seq), recorded_at=seq, turn=turn + (step == "waits"), step=1)
                records.append(place(made, "sam", seq, seq))
                engine.add(records[-1:])
                since = event.kept_from if isinstance(event, Summary) else shown_from
                is_kept = engine.known("context_window", ("sam", HEAD, turn)) is not None
                assert is_kept == (was_kept and since >= shown_from)
                shown_from = since
            during = turn if number % 2 else HEAD
            rows = list(engine.answers("context_window", [("sam", HEAD, during)])[0])
            assert rows == engine.query(whole, [["sam"], [HEAD], [during]])
