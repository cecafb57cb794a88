"""Time that passes only when no task can run: an event loop whose sleepers wake at once, in the order of their times.

While any task can run, no time passes. When all tasks wait, time moves to the earliest sleeper. If no task sleeps
either, the test could never continue: that is an error instead of a hanging test. A test with threads of its own says
so: then the loop waits for them instead, once no time that passes can wake a task.
"""

import asyncio
import gc
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

from tests.support.agent_world import SECOND, START


class Stuck(AssertionError):
    """Every task waits for an event that cannot come."""


class _Selector(selectors.DefaultSelector):
    """A selector that never waits: it moves the time instead."""

    def __init__(self, *, threads: bool) -> None:
        super().__init__()
        self._threads = threads
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None and self._threads:
            return super().select(None)
        if timeout is None:
            raise Stuck("every task waits, and no time that passes will wake one")
        ready = super().select(0)
        if not ready:
            self.passed += max(timeout, 0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time` is seconds since its beginning, none of them real."""

    def __init__(self, *, threads: bool = False) -> None:
        self._moments = _Selector(threads=threads)
        super().__init__(self._moments)
        self.complaints: list[str] = []
        """Unreported failures: exceptions never retrieved, tasks destroyed while pending."""
        self.set_exception_handler(lambda _, context: self.complaints.append(str(context)))

    def time(self) -> float:
        return self._moments.passed


class WallClock:
    """The time of day on a virtual loop, from START; a test sets the offset `skew` in microseconds."""

    def __init__(self, skew: int = 0) -> None:
        self.skew = skew

    def now(self) -> int:
        try:
            passed = asyncio.get_running_loop().time()
        except RuntimeError:
            passed = 0.0
        return START + round(passed * SECOND) + self.skew


def run(main: Callable[[], Coroutine[Any, Any, Any]], *, collect: bool = True, threads: bool = False) -> Any:
    """Return the result of `main()`, run in virtual time. `main` must leave no task and no unretrieved exception.

    With `collect`, remaining tasks in cycles of garbage are searched too, which takes a while. `threads`: the test has
    threads, which the loop may have to wait for.
    """
    loops: list[VirtualLoop] = []

    def factory() -> VirtualLoop:
        loops.append(VirtualLoop(threads=threads))
        return loops[-1]

    async def whole() -> Any:
        value = await main()
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"left pending: {left}"
        return value

    # Collections, also those of a shard at rest, traverse this run alone: a suite has millions of objects. They stay
    # frozen: `gc.unfreeze` would lead to a collection of all of them soon after, a tenth of the suite's time.
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=factory) as runner:
        value = runner.run(whole())
    if collect:
        gc.collect()
    assert not loops[0].complaints, loops[0].complaints
    return value
