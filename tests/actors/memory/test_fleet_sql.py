"""Attachments of all agents are found by one query: in any store, in forks, without deleted agents, at any time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from everlog.actors.memory.shared_block_service import SharedBlockService
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.memory.source_service import Sources
from everlog.actors.ports.ports import Ports
from everlog.events import (
    AgentCreated,
    AgentDeleted,
    BlockRemoved,
    Event,
    MemoryEdited,
    SourceAttached,
    SourceDetached,
    draft,
    uuid7,
)
from everlog.store import FileStore, MemoryStore, Store
from everlog.testing import CountingIds, ManualClock

SECOND = 1_000_000
FORKED = 9 * SECOND
TEAM = MemoryEdited(label="team", operation="copied", limit=9, origin="crew")


def append(store: Store, name: str, *events: Event) -> None:
    """Append events to a new agent or a known one, a second apart by their seqs."""
    store.register(name)
    log = store.open(name, "test")
    before = log.head(name).seq
    made = [
        draft(event, event_id=uuid7(seq * 1000, ord(name[0])), recorded_at=seq * SECOND, turn=0, step=0)
        for seq, event in enumerate(events, before + 1)
    ]
    log.append(name, before, made)
    log.close()


def in_memory(_: Path) -> Store:
    """Make a store in memory."""
    return MemoryStore(now=lambda: FORKED)


def in_files(folder: Path) -> Store:
    """Make a store of files."""
    return FileStore.create(folder, lambda: FORKED, "store")


@pytest.mark.parametrize("make", [in_memory, in_files])
def test_attachments_of_all_agents(make: Callable[[Path], Store], tmp_path: Path) -> None:
    """A fork has what its parent had at the fork point; deleted agents and detached sources are left out."""
    store = make(tmp_path)
    append(store, "ann", AgentCreated(), SourceAttached(source="sea"), TEAM)
    append(store, "bob", AgentCreated(), SourceAttached(source="sea"), TEAM, AgentDeleted())
    store.fork("ann", 3, "kid", event_id=uuid7(FORKED // 1000, 7))
    append(store, "ann", SourceDetached(source="sea"), SourceAttached(source="land"), BlockRemoved(label="team"))
    sources = Sources(store, clock=ManualClock(), ids=CountingIds())
    assert sources.attached() == {"land": ["ann"], "sea": ["kid"]}
    assert sources.attached(until=3 * SECOND) == {"sea": ["ann", "bob"]}
    clock, ids = ManualClock(), CountingIds()
    people = SharedBlockService(store, SharedBlockWriter(store, Ports(clock=clock, ids=ids)), clock=clock, ids=ids)
    assert [(name, [one.agent for one in each]) for name, each in people.attached_agents().items()] == [
        ("crew", ["kid"])
    ]
