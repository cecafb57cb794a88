"""Exceptions of user code: while it is loaded, pickled, and called."""

import asyncio
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from everlog.actors.agent.commands import ResumeTurns, SessionCapabilities
from everlog.actors.cluster.host_actors import DedicatedActor
from everlog.actors.cluster.pickling import pack, unpack
from everlog.actors.cluster.placement import FenceRight, dedicated
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.memory.core_memory import Memory
from everlog.events import BadInput, EverlogError
from everlog.interfaces.common.bootstrap import tools_in
from everlog.store import FileStore, HostMark
from tests.actors.functions.test_effects import BORN, assert_verified, results, told
from tests.support.agent_world import World, completion, say

FAULTS = ["OwnError('x')", "StopIteration", "EOFError", "MemoryError", "SystemExit(3)"]
"""Exceptions that user code may raise, among them some that a list of expected errors would omit."""


class Odd(BaseException):
    """A BaseException that is neither an Exception nor known to Python."""


class Unwilling:
    """An object that raises while it is pickled, or (`late`) while it is unpickled."""

    def __init__(self, error: BaseException, *, late: bool = False) -> None:
        self.error = error
        self.late = late

    def __reduce__(self) -> Any:
        if self.late:
            return _raise, (self.error,)
        raise self.error


def _raise(error: BaseException) -> None:
    raise error


@pytest.fixture
def cloud() -> Any:
    from ray import cloudpickle

    return cloudpickle


def failing(kind: type[BaseException]) -> list[Tool]:
    """Return functions that raise `kind`: one with an effect, one that awaits first, one that edits memory."""

    @tool
    def at_once() -> None:
        """Fail."""
        raise kind

    @tool(effect="read_only")
    async def later() -> None:
        """Fail."""
        await asyncio.sleep(0)
        raise kind

    @tool
    def edit(memory: Memory) -> None:
        """Fail."""
        memory.append("human", "x")
        raise kind

    return [at_once, later, edit]


def lending(thing: Any) -> SessionCapabilities:
    @tool
    def use() -> None:
        """Use it."""
        str(thing)

    return SessionCapabilities(tools=(use,))


def assert_told(own: Tool, kind: type[BaseException]) -> None:
    """Check that an exception of the function becomes its failed result, and that the turn continues."""
    world = World(completion(calls=[(own.name, {})]), say("Oh."), tools=[own])
    failed = results(told(world)[BORN:])[0]
    assert (failed.ok, failed.unknown) == (False, False)
    assert kind.__name__ in failed.text
    assert_verified(world)


@pytest.mark.parametrize("number", range(3))
def test_a_function_that_cancels_itself_has_failed(number: int) -> None:
    """A CancelledError that the function raises itself is an error like any other."""
    assert_told(failing(asyncio.CancelledError)[number], asyncio.CancelledError)


def test_an_agent_that_is_cancelled_is_interrupted() -> None:
    """A CancelledError that is sent to the agent while a function waits ends the turn, and is not recorded as the
    function's failure.
    """

    @tool
    async def wait() -> None:
        """Wait until the agent is interrupted."""
        at_work.set()
        await asyncio.Event().wait()

    async def main() -> None:
        turn = asyncio.create_task(world.tell("go"))
        await at_work.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    at_work = asyncio.Event()
    world = World(completion(calls=[("wait", {})]), tools=[wait])
    asyncio.run(main())
    assert world.kinds()[-2:] == ["model_reply", "function_started"]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, Odd])
def test_any_exception_of_a_function_in_a_host_is_its_failure(
    cloud: ModuleType, kind: type[BaseException], number: int
) -> None:
    """A host has no keyboard: any exception that a function raises there, even KeyboardInterrupt, is the function's
    failure and is reported to the model.
    """
    lent = pack(SessionCapabilities(tools=failing(kind)), cloud)
    assert lent is not None
    assert_told(unpack(lent).tools[number], kind)


def test_ctrl_c_in_the_event_loop_is_a_persons() -> None:
    """A KeyboardInterrupt in a coroutine function, in the user's own process, was sent by a person, and propagates."""
    coroutine = failing(KeyboardInterrupt)[1]
    with pytest.raises(KeyboardInterrupt):
        told(World(completion(calls=[(coroutine.name, {})]), tools=[coroutine]))


@pytest.mark.parametrize("number", [0, 2])
def test_a_keyboard_interrupt_in_a_thread_is_the_functions_own(number: int) -> None:
    """Ctrl-C never reaches a thread: a KeyboardInterrupt of a plain function is its failure."""
    assert_told(failing(KeyboardInterrupt)[number], KeyboardInterrupt)


@pytest.mark.parametrize("raised", FAULTS)
def test_any_exception_of_a_tools_file_is_reported(tmp_path: Path, raised: str) -> None:
    """The error names the file, the line and the exception."""
    path = tmp_path / "tools.py"
    path.write_text(f"class OwnError(Exception): pass\n\nraise {raised}\n")
    with pytest.raises(BadInput, match=rf"tools\.py, line 3: .*{raised.partition('(')[0]}"):
        tools_in(path)


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), EOFError(), MemoryError(), SystemExit(3)], ids=repr)
def test_an_exception_while_pickling_is_reported(cloud: ModuleType, error: BaseException) -> None:
    """An exception of a user's object while it is pickled is reported as the fault of the functions."""
    with pytest.raises(BadInput, match=rf"^The functions use cannot be sent .*{type(error).__name__}"):
        pack(lending(Unwilling(error)), cloud)


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), EOFError(), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_an_exception_while_unpickling_is_reported(cloud: ModuleType, error: BaseException) -> None:
    """An exception while an object is unpickled is reported as BadInput."""
    lent = pack(lending(Unwilling(error, late=True)), cloud)
    assert lent is not None
    with pytest.raises(BadInput, match=rf"^The functions cannot be loaded .*{type(error).__name__}"):
        unpack(lent)


def test_a_host_reports_capabilities_that_cannot_be_unpickled(
    cloud: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's constructor does not fail on such an object; the first command is answered with the error."""
    monkeypatch.setattr("everlog.actors.cluster.host_actors.minimize_reserves", lambda: None)
    monkeypatch.setattr("everlog.actors.cluster.ray_api.own_node", lambda: "here")
    FileStore.create(tmp_path, lambda: 1, "store")
    lent = pack(lending(Unwilling(ZeroDivisionError("x"), late=True)), cloud)
    assert lent is not None

    async def main() -> list[Any]:
        host = DedicatedActor(str(tmp_path), dedicated("sam"), 60, FenceRight(HostMark("here", 1)))
        return [heard async for heard in host.perform("sam", ResumeTurns(id="1", capabilities=lent))]

    (heard,) = asyncio.run(main())
    assert isinstance(heard, EverlogError)
    assert "cannot be loaded" in str(heard)
