"""Run a user's function: a plain one in a thread, a coroutine in the event loop, both with a time limit.

Used by `turn_runner.py` and by reruns. A function must never hold up the event loop, because all agents of a process
share it. The result is always a value or a FunctionResult that says what is known about the effect: an exception of the
function never ends the turn, unless the function is everlog's own and the exception is a bug.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from everlog.actors.functions.function_text import THREAD_FAULTS, failure, said, unusable
from everlog.actors.functions.tools import Tool
from everlog.actors.ports import function_call
from everlog.actors.ports.agent_constants import FUNCTION_GRACE_S, FUNCTION_WAIT_S
from everlog.actors.ports.effects import FunctionOutcome, FunctionRunner
from everlog.actors.ports.function_threads import ANY_ERROR
from everlog.events import FunctionError, FunctionResult

_LEFT: set["asyncio.Task[Any]"] = set()
"""Coroutines that were cancelled and still run. The event loop alone would not keep them alive."""


async def run_function(
    tool: Tool,
    arguments: Mapping[str, Any],
    runner: FunctionRunner,
    note: Callable[[str], None],
    on_progress: function_call.ProgressListener = function_call.ignore_progress,
    *,
    continuation: function_call.Continuation | None = None,
    desk: Sequence[Any] = (),
    agent_id: str = "",
) -> Any:
    """Run the function and return its value; for a call that failed, a FunctionResult without the call's id.

    `note` gets a notice if the function ends after the agent stopped waiting for it: its value is dropped.
    `on_progress` gets its lines of progress. `continuation`: answers to the question with which the call had ended.
    `desk`: arguments by place. Raises an exception of the function only if it is not among the tool's `faults`, and
    CancelledError if this task is cancelled.
    """
    call = function_call.RunningCall(on_progress, continuation)
    context = contextvars.copy_context()
    context.run(function_call.CURRENT.set, call)
    work = partial(tool.function, *desk, **arguments)

    def on_late(outcome: FunctionOutcome) -> None:
        ended = f"raised {said(outcome.error)}" if outcome.error is not None else "returned"
        note(
            f"the function {tool.name!r} of {agent_id!r} {ended} after the agent had stopped waiting for it: its "
            "time limit was over, or its turn had ended. Its result was dropped."
        )

    own_faults = (*tool.faults, asyncio.CancelledError)
    try:
        if tool.process is not None:
            outcome = await _awaited(_in_process(tool, arguments), context, tool.timeout_s, on_late)
        elif inspect.iscoroutinefunction(tool.function):
            outcome = await _awaited(work(), context, tool.timeout_s, on_late)
        else:
            own_faults = (*tool.faults, *THREAD_FAULTS)
            outcome = await runner.run(partial(context.run, work), tool.timeout_s, on_late)
        # A plain function may only make a coroutine, as some decorators do. An edit of memory never waits.
        if inspect.isawaitable(outcome.value) and not tool.takes_memory:
            outcome = await _awaited(outcome.value, context, tool.timeout_s, on_late)
    finally:
        call.over.set()
    return _result(tool, outcome, own_faults)


async def _in_process(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    from everlog.actors.functions.processes import function_process

    return await function_process.call(tool, arguments)


async def _awaited(
    work: Awaitable[Any],
    context: contextvars.Context,
    limit_s: float | None,
    on_late: Callable[[FunctionOutcome], None],
) -> FunctionOutcome:
    """Run a coroutine in a task of its own, so that one that ignores its cancellation can be left behind."""
    task = asyncio.get_running_loop().create_task(_outcome_of(work), context=context)
    done = False
    try:
        await asyncio.wait((task,), timeout=limit_s)
        done = task.done()
    finally:
        if not done:
            await _stop(task, on_late)
            if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()  # cancelled before its first step
    return task.result() if done else FunctionOutcome("limit")


async def _outcome_of(work: Awaitable[Any]) -> FunctionOutcome:
    """Await a coroutine. Its exceptions become values here: asyncio would end the loop for some of them."""
    try:
        return FunctionOutcome("returned", await work)
    except GeneratorExit:
        raise
    except ANY_ERROR as error:
        return FunctionOutcome("raised", error=error)


async def _stop(task: "asyncio.Task[FunctionOutcome]", on_late: Callable[[FunctionOutcome], None]) -> None:
    """Cancel a coroutine, and give it FUNCTION_GRACE_S seconds to clean up. One that continues is left behind."""
    task.cancel()
    _LEFT.add(task)
    task.add_done_callback(_LEFT.discard)
    await asyncio.wait((task,), timeout=FUNCTION_GRACE_S)
    if not task.done():
        task.add_done_callback(lambda ended: on_late(ended.result()))


def _result(tool: Tool, outcome: FunctionOutcome, own_faults: tuple[type[BaseException], ...]) -> Any:
    """Return the value of a function that returned one; for any other outcome a failed FunctionResult."""
    match outcome.ending:
        case "limit":
            return _failed(tool, FunctionError(_limit_text(tool)), unknown=tool.effect != "read_only")
        case "not_started":
            waited = f"no thread was free for it within {FUNCTION_WAIT_S} seconds"
            return _failed(tool, FunctionError(f"it was not run, because {waited}. It can be called again."))
    error = outcome.error or unusable(outcome.value)
    if error is None:
        return outcome.value
    if isinstance(error, (FunctionError, *own_faults)):
        return _failed(tool, error)
    raise error


def _limit_text(tool: Tool) -> str:
    """Return what is known about a call that was still running at its time limit."""
    over = f"it was still running after {tool.timeout_s:g} seconds, its time limit, and its result is dropped."
    if tool.effect == "read_only":
        return f"{over} It can be called again."
    return f"{over} Its effect may or may not have happened. Find out before you call it again."


def _failed(tool: Tool, error: BaseException, *, unknown: bool = False) -> FunctionResult:
    text = failure(tool.name, error)
    return FunctionResult(text=text, call_id="", name=tool.name, ok=False, unknown=unknown)
