"""The engine keeps contexts from record to record: in bounded memory, and no longer than they hold."""

import pyarrow as pa
import pytest

from everlog.events import (
    BlockRemoved,
    Call,
    Event,
    MemoryEdited,
    MessageSent,
    ModelReply,
    Record,
    RecordsErased,
    Summary,
    SystemAlert,
    Usage,
    UserMessage,
    draft,
    place,
    uuid7,
)
from everlog.projections import HEAD, Projections
from everlog.projections.hot.hot_database import HotDatabase
from everlog.projections.hot.kept_contexts import KeptContexts
from everlog.projections.sql_catalogue import batch_query
from everlog.store import SCHEMA, batch_of
from tests.laws.test_projections import BIRTH, place_again


def talkative(name: str, turns: int) -> list[Record]:
    """Return the records of an agent that has answered so many messages."""
    reply = ModelReply(
        calls=[Call("c", "send_message", "{}")], usage=Usage(90, 10, 100), context_sha256="0", context_bytes=9
    )
    life: list[tuple[Event, int]] = [(event, 0) for event in BIRTH]
    for turn in range(1, turns + 1):
        life += [(UserMessage(text=f"message {turn}"), turn), (reply, turn), (MessageSent(text="well"), turn)]
    return [
        place(draft(event, event_id=uuid7(seq, seq), recorded_at=seq, turn=turn, step=0), name, seq, seq)
        for seq, (event, turn) in enumerate(life, 1)
    ]


def test_a_kept_context_takes_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the second call of an agent its next calls run no statement, whatever was said, remembered or summarized,
    until a record of another kind comes: then one reads the context again. A call keeps the rows that it has got when
    others follow.
    """
    records = talkative("sam", 9)
    changes: list[Event] = [
        MemoryEdited(label="human", operation="set", text="Sam", limit=2000),
        SystemAlert(text="full", source="memory_pressure"),
        Summary(text="so far", covers_from=1, covers_to=20, kept_from=records[-8].seq, hidden=5, total=8, summarized=5),
        MemoryEdited(label="plan", operation="set", text="swim", limit=2000),
    ]
    with Projections() as engine:
        ran: list[object] = []
        columns = HotDatabase.columns
        monkeypatch.setattr(HotDatabase, "columns", lambda *some, **more: ran.append(some) or columns(*some, **more))
        for turn in range(1, 9):
            engine.add([record for record in records if record.turn == turn or (turn == 1 and not record.turn)])
            answer = engine.answers("context_window", [("sam", HEAD, turn)])[0]
            assert len(ran) == min(turn, 2)
        shown = len(answer)
        for seq, change in enumerate([*changes, BlockRemoved(label="plan")], records[-4].seq + 1):
            made = draft(change, event_id=uuid7(99, seq), recorded_at=99, turn=8, step=1)
            engine.add([place(made, "sam", seq, seq)])
            rows = list(engine.answers("context_window", [("sam", HEAD, 8)])[0])
            assert len(ran) == (3 if change.kind == "block_removed" else 2)
            assert rows == engine.query(batch_query("context_window", in_turns=True), [["sam"], [HEAD], [8]])
        assert len(answer) == shown


@pytest.mark.parametrize("drop", ["forget", "erase", "rest", "load"])
def test_a_context_is_kept_no_longer_than_its_agent(drop: str) -> None:
    """Unloading an agent, a record of an erasure, new rows from elsewhere, and the rest of the engine drop its context,
    and its bytes are no longer counted.
    """
    with Projections() as engine:
        for name in ("ann", "bob"):
            engine.add(records := talkative(name, 3))
        calls = [(name, HEAD, 3) for name in ("ann", "bob")]
        engine.answers("context_window", calls)
        used = engine.contexts.used
        assert engine.contexts.agents == {"ann", "bob"}
        if drop == "forget":
            engine.forget("ann")
        elif drop == "erase":
            event = draft(RecordsErased(from_seq=2, to_seq=2), event_id=uuid7(9, 9), recorded_at=9, turn=0, step=0)
            engine.add([place(event, "ann", records[-1].seq + 1, 99)])
        elif drop == "rest":
            engine.rest()
        else:
            engine.load(pa.Table.from_batches([batch_of([place_again(records[-1], "ann")])], SCHEMA))
        assert engine.contexts.agents == (set() if drop == "rest" else {"bob"})
        assert engine.contexts.used == (0 if drop == "rest" else used // 2)


def test_the_context_asked_for_longest_ago_is_dropped_first() -> None:
    """Above its bytes the engine drops the contexts that were asked for longest ago, and never the last one. Calls of
    more agents than fit are still answered by one reading.
    """
    names = ("ann", "bob", "cid")
    with Projections() as engine:
        for name in names:
            engine.add(talkative(name, 3))
        calls = [(name, HEAD, 3) for name in names]
        whole = [list(one) for one in engine.answers("context_window", calls)]
        engine.contexts = KeptContexts(bytes_max=2 * engine.contexts.used // 3)
        assert [list(one) for one in engine.answers("context_window", calls)] == whole
        assert engine.contexts.agents == {"bob", "cid"}
        engine.answers("context_window", calls[1:2])
        engine.answers("context_window", calls[:1])
        engine.answers("context_window", calls[:1])
        assert engine.contexts.agents == {"bob", "ann"}
        engine.contexts = KeptContexts(bytes_max=1)
        assert [list(one) for one in engine.answers("context_window", calls)] == whole
        assert engine.contexts.agents == {"cid"}
