"""A sealed file says which rare records it holds, so that a query over the fleet looks for them nowhere else."""

from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from everlog.events import AgentCreated, AgentDeleted, Event, RecordsErased, UserMessage, draft
from everlog.projections.fleet_views import FleetViews
from everlog.store import FileStore, snapshot
from everlog.store.partition.manifest import load, succeed
from everlog.testing import CountingIds, ManualClock

clock, ids = ManualClock(tick_us=1000), CountingIds()
ASKED = "SELECT count(*) AS messages, max(life) AS lives FROM messages"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Return a store with the agent sam, without records."""
    store = FileStore.create(tmp_path / "store", clock.now, "s", shards=1)
    store.register("sam")
    return store


def append_and_seal(store: FileStore, *events: Event) -> None:
    """Append the events to the log of sam, and seal them."""
    with closing(store.open("sam", "test")) as log:
        now = clock.now()
        drafts = [draft(event, event_id=ids.new(now), recorded_at=now, turn=1, step=0) for event in events]
        log.append("sam", log.head("sam").seq, drafts)
        log.seal()


def rare(store: FileStore) -> list[list[str] | None]:
    """Return what the manifest says of each sealed file of sam."""
    return [entry.rare for entry in load(store.partition(store.partition_of("sam"))).files if entry.kind == "sealed"]


def answer(store: FileStore) -> tuple[int, int]:
    """Return the number of messages that are not erased, and the number of incarnations that said one."""
    with snapshot(store) as position, FleetViews(position.paths, position.fresh, rare=position.rare_paths) as views:
        (row,) = views.table(ASKED).to_pylist()
        return row["messages"], row["lives"]


BORN = (AgentCreated(persona="sam"), UserMessage(text="one"), UserMessage(text="two"))


def test_the_first_creation_of_an_agent_is_not_rare(store: FileStore) -> None:
    """A file of ordinary records has no rare ones, and no query looks into it for them."""
    append_and_seal(store, *BORN)
    assert rare(store) == [[]]
    with snapshot(store) as position:
        assert (len(position.paths), position.rare_paths) == (1, [])
    assert answer(store) == (2, 1)


def test_a_second_creation_is_rare(store: FileStore) -> None:
    """An agent that was created again has two incarnations in the answer."""
    append_and_seal(store, *BORN, AgentDeleted(), AgentCreated(persona="sam"), UserMessage(text="three"))
    assert rare(store) == [["agent_created"]]
    assert answer(store) == (3, 2)


def test_an_erasure_is_rare(store: FileStore) -> None:
    """A message that was erased is not counted, because its file says that it has erasures."""
    append_and_seal(store, *BORN)
    append_and_seal(store, RecordsErased(from_seq=2, to_seq=2))
    assert ["records_erased"] in rare(store)
    assert answer(store) == (1, 1)


def test_a_file_that_does_not_say_is_looked_into(store: FileStore) -> None:
    """Files that were sealed before rare records were noted give the same answer."""
    append_and_seal(store, *BORN, AgentDeleted(), AgentCreated(persona="sam"), UserMessage(text="three"))
    append_and_seal(store, RecordsErased(from_seq=2, to_seq=2))
    where = store.partition(store.partition_of("sam"))
    before = load(where)
    older = [msgspec.structs.replace(entry, rare=None) for entry in before.files]
    assert succeed(where, before, before.epoch, older)
    assert set(rare(store)) == {None}
    assert answer(store) == (2, 2)
