"""Users' functions in a turn: their time limit, their exceptions, and what is known when the agent stops waiting."""

import asyncio
import functools
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

import everlog
from everlog.actors.functions.run_function import run_function
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.memory.core_memory import Memory
from everlog.actors.ports.agent_constants import FUNCTION_GRACE_S, FUNCTION_LIMIT_S
from everlog.actors.ports.effects import FunctionOutcome
from everlog.actors.ports.function_threads import PROCESS_THREADS
from everlog.actors.ports.ports import Ports
from everlog.actors.replay.rebuild_check import verify
from everlog.events import BadInput, FunctionResult, Record, event_of
from tests.support import virtual_time
from tests.support.agent_world import World, completion, kinds, say


class Noted(World):
    """A world that keeps the notes for a person."""

    def __init__(self, *lines: str, tools: Sequence[Tool]) -> None:
        self.notes: list[str] = []
        super().__init__(*lines, tools=tools)

    @property
    def ports(self) -> Ports:
        return msgspec.structs.replace(super().ports, note=self.notes.append)


def world_of(*tools: Tool, arguments: dict[str, Any] | None = None) -> Noted:
    """Return a world whose agent calls each tool once, in one reply, and then says something."""
    calls = [(made.name, arguments or {}) for made in tools]
    return Noted(completion(calls=calls), say("So."), tools=tools)


def results(records: Sequence[Record]) -> list[FunctionResult]:
    found = [event for event in map(event_of, records) if isinstance(event, FunctionResult)]
    return [event for event in found if event.name != "send_message"]


def ran(*tools: Tool) -> list[FunctionResult]:
    """Return the results of a turn that calls each tool, after which the model is asked again and the log verifies."""
    world = world_of(*tools)
    left = asyncio.run(world.tell("go"))
    assert kinds(left)[-3:] == ["model_reply", "message_sent", "function_result"]
    view = world.system.view("sam")
    assert verify(view, world.system.tools).faults == []
    view.close()
    return results(left)


def hanging(released: threading.Event, effect: Any) -> Tool:
    @tool(effect=effect, timeout_s=30)
    def hang() -> str:
        """Hang."""
        released.wait()
        return "at last"

    return hang


@pytest.mark.parametrize(("effect", "unknown"), [("read_only", False), ("idempotent", True), ("at_most_once", True)])
def test_a_function_over_its_limit_fails_and_the_turn_goes_on(effect: str, unknown: bool) -> None:
    """At `timeout_s` the call gets a failed result with what is known about its effect, the model answers, and the
    value that comes later is dropped with a notice. The log verifies.
    """
    released = threading.Event()
    world = world_of(hanging(released, effect))

    async def main() -> None:
        left = await world.tell("go")
        [result] = results(left)
        assert (result.ok, result.unknown) == (False, unknown)
        assert "it was still running after 30 seconds, its time limit" in result.text
        assert ("Find out before you call it again" in result.text) == unknown
        assert kinds(left)[-3:] == ["model_reply", "message_sent", "function_result"]
        released.set()
        while not world.notes:  # noqa: ASYNC110 - a thread notes it
            await asyncio.sleep(0)
        [note] = world.notes
        assert note.startswith("the function 'hang' of 'sam' returned after the agent had stopped waiting for it")
        assert note.endswith("Its result was dropped.")
        assert "at last" not in str(world.log())
        view = world.system.view("sam")
        assert verify(view, world.system.tools).faults == []
        view.close()

    virtual_time.run(main, threads=True)


def coroutine(limit_s: float | None, cleanup_s: float, log: list[str]) -> Tool:
    @tool(timeout_s=limit_s)
    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.sleep(10**9)
        except asyncio.CancelledError:
            log.append(f"cancelled: {everlog.cancelled()}")
            await asyncio.sleep(cleanup_s)
            log.append("cleaned up")
        return "never"

    return wait


@pytest.mark.parametrize("cleanup_s", [0, FUNCTION_GRACE_S - 1, FUNCTION_GRACE_S + 60])
def test_a_coroutine_over_its_limit_is_cancelled(cleanup_s: float) -> None:
    """A coroutine function is cancelled at its limit and may clean up. One that continues is left behind with a notice:
    the turn does not wait for it.
    """
    done: list[str] = []
    left_behind = cleanup_s > FUNCTION_GRACE_S

    async def main() -> None:
        notes: list[str] = []
        made = coroutine(30, cleanup_s, done)
        result = await run_function(made, {}, PROCESS_THREADS, notes.append, agent_id="sam")
        assert (result.ok, result.unknown) == (False, True)
        assert asyncio.get_running_loop().time() == 30 + min(cleanup_s, FUNCTION_GRACE_S)
        assert (len(done), notes) == (1 if left_behind else 2, [])
        await asyncio.sleep(1000)
        assert (len(done), len(notes)) == (2, int(left_behind))

    virtual_time.run(main)


def test_without_a_limit_a_function_may_take_any_time() -> None:
    """`timeout_s=None` waits as long as the function runs; without `timeout_s` the limit is the default."""

    @tool(timeout_s=None)
    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(10**6)
        return "awake"

    async def main() -> None:
        assert await run_function(sleep, {}, PROCESS_THREADS, print) == "awake"
        limited = msgspec.structs.replace(sleep, timeout_s=FUNCTION_LIMIT_S)
        assert not (await run_function(limited, {}, PROCESS_THREADS, print)).ok

    virtual_time.run(main)
    assert raising(ValueError()).timeout_s == FUNCTION_LIMIT_S


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan"), "30", True])
def test_an_impossible_limit_is_refused(limit: Any) -> None:
    """A limit that is not a finite number above 0 raises BadInput, and so does any limit of a memory function."""
    with pytest.raises(BadInput, match="timeout_s"):

        @tool(timeout_s=limit)
        def look() -> None:
            """Look."""

    with pytest.raises(BadInput, match="timeout_s"):

        @tool(timeout_s=30)
        def plan(memory: Memory) -> None:
            """Plan."""


