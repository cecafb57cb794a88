"""The blocking API offers what the asynchronous one does, and refuses to block a running event loop."""

import asyncio
import inspect
from pathlib import Path

import pytest

import everlog
from everlog.actors import sync_api
from everlog.actors.agent_ref import AgentRef, ArchivalMemory
from everlog.actors.agent_system import AgentSystem
from everlog.actors.memory.shared_block_service import SharedBlockService
from everlog.events import UsageError

ONLY_ASYNC = {"subscribe", "open", "perform"}
"""Methods without an end, and methods that are not for users."""


def test_a_script_talks_to_an_agent_in_two_lines(tmp_path: Path) -> None:
    """`everlog.open` gives a system whose agents answer, and the answer's records are those of the log."""
    with everlog.open(tmp_path) as system:
        sent = system.agent("sam").send("Hi, my name is Chad")
        assert "Chad" in sent.text
        assert sent.records[0].type == "user_message"
        assert sent.event_id == sent.records[0].event_id
    with everlog.open(tmp_path) as system:
        assert "Chad" in system.agent("sam").send("What is my name?").text


def test_records_are_streamed_one_by_one(tmp_path: Path) -> None:
    """`stream` yields each record of the turn in order; leaving it early loses nothing in the log."""
    with everlog.open(tmp_path) as system:
        agent = system.agent("sam")
        seqs = [record.seq for record in agent.stream("Hi")]
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
        for record in agent.stream("Hi again"):
            assert record.type == "user_message"
            break
        agent.resume()
        with system.view("sam") as view:
            assert [turn["status"] for turn in view.rows("turns")] == ["done", "done"]


def test_memory_blocks_and_many_agents_without_a_loop(tmp_path: Path) -> None:
    """Archival memory, shared blocks and calls to many agents block until they are done, and return their values."""
    with everlog.open(tmp_path) as system:
        agent = system.agent("sam")
        memory_id = agent.archive.insert("The gold is under the oak.")
        agent.archive.update(memory_id, "The gold is under the elm.")
        assert [hit.text for hit in agent.archive.search("gold").results] == ["The gold is under the elm."]
        agent.archive.delete(memory_id)
        assert not agent.archive.search("gold").results
        system.shared.create("team", "The captain is Ann.")
        assert agent.attach_block("team") and not agent.attach_block("team")
        assert {sent.agent_id for sent in system.create_many(["ann", "bob"])} == {"ann", "bob"}
        assert all(sent.error is None for sent in system.send_many([("ann", "Hi"), ("bob", "Hi")]))
        assert system.agents() == ["ann", "bob", "sam"]


def test_a_running_loop_is_not_stopped(tmp_path: Path) -> None:
    """In a running event loop every call raises an error that names the asynchronous API, and no store is made."""

    async def main() -> None:
        with pytest.raises(UsageError, match="open_system"), everlog.open(tmp_path / "store"):
            pass

    asyncio.run(main())
    assert not (tmp_path / "store").exists()
    with everlog.open(tmp_path) as system:
        agent = system.agent("sam")
        head = system.view("sam").seq

        async def inside() -> None:
            for call in (lambda: agent.send("Hi"), lambda: agent.archive.insert("x"), lambda: system.agent("ann")):
                with pytest.raises(UsageError, match="Nothing was sent"):
                    call()

        asyncio.run(inside())
        assert system.view("sam").seq == head and system.agents() == ["sam"]


def test_a_system_that_was_closed_says_so(tmp_path: Path) -> None:
    """An agent of a closed system raises an error and sends nothing."""
    with everlog.open(tmp_path) as system:
        agent = system.agent("sam")
    for call in (lambda: agent.send("Hi"), lambda: agent.archive.insert("x"), lambda: system.agent("ann")):
        with pytest.raises(UsageError, match="was closed"):
            call()


@pytest.mark.parametrize(
    ("blocking", "asynchronous"),
    [
        (sync_api.SyncAgent, AgentRef),
        (sync_api.SyncArchivalMemory, ArchivalMemory),
        (sync_api.SyncSystem, AgentSystem),
        (sync_api.SyncSharedBlocks, SharedBlockService),
    ],
)
def test_no_method_is_missing(blocking: type, asynchronous: type) -> None:
    """The blocking API has every method of the asynchronous API under the same name."""
    names = {name for name, _ in inspect.getmembers(asynchronous, callable) if not name.startswith("_")}
    assert names - ONLY_ASYNC <= set(dir(blocking))
