"""Rebuild finds faults in derived state: in live tables and in stored states."""

import asyncio
from typing import Any

import pyarrow.compute as pc

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.replay.rebuild_check import rebuild
from everlog.projections import DERIVER, PROJECTIONS
from everlog.store import LogReader, State
from tests.support.agent_world import World, completion, say

LINES = [completion(calls=[("core_memory_append", {"name": "human", "content": "Sails.", "request_heartbeat": True})])]


class Stale:
    """A reader whose newest state lacks the records of one kind."""

    def __init__(self, reader: LogReader, kind: str) -> None:
        self._reader = reader
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State:
        table = self._reader.table(agent_id)
        seq = table.column("seq")[-1].as_py()
        return State(seq, DERIVER(None, table.filter(pc.not_equal(table.column("type"), self._kind))))


def test_a_wrong_stored_state_is_found() -> None:
    """Rebuild compares the newest stored state, from which an agent is activated, with the records."""
    world = World()
    world.model.lines = [*LINES, say("Noted.")]
    asyncio.run(world.tell("I sail"))
    reader = world.store.reader("sam")
    for kind, projection in (("memory_edited", "core_memory"), ("model_reply", "memory_pressure"), ("", "")):
        view = AgentView("sam", Stale(reader, kind))  # type: ignore[arg-type]
        found = [fault for fault in rebuild(view).faults if fault.startswith(f"{projection}: the newest state")]
        assert bool(found) == bool(kind)
        view.close()


def test_a_wrong_row_is_found_in_each_projection_that_shows_it() -> None:
    """Rebuild names the projections that differ, and no other; a difference that no projection shows is no fault."""
    world = World()
    world.model.lines = [*LINES, say("Noted.")]
    asyncio.run(world.tell("I sail"))
    for change, wrong in (
        ("text = 'Rows.' WHERE seq = 10", {"context_records", "context_window", "core_memory", "memory_history"}),
        ("ratio = 0.5 WHERE type = 'user_login'", set()),
        ("seq = seq", set()),
    ):
        view = world.system.view("sam")
        view.projections.execute(f"UPDATE records SET {change}")
        report = rebuild(view)
        assert {fault.partition(":")[0] for fault in report.faults} == wrong, change
        assert report.checked == len(PROJECTIONS)
        view.close()
