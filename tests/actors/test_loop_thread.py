"""The event loop in its own thread: every failure in it reaches the waiting caller, and no caller waits for ever."""

import asyncio
import signal
import sys
import threading
import traceback

import pytest

from everlog.actors.loop_thread import LoopThread


async def leaves() -> None:
    """Raise SystemExit, as work that ends the program does."""
    raise SystemExit(3)


async def one() -> int:
    """Return at once."""
    return 1


def test_work_that_ends_the_program_raises_in_its_caller() -> None:
    """SystemExit in the loop's thread is raised where the work was submitted, and the loop continues with the next
    work.
    """
    with LoopThread() as loop:
        with pytest.raises(SystemExit):
            loop.run(leaves())
        loop.start(leaves())
        assert loop.run(one()) == 1


def test_no_caller_waits_for_a_failed_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the loop itself fails, waiting callers get an error, and the block ends."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    loop_thread = LoopThread()

    def broken() -> None:
        raise OSError("no more")

    monkeypatch.setattr(loop_thread._loop, "run_forever", broken)
    with pytest.raises(RuntimeError, match="loop of the agents failed"), loop_thread as loop:
        loop.run(asyncio.sleep(0))


def test_a_ctrl_c_that_another_thread_received_is_heeded() -> None:
    """The system may deliver Ctrl-C to any thread of the process. It ends the wait of the main thread all the same."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process starts with SIGINT ignored
    gave_up: list[bool] = []

    async def pressed_here() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        await asyncio.sleep(10)
        gave_up.append(True)

    try:
        with LoopThread() as loop, pytest.raises(KeyboardInterrupt):
            loop.run(pressed_here())
    finally:
        signal.signal(signal.SIGINT, before)
    assert not gave_up


def test_ctrl_c_before_the_work_could_begin_does_not_wait_for_ever() -> None:
    """Work that is interrupted while the loop is busy with something else is cancelled before it begins."""
    pressed = threading.Event()
    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process starts with SIGINT ignored

    async def busy() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        pressed.wait(10)

    try:
        with LoopThread() as loop:
            original = loop._wait

            def waited(future):
                try:
                    return original(future)
                except KeyboardInterrupt:
                    pressed.set()
                    raise

            loop._wait = waited
            with pytest.raises(KeyboardInterrupt):
                loop.start(busy())
                loop.run(one())
            pressed.set()  # Ctrl-C may have come before the wait
            loop._wait = original
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_right_after_the_work_began_is_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler gets a Ctrl-C that comes when the work has begun and the main thread does not wait yet: on a busy
    machine the work may be far by then. The work continues if the handler says so.
    """
    pressed: list[bool] = []

    async def handled() -> bool:
        return True

    with LoopThread() as loop:
        queue = loop._loop.call_soon_threadsafe

        def queue_and_press(work):
            queue(work)
            if not pressed:
                pressed.append(True)
                raise KeyboardInterrupt

        monkeypatch.setattr(loop._loop, "call_soon_threadsafe", queue_and_press)
        assert loop.run(one(), handled) == 1
    assert pressed


async def waits(thread: int) -> None:
    """Wait until the thread waits for the loop, so that Ctrl-C meets work that has begun."""
    while True:
        frames = traceback.walk_stack(sys._current_frames()[thread])
        if "_wait" in {frame.f_code.co_name for frame, _ in frames}:
            return
        await asyncio.sleep(0)


@pytest.mark.parametrize(("found", "presses"), [(True, 1), (True, 2), (False, 1)])
def test_the_first_ctrl_c_can_be_handled_and_the_second_is_raised(found: bool, presses: int) -> None:
    """If the handler of the first Ctrl-C returns True, the work is awaited; otherwise, or on a second Ctrl-C,
    KeyboardInterrupt is raised.
    """
    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    ended: list[str] = []

    async def main_work(heeded: asyncio.Event) -> str:
        try:
            await waits(main)
            signal.pthread_kill(main, signal.SIGINT)
            await heeded.wait()
            if presses == 2:
                await waits(main)
                signal.pthread_kill(main, signal.SIGINT)
                await asyncio.Event().wait()
        finally:
            ended.append("work")
        return "done"

    async def on_interrupt(heeded: asyncio.Event) -> bool:
        if found:
            heeded.set()
        return found

    try:
        with LoopThread() as loop:
            heeded = asyncio.Event()
            if found and presses == 1:
                assert loop.run(main_work(heeded), lambda: on_interrupt(heeded)) == "done"
            else:
                with pytest.raises(KeyboardInterrupt):
                    loop.run(main_work(heeded), lambda: on_interrupt(heeded))
            assert ended == ["work"]
    finally:
        signal.signal(signal.SIGINT, before)
