"""Threads of users' functions: how many run at a time, in which order, and what becomes of those that hang."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest

from everlog.actors.ports import function_threads
from everlog.actors.ports.effects import FunctionOutcome
from everlog.actors.ports.function_threads import FunctionThreads
from tests.support import virtual_time


class Hung:
    """Functions that hang until the test releases them."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.late: list[FunctionOutcome] = []
        self._released: dict[str, threading.Event] = {}
        self._arrived = threading.Condition()

    def work(self, name: str) -> Callable[[], str]:
        """Return a function that begins, and hangs until `release`."""
        released = self._released[name] = threading.Event()

        def work() -> str:
            with self._arrived:
                self.begun.append(name)
                self._arrived.notify_all()
            released.wait()
            return name

        return work

    def release(self, *names: str) -> None:
        for name in names:
            self._released[name].set()

    async def begins(self, count: int) -> None:
        """Wait until so many functions have begun. The loop waits too, so that no virtual time passes meanwhile."""
        await rounds()
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.begun) >= count, timeout=60)

    def start(self, threads: FunctionThreads, name: str, limit_s: float | None = None) -> "asyncio.Task[Any]":
        return asyncio.ensure_future(threads.run(self.work(name), limit_s, self.late.append))


def run(main: Callable[[], Any]) -> None:
    virtual_time.run(main, threads=True)


async def rounds(count: int = 10) -> None:
    """Let all that can run now run."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_calls_beyond_the_maximum_wait_in_order() -> None:
    """Of four calls with two threads, two wait, and begin in the order in which they came as threads get free."""

    async def main() -> None:
        hung, threads = Hung(), FunctionThreads(threads_max=2, place_s=10**6)
        calls = [hung.start(threads, name) for name in "abcd"]
        await hung.begins(2)
        await rounds()
        assert sorted(hung.begun) == ["a", "b"]
        hung.release("b")
        await hung.begins(3)
        assert hung.begun[2] == "c"
        hung.release("a", "c", "d")
        assert [outcome.value for outcome in await asyncio.gather(*calls)] == ["a", "b", "c", "d"]
        assert hung.begun[3] == "d"

    asyncio.run(main())


def test_a_call_that_runs_long_gives_its_place_to_another() -> None:
    """After `place_s` seconds a hanging function no longer counts, so that another begins. It ends as any other."""

    async def main() -> None:
        hung, threads = Hung(), FunctionThreads(threads_max=1, place_s=30)
        first, second = hung.start(threads, "a"), hung.start(threads, "b")
        await hung.begins(1)
        await asyncio.sleep(29)
        assert hung.begun == ["a"]
        await asyncio.sleep(2)
        await hung.begins(2)
        hung.release("a", "b")
        assert [(await call).value for call in (first, second)] == ["a", "b"]
        assert (threads._counted, threads._overdue) == (0, 0)

    run(main)


def test_a_call_that_nobody_waits_for_gives_its_place_to_another() -> None:
    """A call whose caller is cancelled, or whose limit is over, makes room at once; its outcome comes late."""

    async def main() -> None:
        hung, threads = Hung(), FunctionThreads(threads_max=1, place_s=10**6)
        cancelled, limited, third = (
            hung.start(threads, name, limit) for name, limit in (("a", None), ("b", 5), ("c", None))
        )
        await hung.begins(1)
        cancelled.cancel()
        await hung.begins(2)
        assert (await limited).ending == "limit"
        await hung.begins(3)
        hung.release("a", "b", "c")
        assert (await third).value == "c"
        while len(hung.late) < 2:
            await rounds(1)
        assert sorted(outcome.value for outcome in hung.late) == ["a", "b"]
        assert cancelled.cancelled() and (threads._counted, threads._overdue) == (0, 0)

    run(main)


def test_too_many_hanging_calls_keep_their_places() -> None:
    """With `overdue_max` calls that no longer count, a further one keeps counting: the number of threads is bounded.
    Calls that wait longer than `wait_s` for a thread are not run, so they do not wait for ever.
    """

    async def main() -> None:
        hung, threads = Hung(), FunctionThreads(threads_max=1, overdue_max=1, place_s=30, wait_s=600)
        calls = [hung.start(threads, name) for name in "abc"]
        await hung.begins(1)
        await asyncio.sleep(31)
        await hung.begins(2)
        assert (await calls[2]).ending == "not_started"
        assert asyncio.get_running_loop().time() >= 600
        hung.release("a", "b", "c")
        assert [(await call).value for call in calls[:2]] == ["a", "b"]
        assert sorted(hung.begun) == ["a", "b"]
        assert not threads._queue

    run(main)


def test_a_waiting_call_that_is_cancelled_never_runs() -> None:
    """A cancelled call leaves the queue, and the one behind it begins."""

    async def main() -> None:
        hung, threads = Hung(), FunctionThreads(threads_max=1, place_s=10**6)
        calls = [hung.start(threads, name) for name in "abc"]
        await hung.begins(1)
        calls[1].cancel()
        await rounds()
        hung.release("a", "c")
        assert [(await calls[number]).value for number in (0, 2)] == ["a", "c"]
        assert hung.begun == ["a", "c"]

    asyncio.run(main())


def test_a_machine_without_room_for_a_thread_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call for which no thread can be started is not run, and takes no place."""

    class Full(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    async def main() -> None:
        threads = FunctionThreads(threads_max=1)
        with monkeypatch.context() as full:
            full.setattr(function_threads.threading, "Thread", Full)
            assert (await threads.run(lambda: "never", None, lambda _: None)).ending == "not_started"
        assert (await threads.run(lambda: "ran", None, lambda _: None)).value == "ran"

    asyncio.run(main())


def test_a_thread_has_the_context_of_its_caller_and_is_a_daemon() -> None:
    """Context variables of the caller are seen by the function, and what the function sets stays its own. Its thread is
    not the loop's, and does not keep the process alive.
    """
    place = contextvars.ContextVar("place", default="nowhere")

    def work() -> tuple[str, bool, bool]:
        seen = place.get()
        place.set("elsewhere")
        return seen, threading.current_thread().daemon, threading.get_ident() == loop_thread

    async def main() -> None:
        place.set("here")
        outcome = await FunctionThreads().run(work, None, lambda _: None)
        assert outcome.value == ("here", True, False)
        assert place.get() == "here"

    loop_thread = threading.get_ident()
    asyncio.run(main())


@pytest.mark.parametrize("error", [StopIteration(3), KeyboardInterrupt(), SystemExit(2), GeneratorExit(), ValueError()])
def test_whatever_a_function_raises_is_its_outcome(error: BaseException) -> None:
    """Also an exception that would end a loop or a thread is returned to the caller."""

    def work() -> None:
        raise error

    outcome = asyncio.run(FunctionThreads().run(work, None, lambda _: None))
    assert (outcome.ending, outcome.error) == ("raised", error)


def test_a_function_that_ends_after_its_loop_is_forgotten() -> None:
    """A function that ends when its event loop is closed disturbs nothing, and gives its place back."""
    hung, threads = Hung(), FunctionThreads(threads_max=1)

    async def main() -> None:
        hung.start(threads, "a")
        await hung.begins(1)

    asyncio.run(main())
    hung.release("a")
    assert asyncio.run(threads.run(lambda: "next", None, lambda _: None)).value == "next"
