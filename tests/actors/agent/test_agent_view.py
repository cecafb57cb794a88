"""Views: one agent at one moment, given by seq or by time, for every read of the Python API."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from everlog.actors.agent.agent_view import AgentView
from everlog.events import BadInput, Record
from tests.support.agent_world import World, completion, say
from tests.support.seeds import few_and_all, pick

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def world() -> World:
    """Return a world whose agent stored a name in its first turn and sent a message in its second."""
    edit = ("core_memory_append", {"name": "human", "content": "Name: Chad"})
    made = World(completion(calls=[edit, ("send_message", {"message": "Hello Chad"})]), say("Fine."))
    asyncio.run(made.tell("I am Chad"))
    asyncio.run(made.tell("How are you?"))
    return made


def at(record: Record) -> datetime:
    return EPOCH + timedelta(microseconds=record.recorded_at)


def human(view: AgentView) -> str:
    return next(str(row["value"]) for row in view.rows("core_memory") if row["label"] == "human")


@pytest.mark.parametrize("count", few_and_all(4, part="agents"))
def test_a_view_reads_only_records_up_to_its_moment(world: World, count: int | None) -> None:
    """Every read of a view that was opened as of a seq uses only the records up to that seq, and equals a read of the
    past from a view of the head.
    """
    head = world.system.view("sam")
    for record in pick(world.log()[2:], count, label="views"):
        view = world.system.view("sam", as_of=record.seq)
        assert (view.seq, view.head) == (record.seq, head.head)
        for name in ("core_memory", "recall_memory", "turns", "memory_pressure", "model_calls"):
            strip = [{k: v for k, v in row.items() if k != "as_of"} for row in view.rows(name)]
            assert strip == [{k: v for k, v in row.items() if k != "as_of"} for row in head.rows(name, record.seq)]
        assert view.request() == head.request(record.seq)
        assert view.counts()[0] == len(view.rows("recall_memory")) == len(head.rows("recall_memory", record.seq))
        view.close()
    head.close()


def test_a_time_is_the_last_record_written_by_then(world: World) -> None:
    """A view includes its moment; a time without a zone, and one before the first record, are errors."""
    edited = next(record for record in world.log() if record.type == "memory_edited" and "Chad" in (record.text or ""))
    last = max(record.seq for record in world.log() if record.recorded_at <= edited.recorded_at)
    assert world.system.view("sam", as_of=at(edited)).seq == last
    with pytest.raises(BadInput, match="has no time zone"):
        world.system.view("sam", as_of=at(edited).replace(tzinfo=None))
    first = world.log()[0]
    assert world.system.view("sam", as_of=at(edited) - timedelta(microseconds=1)).seq < last
    with pytest.raises(BadInput, match=f"1 to {world.log()[-1].seq}, the head"):
        world.system.view("sam", as_of=at(first) - timedelta(microseconds=1))


@pytest.mark.parametrize("seq", [0, -1, 10_000])
def test_a_seq_that_is_not_there_names_the_head(world: World, seq: int) -> None:
    """A seq below 1 or beyond the head is refused with the valid range."""
    with pytest.raises(BadInput, match=f"1 to {world.log()[-1].seq}, the head"):
        world.system.view("sam", as_of=seq)


def test_a_view_can_go_back_and_never_ahead(world: World) -> None:
    """`at` with an earlier moment returns a view of that moment; a later moment than the view's own is refused."""
    view = world.system.view("sam", as_of=8)
    assert human(view.at(4)) == human(world.system.view("sam", as_of=4))
    assert view.at(None) is view and view.at(8) is view
    with pytest.raises(BadInput, match="open a new one"):
        view.rows("core_memory", 9)
    view.close()
