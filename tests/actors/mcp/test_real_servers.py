"""Published servers of other people, started as programs and called by an agent whose model follows a script."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from everlog.actors.mcp.mcp_functions import functions_of
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.actors.replay.rebuild_check import verify
from everlog.events import ApprovalRequested, FunctionResult, FunctionStarted, event_of
from tests.actors.rules.test_approval_crashes import decide, waiting
from tests.support.agent_world import World, completion, say
from tests.support.mcp.server_worlds import connections, functions, module_entry

pytest.importorskip("mcp", reason="the extra mcp is not installed")


def results(world: World) -> list[FunctionResult]:
    return [event for event in map(event_of, world.log()) if isinstance(event, FunctionResult) and "__" in event.name]


def test_an_agent_asks_a_published_server_for_the_time() -> None:
    """The result of mcp-server-time is in the log, and needed no intent: it says that it only reads."""
    pytest.importorskip("mcp_server_time")
    call = ("time__convert_time", {
        "source_timezone": "Europe/Berlin", "time": "16:30", "target_timezone": "Asia/Tokyo", "request_heartbeat": True,
    })  # fmt: skip
    with connections() as made:
        tools = functions(module_entry("mcp_server_time"), made, "time")
        world = World(completion(calls=[call]), say("It is late there."), tools=list(tools.values()))
        asyncio.run(world.tell("What time is it in Tokyo when I have tea?"))
        (result,) = results(world)
        assert result.ok
        assert "Asia/Tokyo" in result.text
        assert not [event for event in map(event_of, world.log()) if isinstance(event, FunctionStarted)]
        with world.system.view("sam") as view:
            assert verify(view, world.system.tools).faults == []


def test_an_agent_commits_with_a_published_server(tmp_path: Path) -> None:
    """mcp-server-git adds a file and commits it, each with its intent in the log before; a reset waits for a person."""
    pytest.importorskip("mcp_server_git")
    for words in (("init", "-q"), ("config", "user.email", "a@b.c"), ("config", "user.name", "Sam")):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    (tmp_path / "tea.txt").write_text("Buy tea.\n")
    where = {"repo_path": str(tmp_path), "request_heartbeat": True}
    lines = [
        completion(calls=[("git__git_add", {**where, "files": ["tea.txt"]})]),
        completion(calls=[("git__git_commit", {**where, "message": "Remember the tea"})]),
        completion(calls=[("git__git_reset", where)]),
        say("It waits."), say("Done."),
    ]  # fmt: skip
    with connections() as made:
        entry = module_entry("mcp_server_git", "--repository", str(tmp_path))
        world = World(*lines, tools=list(functions(entry, made, "git").values()))
        asyncio.run(world.tell("Keep my note"))
        log = subprocess.run(
            ["git", "-C", str(tmp_path), "log", "--format=%s"], check=True, capture_output=True, text=True
        )
        assert log.stdout == "Remember the tea\n"
        started = {e.name: e.effect for e in map(event_of, world.log()) if isinstance(e, FunctionStarted)}
        assert started == {"git__git_add": "idempotent", "git__git_commit": "at_most_once"}
        assert [e.name for e in map(event_of, world.log()) if isinstance(e, ApprovalRequested)] == ["git__git_reset"]
        decide(world, *waiting(world))
        assert [(result.name, result.ok) for result in results(world)][-1] == ("git__git_reset", True)


def test_the_schema_of_a_function_is_in_the_log_with_its_digest() -> None:
    """The configuration of an agent names the function and the digest of what its model sees, and has the text."""
    entry = ServerEntry(command="unused")
    pytest.importorskip("mcp_server_time")
    with connections() as made:
        offer = asyncio.run(made.offer("time", module_entry("mcp_server_time")))
    (tool, *_) = functions_of("time", entry, offer.tools)
    world = World(say("Hello."), tools=[tool])
    asyncio.run(world.tell("Hi"))
    configured = next(event_of(record) for record in world.log() if record.type == "agent_configured")
    assert tool.sha256 in {function.sha256 for function in configured.functions if function.name == tool.name}
    assert configured.schemas[tool.sha256] == tool.schema
