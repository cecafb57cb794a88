"""A process that dies at any step of a call to a server: no effect happens twice unnoticed, and the turn ends."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.actors.mcp.server_connections import ServerConnections
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import FunctionResult, FunctionStarted, event_of
from tests.actors.rules.test_approval_crashes import decide, waiting
from tests.support.agent_world import World, completion, say
from tests.support.agents.cut_logs import commits_of, cut, finish
from tests.support.mcp.server_worlds import connections, functions, raw_entry

pytest.importorskip("mcp", reason="the extra mcp is not installed")


@pytest.fixture
def made() -> Iterator[ServerConnections]:
    with connections() as made:
        yield made


def lived(name: str, file: Path, made: ServerConnections, *, approval: bool) -> World:
    """Return a world in which a function of a server was called, after an approval or without one."""
    tools = functions(raw_entry("plain", file, approval=approval), made)
    lines = [completion(calls=[(f"raw__{name}", {"words": "Hi", "request_heartbeat": True})]), say("Written.")]
    world = World(*lines[:1], *([say("It waits.")] if approval else []), *lines[1:], tools=list(tools.values()))
    asyncio.run(world.tell("Write Hi"))
    if approval:
        decide(world, *waiting(world))
    return world


@pytest.mark.parametrize("approval", [False, True])
@pytest.mark.parametrize(("name", "effect"), [("act", "at_most_once"), ("put", "idempotent"), ("look", "read_only")])
def test_a_call_survives_a_crash_after_any_commit(
    name: str, effect: str, approval: bool, made: ServerConnections, tmp_path: Path
) -> None:
    """Cut the log after each commit: a call whose intent is in the log without a result is "unknown", unless it is safe
    to repeat; then the server sees it again. The approval of a function that waited is not lost.
    """
    file = tmp_path / "effects"
    whole = lived(name, file, made, approval=approval)
    assert file.read_text() == f"{name} Hi\n"
    for number in [number for number, commit in commits_of(whole.log()) if commit[0].turn]:
        file.write_text("")
        world = cut(whole, number)
        before = [event_of(record) for record in world.log()]
        called = any(record.type == "model_reply" and f"raw__{name}" in record.payload for record in world.log())
        finish(world)
        for seq in waiting(world):
            decide(world, seq)
        if not called:
            continue  # the message came, and the model of the next process says something else
        begun = any(isinstance(event, FunctionStarted) for event in before)
        ended = any(_is_result(event, name, approval) for event in before)
        (result,) = [event for event in map(event_of, world.log()) if _is_result(event, name, approval)]
        again = not ended and not (begun and effect == "at_most_once")
        unknown = begun and not ended and effect == "at_most_once"
        assert (file.read_text(), result.unknown) == (f"{name} Hi\n" * again, unknown), number
        with world.system.view("sam") as view:
            assert {turn["status"] for turn in view.rows("turns")} == {"done"}, number
            assert rebuild(view).faults == []
            assert verify(view, world.system.tools).faults == []


def _is_result(event: object, name: str, approval: bool) -> bool:
    return isinstance(event, FunctionResult) and event.name == f"raw__{name}" and bool(event.approval) is approval
