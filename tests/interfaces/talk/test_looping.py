"""The loop in a thread of its own: whatever happens in it is told to who waits, and nobody waits for ever."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

from everlog.interfaces.talk.looping import Looping
from tests.support.cli.line import Line

ROOT = Path(__file__).parents[3]


async def leaves() -> None:
    """Work that ends the program."""
    raise SystemExit(3)


async def one() -> int:
    """Work that is done at once."""
    return 1


def test_work_that_ends_the_program_is_told_to_its_caller() -> None:
    """SystemExit in the loop's thread is raised where the work was given, and the loop goes on for what is next."""
    with Looping() as loop:
        with pytest.raises(SystemExit):
            loop.run(leaves())
        loop.start(leaves())
        assert loop.run(one()) == 1


def test_nobody_waits_for_a_loop_that_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the loop itself breaks, who waits hears of it, and the block ends."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    looping = Looping()

    def broken() -> None:
        raise OSError("no more")

    monkeypatch.setattr(looping._loop, "run_forever", broken)
    with pytest.raises(RuntimeError, match="loop of the agents has failed"), looping as loop:
        loop.run(asyncio.sleep(0))


def test_ctrl_c_before_the_work_could_begin_does_not_wait_for_ever() -> None:
    """Work that is interrupted while the loop is busy with something else is cancelled before it begins."""
    pressed = threading.Event()
    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process is born without it

    async def busy() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        pressed.wait(10)

    try:
        with Looping() as loop:
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
            loop._wait = original
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("said", [b"hello\nhello again\n/exit\n", b"/memory\n"])
def test_a_chat_that_nobody_reads_ends(cli: Line, said: bytes) -> None:
    """A conversation whose output nobody reads any more ends at once, with the code that shells give it."""
    cli.ok("create", "sam")
    run = _unread(cli, said, "chat", "sam")
    assert (run.returncode, run.stderr) == (141, b"")


def test_an_answer_that_nobody_reads(cli: Line) -> None:
    """What was said is kept, though nobody reads the answer: 141, and not a failure."""
    run = _unread(cli, b"", "send", "sam", "hi")
    assert (run.returncode, run.stderr) == (141, b"")
    assert "hi" in [record["text"] for record in cli.lines("events", "sam")]


def _unread(cli: Line, said: bytes, *argv: str) -> "subprocess.CompletedProcess[bytes]":
    """A command in a process of its own, whose stdout nobody reads."""
    command = [sys.executable, "-m", "everlog.interfaces.cli.main", "--store", str(cli.root), *argv]
    env = {**os.environ, "EVERLOG_RUNTIME": "local"}
    read, write = os.pipe()
    os.close(read)
    try:
        return subprocess.run(
            command, cwd=ROOT, env=env, input=said, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False
        )
    finally:
        os.close(write)


async def waits(thread: int) -> None:
    """Until that thread waits for what the loop does: who presses Ctrl-C before has not begun anything."""
    while True:
        frames = traceback.walk_stack(sys._current_frames()[thread])
        if "_wait" in {frame.f_code.co_name for frame, _ in frames}:
            return
        await asyncio.sleep(0)


@pytest.mark.parametrize(("found", "presses"), [(True, 1), (True, 2), (False, 1)])
def test_the_first_ctrl_c_can_be_heeded_and_the_second_leaves(found: bool, presses: int) -> None:
    """Where something is done about it, the work is waited for; where nothing is, or it comes again, it is raised."""
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

    async def heed(heeded: asyncio.Event) -> bool:
        if found:
            heeded.set()
        return found

    try:
        with Looping() as loop:
            heeded = asyncio.Event()
            if found and presses == 1:
                assert loop.run(main_work(heeded), lambda: heed(heeded)) == "done"
            else:
                with pytest.raises(KeyboardInterrupt):
                    loop.run(main_work(heeded), lambda: heed(heeded))
            assert ended == ["work"]
    finally:
        signal.signal(signal.SIGINT, before)