def test_a_function_can_ask_whether_it_is_still_waited_for() -> None:
    """`everlog.cancelled()` is False while the call is waited for, and True after its turn was cancelled. Outside of a
    function it is False.
    """
    begun, ended = threading.Event(), threading.Event()
    seen: list[bool] = []

    @tool
    def work() -> None:
        """Work."""
        seen.append(everlog.cancelled())
        begun.set()
        while not everlog.cancelled():
            ended.wait(0.001)
        seen.append(True)
        ended.set()

    async def main() -> None:
        call = asyncio.ensure_future(run_function(work, {}, PROCESS_THREADS, lambda _: None))
        await asyncio.to_thread(begun.wait)
        call.cancel()
        await asyncio.wait([call])
        await asyncio.to_thread(ended.wait)

    asyncio.run(main())
    assert (seen, everlog.cancelled()) == ([False, True], False)


def raising(error: BaseException) -> Tool:
    @tool
    def fail() -> None:
        """Fail."""
        raise error

    return fail


@pytest.mark.parametrize(("error", "text"), [
    (ValueError("no wind"), "ValueError: no wind"), (StopIteration(3), "StopIteration: 3"),
    (KeyboardInterrupt(), "KeyboardInterrupt"), (SystemExit(3), "SystemExit: 3"), (GeneratorExit(), "GeneratorExit"),
    (asyncio.CancelledError(), "CancelledError"), (TimeoutError("of its own"), "TimeoutError: of its own"),
])  # fmt: skip
def test_an_exception_of_a_plain_function_is_its_result(error: BaseException, text: str) -> None:
    """Any exception in a function's thread is a failed result with its type and text, and the turn continues."""
    [result] = ran(raising(error))
    assert (result.ok, result.unknown) == (False, False)
    assert text in result.text


def test_what_needs_the_main_thread_fails_in_clear_words() -> None:
    """A plain function runs in a thread, so it cannot install a handler of signals; an event loop of its own works."""

    @tool
    def handle() -> None:
        """Handle a signal."""
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    @tool
    def loop() -> int:
        """Run a loop."""
        return asyncio.run(asyncio.sleep(0, 3))

    first, second = ran(handle, loop)
    assert "signal only works in main thread" in first.text
    assert second.text == "3"


def test_a_function_that_returns_work_fails_or_has_it_done() -> None:
    """A coroutine that a plain function returns is awaited. A generator is refused, because it would never run: when
    the function is made, or when it returns one.
    """

    async def inner() -> str:
        return "done"

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper() -> Any:
            return function()

        return wrapper

    @tool
    @decorated
    async def wrapped() -> str:
        """Do it through a decorator."""
        return await inner()

    @tool
    def lazy() -> Any:
        """Make a generator."""
        return (number for number in range(3))

    first, second = ran(wrapped, lazy)
    assert (first.ok, first.text, second.ok) == (True, "done", False)
    assert "returned a generator, of which nothing was run" in second.text
    with pytest.raises(BadInput, match="yield"):

        @tool
        def steps() -> Any:
            """Give steps."""
            yield 1


def test_a_function_of_memory_runs_in_a_thread_too() -> None:
    """A user's function of memory cannot hold up the loop either; its edits and its failures are in the log as ever,
    and `verify` runs it again.
    """
    threads: list[bool] = []

    @tool
    def plan(memory: Memory) -> str:
        """Plan."""
        threads.append(threading.current_thread() is threading.main_thread())
        memory.append("human", "Sails.")
        return memory.value("human")

    @tool
    def half(memory: Memory) -> None:
        """Fail half-way."""
        memory.append("human", "Never.")
        raise ValueError("no more")

    @tool
    def lazy(memory: Memory) -> Any:
        """Return work."""
        memory.append("human", "Nor this.")
        return asyncio.sleep(0)

    first, second, third = ran(plan, half, lazy)
    assert threads[0] is False
    assert first.text.endswith("Sails.")
    assert (second.ok, third.ok) == (False, False)
    assert "no more" in second.text and "returned a coroutine" in third.text


def test_a_memory_function_sees_the_edits_before_it_and_leaves_its_own() -> None:
    """Calls of one reply share the memory, in order, whether everlog's own or a user's."""

    @tool
    def shout(memory: Memory) -> None:
        """Shout."""
        memory.set("human", memory.value("human").upper())

    add = ("core_memory_append", {"name": "human", "content": "first"})
    more = ("core_memory_append", {"name": "human", "content": "last"})
    world = Noted(completion(calls=[add, ("shout", {}), more]), say("So."), tools=[shout])
    left = asyncio.run(world.tell("go"))
    edits = [record.text or "" for record in left if record.type == "memory_edited"]
    assert edits[-3].endswith("first") and edits[-2].endswith("FIRST") and edits[-1].endswith("FIRST\nlast")
    view = world.system.view("sam")
    assert verify(view, world.system.tools).faults == []
    view.close()


def test_a_call_without_a_thread_says_that_it_was_not_run() -> None:
    """The result of such a call is failed, its effect is known not to have happened, and it can be called again."""

    class Full:
        async def run(self, work: Any, limit_s: Any, on_late: Any) -> FunctionOutcome:
            return FunctionOutcome("not_started")

    result = asyncio.run(run_function(raising(ValueError()), {}, Full(), print))
    assert (result.ok, result.unknown) == (False, False)
    assert "it was not run" in result.text
