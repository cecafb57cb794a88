"""Laws of activation: the one query `waking` agrees with four projections, however the records came into the engine."""

from typing import Any

from hypothesis import strategies as st

from everlog.actors.agent.activation_state import activation_state_of
from everlog.actors.prompt.context import configuration_of
from everlog.events import AgentConfigured, AgentDeleted, Record, draft, place, uuid7
from everlog.projections import HEAD, Projections
from tests.laws.test_projections import BIRTH, STREAMS, loaded, small_life
from tests.laws.test_resume_from_states import resumed
from tests.support import event_strategies
from tests.support.law import law

LIVES = event_strategies.lives(BIRTH)


def configured(row: dict[str, Any]) -> Any:
    return configuration_of(AgentConfigured.version, row["text"], row["payload"])


def unfinished_messages(engine: Projections, as_of: int) -> list[int]:
    """Return the seqs of the messages between agents that are not over."""
    rows = engine.rows("agent_messages", "sam", as_of)
    return [row["seq"] for row in rows if row["state"] in ("pending", "waiting", "working", "ready")]


def holds(engine: Projections, as_of: int) -> None:
    """Check that `waking` agrees with the four projections."""
    woken = activation_state_of(engine.rows("waking", "sam", as_of))
    standing = engine.rows("standing", "sam", as_of)
    configurations = engine.rows("configurations", "sam", as_of)
    assert woken.exists == (bool(standing) and not standing[0]["deleted"])
    assert woken.turn == (standing[0]["turn"] if woken.exists else 0)
    if woken.exists:
        assert list(woken.open_turns) == sorted(row["turn"] for row in engine.rows("open_turns", "sam", as_of))
        assert woken.timed or not engine.rows("timers", "sam", as_of)
        assert woken.mailed or not unfinished_messages(engine, as_of)
    living = [configured(row) for row in configurations if row["living"]]
    assert woken.recorded == (living[-1] if living else None)
    assert list(woken.configurations) == [configured(row) for row in configurations]


@law(STREAMS | LIVES, st.data(), few=3, many=240)
def test_waking_agrees_with_the_four_projections(records: list[Record], data: st.DataObject) -> None:
    """Loaded or resumed, now or as of any record: the turn, the open turns, the configurations and the timers agree."""
    as_of = data.draw(st.integers(1, len(records)))
    cut = data.draw(st.integers(1, len(records)))
    with loaded(records) as whole, resumed(records, cut) as engine:
        holds(whole, HEAD)
        holds(whole, as_of)
        for record in records[cut:]:
            engine.add([record])
        holds(engine, HEAD)


@law(STREAMS | LIVES, st.data(), few=2, many=160)
def test_interrupted_turns_are_open_on_activation(records: list[Record], data: st.DataObject) -> None:
    """A log that ends in the middle of a turn has the same open turns in `waking` and in the projection."""
    with loaded(records[: data.draw(st.integers(1, len(records)))]) as engine:
        holds(engine, HEAD)


def test_open_turns_are_right_after_each_record() -> None:
    """The open turns are right after each record of two turns; after its deletion the agent does not exist."""
    life = small_life()
    first = next(record.seq for record in life if record.turn == 1)
    opened = []
    with Projections() as engine:
        assert not activation_state_of(engine.rows("waking", "sam")).exists
        for record in life:
            engine.add([record])
            opened.append(list(activation_state_of(engine.rows("waking", "sam")).open_turns))
        assert opened == [[]] * (first - 1) + [[1], [1], [1], [], [2], [2], [2], []]
        gone = draft(AgentDeleted(), event_id=uuid7(10**9, 1), recorded_at=10**9, turn=2, step=0)
        engine.add([place(gone, "sam", len(life) + 1, len(life) + 1)])
        woken = activation_state_of(engine.rows("waking", "sam"))
        assert (woken.exists, woken.turn, woken.open_turns) == (False, 0, ())
