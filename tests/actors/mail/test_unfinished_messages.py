"""Laws of messages between agents: what a host looks at is what `agent_messages` says, however the records came."""

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from everlog.actors.mail.open_messages import OpenMessages
from everlog.events import Record, is_erased
from everlog.projections import HEAD, Projections
from tests.laws.test_projections import BIRTH, loaded
from tests.laws.test_resume_from_states import resumed
from tests.support import event_strategies
from tests.support.law import law

LIVES = event_strategies.lives(BIRTH)
OPEN = ("pending", "waiting", "working", "ready")


def unfinished(engine: Projections, as_of: int = HEAD) -> list[str]:
    """Return the rows of the messages that are not over, as texts."""
    return texts(engine.rows("unfinished_messages", "sam", as_of))


def texts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return rows as texts that can be compared: without the moment and the turns, and in the order of the log."""
    left_out = {"agent_id", "as_of", "turns"}
    return sorted(repr(sorted((key, row[key]) for key in row.keys() - left_out)) for row in rows)


def expected(engine: Projections, as_of: int = HEAD) -> list[str]:
    """Return the same rows of `agent_messages`."""
    rows = engine.rows("agent_messages", "sam", as_of)
    return texts(row for row in rows if row["state"] in OPEN)


@law(LIVES, st.data(), few=2, many=300)
def test_unfinished_messages_are_rows_of_all_messages(records: list[Record], data: st.DataObject) -> None:
    """Loaded or resumed from a state at any record, now or as of any record, and with later records added."""
    as_of = data.draw(st.integers(1, len(records)))
    cut = data.draw(st.integers(1, len(records)))
    middle = data.draw(st.integers(cut, len(records)))
    with loaded(records) as whole, resumed(records, cut) as engine:
        assert unfinished(whole) == expected(whole)
        assert unfinished(whole, as_of) == expected(whole, as_of)
        engine.add(records[cut:middle])
        assert unfinished(engine) == expected(whole, middle)
        engine.add(records[middle:])
        assert unfinished(engine) == expected(whole)


@law(LIVES, st.data(), few=2, many=300)
def test_open_messages_are_kept_from_record_to_record(records: list[Record], data: st.DataObject) -> None:
    """A host that begins with the first record, or with the rows at any record, has the rows of the projection."""
    assume(not any(is_erased(record.payload) for record in records))  # what is written is not erased yet
    cut, end = sorted(data.draw(st.integers(1, len(records))) for _ in range(2))
    with loaded(records) as engine:
        kept = OpenMessages()
        later = OpenMessages(engine.rows("unfinished_messages", "sam", cut))
        kept.add(records[:cut])
        for record in records[cut:end]:
            kept.add([record])
            later.add([record])
        turns = [row["turn"] for row in engine.rows("open_turns", "sam", end)]
        assert texts(kept.rows(turns)) == texts(later.rows(turns)) == unfinished(engine, end)


@law(LIVES, st.data(), few=2, many=300)
def test_message_limits_are_columns_of_all_messages(records: list[Record], data: st.DataObject) -> None:
    """Messages that were copied by a fork apart, whose answers are those of the parent."""
    as_of = data.draw(st.integers(1, len(records)))
    same = ("seq", "time", "turn", "ended_turn", "hops", "waiting")
    with loaded(records) as engine:
        rows = {row["seq"]: row for row in engine.rows("message_limits", "sam", as_of)}
        for row in engine.rows("agent_messages", "sam", as_of):
            limits = rows.pop(row["seq"])
            assert [limits[name] for name in same] == [row[name] for name in same]
            assert limits["sent"] == (row["direction"] == "sent")
            if limits["sent"]:
                assert (limits["other"], limits["task"]) == (row["other"], row["task"])
                assert limits["waits"] == (row["expires_us"] is not None)
                assert row["state"] == "copied" or limits["answered"] == (row["state"] in ("answered", "silent"))
        assert not rows
