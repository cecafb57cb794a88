"""The blocking API offers what the asynchronous one does, and refuses to block a running event loop."""

import ast
import asyncio
import inspect
import textwrap
from pathlib import Path

import pytest

import everlog
from everlog.actors import sync_api
from everlog.actors.agent_memory import ArchivalMemory
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_state import AgentState
from everlog.actors.agent_system import AgentSystem
from everlog.actors.derived_memories import AgentMemories
from everlog.actors.memory_views import MemoryViews
from everlog.actors.runtime import Run
from everlog.actors.store_services import DocumentSources, SharedBlocks
from everlog.events import UsageError

ONLY_ASYNC = {
    AgentRef: {"subscribe"},
    AgentSystem: {"runtime", "store", "handle", "prices", "ask", "tools"},
    DocumentSources: {"signed"},
    Run: {"items"},
    SharedBlocks: {"signed"},
}
"""Names without a blocking form: a method without an end, and what commands and servers use."""


def test_a_script_talks_to_an_agent_in_two_lines(tmp_path: Path) -> None:
    """`everlog.open` gives a system whose agents answer, and the answer's records are those of the log."""
    with everlog.open(tmp_path) as system:
        reply = system.agent("sam").ask("Hi, my name is Chad")
        assert "Chad" in reply.text
        assert reply.records[0].type == "user_message"
        assert reply.event_id == reply.records[0].event_id
    with everlog.open(tmp_path) as system:
        assert "Chad" in system.agent("sam").ask("What is my name?").text


def test_records_are_streamed_one_by_one(tmp_path: Path) -> None:
    """`send` yields each record of the turn in order; leaving it early loses nothing in the log."""
    with everlog.open(tmp_path) as system:
        agent = system.agent("sam")
        seqs = [record.seq for record in agent.send("Hi")]
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
        for record in agent.send("Hi again"):
            assert record.type == "user_message"
            break
        agent.resume().reply()
        with system.view("sam") as view:
            assert [turn["status"] for turn in view.rows("turns")] == ["done", "done"]


def test_a_message_is_durable_when_send_returns(tmp_path: Path) -> None:
    """Sending waits for the record of the message; the rest comes when it is asked for, and the reply at the end."""
    with everlog.open(tmp_path) as system:
        agent = system.agent("sam")
        run = agent.send("Hi, my name is Chad")
        with system.view("sam") as view:
            assert "Hi, my name is Chad" in [row["text"] for row in view.rows("recall_memory")]
        assert run.records[0].type == "user_message"
        assert [record.seq for record in run] == [record.seq for record in run.reply().records]
        assert "Chad" in run.reply().text
        assert "".join(agent.stream_text("What is my name?")) == "Your name is Chad."
        assert "".join(agent.send("What is my name?").text_parts()) == "Your name is Chad."
        assert agent.heartbeat().reply().turn == 4


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


PAIRS = [
    (sync_api.SyncAgent, AgentRef),
    (sync_api.SyncArchivalMemory, ArchivalMemory),
    (sync_api.SyncAgentState, AgentState),
    (sync_api.SyncMemoryViews, MemoryViews),
    (sync_api.SyncAgentMemories, AgentMemories),
    (sync_api.SyncRun, Run),
    (sync_api.SyncSystem, AgentSystem),
    (sync_api.SyncSharedBlocks, SharedBlocks),
    (sync_api.SyncSources, DocumentSources),
]


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_both_forms_have_the_same_names(blocking: type, asynchronous: type) -> None:
    """The blocking API has every public method and attribute of the asynchronous API, and no other."""
    assert public(blocking) == public(asynchronous) - ONLY_ASYNC.get(asynchronous, set())


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS)
def test_both_forms_take_the_same_parameters(blocking: type, asynchronous: type) -> None:
    """Each blocking method has the parameters of its asynchronous counterpart."""
    for name in public(blocking):
        form, other = getattr(blocking, name), getattr(asynchronous, name, None)
        if inspect.isfunction(form) and name not in ("reply", "text_parts"):
            assert inspect.signature(form).parameters == inspect.signature(other).parameters, name


def test_both_ways_to_open_a_store_take_the_same_parameters() -> None:
    """`open` has the parameters of `open_system`, with the same defaults."""
    assert inspect.signature(everlog.open).parameters == inspect.signature(everlog.open_system).parameters


def public(kind: type) -> set[str]:
    """Return the public methods of a class, and the attributes that its constructor sets."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind.__init__))) if "__init__" in vars(kind) else ast.Module([])
    set_there = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
    }
    return {name for name in {*dir(kind), *set_there} if not name.startswith("_")}


def test_objects_of_the_blocking_form_say_what_they_are(tmp_path: Path) -> None:
    """The repr is that of the asynchronous object, under the name of the blocking form."""
    with everlog.open(tmp_path) as system:
        assert repr(system) == f"<SyncSystem {tmp_path}, LocalRuntime>"
        assert repr(system.agent("sam")).startswith(f"<SyncAgent 'sam' in {tmp_path}, model offline, seq ")
        with system.view("sam") as view:
            assert repr(view).startswith("<SyncAgentState 'sam' as of seq")
