"""No call of the asyncio API reads the disk or runs SQL in the event loop. Counted, not timed."""

import asyncio
import inspect
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import everlog
from everlog.actors.agent_state import AgentState
from everlog.actors.agent_system import AgentSystem
from everlog.actors.memory import fleet_sql
from everlog.actors.store_services import DocumentSources, SharedBlocks
from everlog.projections import Projections
from everlog.projections.fleet_views import FleetViews

Call = Callable[[Any], Awaitable[object]]

READING: dict[str, Call] = {
    "AgentSystem.agents": lambda system: system.agents(),
    "AgentSystem.sql": lambda system: system.sql("SELECT count(*) FROM messages"),
    "AgentSystem.search": lambda system: system.search("Chad"),
    "AgentSystem.view": lambda system: system.view("sam", as_of=8),
    "AgentSystem.export": lambda system: system.export("sam", system.store.root.parent / "sam.everlog"),
    "AgentSystem.restore": lambda system: system.restore(system.store.root.parent / "sam.everlog"),
    "AgentSystem.plan_erasure": lambda system: system.plan_erasure("sam", everlog.Selection(match=["Chad"])),
    "AgentSystem.compare": lambda system: system.compare("sam", "tom"),
    "AgentSystem.rename": lambda system: system.rename("sam", "samuel"),
    "AgentState.rows": lambda state: state.rows("turns"),
    "AgentState.memory": lambda state: state.memory(),
    "AgentState.context": lambda state: state.context(),
    "AgentState.request": lambda state: state.request(),
    "AgentState.counts": lambda state: state.counts(),
    "AgentState.search": lambda state: state.search("Chad"),
    "AgentState.search_messages": lambda state: state.search_messages("Chad"),
    "AgentState.search_archive": lambda state: state.search_archive("gold"),
    "AgentState.close": lambda state: state.close(),
    "DocumentSources.names": lambda sources: sources.names(),
    "DocumentSources.documents": lambda sources: sources.documents("sea"),
    "DocumentSources.attached": lambda sources: sources.attached(),
    "DocumentSources.load": lambda sources: sources.load("land", [everlog.Document(name="a", text="A hill.")]),
    "SharedBlocks.names": lambda blocks: blocks.names(),
    "SharedBlocks.show": lambda blocks: blocks.show("team"),
    "SharedBlocks.history": lambda blocks: blocks.history("team"),
    "SharedBlocks.attached_agents": lambda blocks: blocks.attached_agents(),
}
"""Calls that only read, or work on files: none of their work is done in the event loop. In the order of the test."""
RUNTIME = {
    "AgentSystem": {"agent", "cancel", "create_many", "delete", "erase", "fork", "rerun", "send_many", "unload"},
    "SharedBlocks": {"append", "change", "create", "delete", "set"},
}
"""Calls whose work a host does, or an owner of a log, which has a loop or a thread of its own choice."""


class Watch:
    """Count what is done in one thread while the watch is on."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.on = False
        self.here: Counter[str] = Counter()
        self.elsewhere = 0

    def note(self, what: str) -> None:
        if self.on and threading.get_ident() == self.thread:
            self.here[what] += 1
        elif self.on:
            self.elsewhere += 1

    def around(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def noted(*args: Any, **kwargs: Any) -> Any:
            self.note(f"{getattr(owner, '__name__', owner)}.{name}")
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, noted)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watch queries of both engines, and every file that is opened."""
    found = Watch()
    for name in ("rows", "answers", "states"):
        found.around(monkeypatch, Projections, name)
    for owner, name in ((FleetViews, "table"), (fleet_sql, "snapshot")):
        found.around(monkeypatch, owner, name)
    sys.addaudithook(lambda event, _: found.note(event) if event == "open" else None)
    return found


def coroutines(kind: type) -> set[str]:
    """Return the public coroutines and asynchronous iterators of a class."""
    found = {n for n, m in vars(kind).items() if inspect.iscoroutinefunction(m) or inspect.isasyncgenfunction(m)}
    return {name for name in found if not name.startswith("_")}


def test_every_call_is_watched_or_belongs_to_the_runtime() -> None:
    """Each public coroutine that reads is among the calls that the next test watches."""
    for kind in (AgentSystem, AgentState, DocumentSources, SharedBlocks):
        watched = {name.partition(".")[2] for name in READING if name.startswith(f"{kind.__name__}.")}
        assert coroutines(kind) == watched | RUNTIME.get(kind.__name__, set())


def test_no_query_and_no_file_is_read_in_the_event_loop(tmp_path: Path, watch: Watch) -> None:
    """While each call runs, no query runs and no file is opened in the loop's thread; the work is done elsewhere."""

    async def main() -> None:
        async with everlog.open_system(tmp_path / "store") as system:
            agent = await system.agent("sam")
            await agent.ask("Hi, my name is Chad")
            await agent.archive.insert("The gold is under the oak.")
            await system.sources.load("sea", [everlog.Document(name="fog", text="Fog at sea.")])
            await system.shared.create("team", "Ann leads.")
            await system.fork("sam", "tom")
            state = await system.view("sam")
            owners = {"AgentSystem": system, "AgentState": state, "DocumentSources": system.sources}
            for name, call in READING.items():
                watch.on, watch.elsewhere = True, 0
                await call(owners.get(name.partition(".")[0], system.shared))
                watch.on = False
                assert not watch.here, name
                assert watch.elsewhere or name in ("AgentState.close", "AgentState.counts"), name
            watch.on = True
            await agent.archive.search("gold")
            watch.on = False
            assert not watch.here

    watch.thread = threading.get_ident()
    asyncio.run(main())


def test_the_watch_notices_a_call_in_the_loop(tmp_path: Path, watch: Watch) -> None:
    """A query and a file in the watched thread are counted: the test above can fail."""
    with everlog.open(tmp_path / "store") as system:
        system.agent("sam")
        watch.on = True
        with system._wrapped._reading.view("sam") as view:
            view.rows("turns")
        watch.on = False
    assert watch.here["Projections.rows"] == 1
    assert watch.here["open"]
