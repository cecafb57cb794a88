"""Laws of messages between agents: what a host looks at is what `agent_messages` says, however the records came."""

from hypothesis import strategies as st

from everlog.events import Record
from everlog.projections import HEAD, Projections
from tests.laws.test_projections import BIRTH, loaded
from tests.laws.test_resume_from_states import resumed
from tests.support import event_strategies
from tests.support.law import law

LIVES = event_strategies.lives(BIRTH)
OPEN = ("pending", "waiting", "working", "ready")


def unfinished(engine: Projections, as_of: int = HEAD) -> list[str]:
    """Return the rows of the messages that are not over, as texts."""
    return sorted(repr({**row, "as_of": 0}) for row in engine.rows("unfinished_messages", "sam", as_of))


def expected(engine: Projections, as_of: int = HEAD) -> list[str]:
    """Return the same rows of `agent_messages`."""
    rows = engine.rows("agent_messages", "sam", as_of)
    return sorted(repr({**row, "as_of": 0}) for row in rows if row["state"] in OPEN)


@law(LIVES, st.data(), few=4, many=300)
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
