"""Lines of progress of a user's function: they come while it runs, and never hold it up, nor the agents' loop."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import everlog
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.functions.run_function import run_function
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.hosting.subscribers import StreamSubscriber
from everlog.actors.ports.agent_constants import PREVIEW_CHARS_MAX
from everlog.actors.ports.function_call import PROGRESS_CHARS_MAX, PROGRESS_S, RunningCall
from everlog.actors.ports.function_threads import PROCESS_THREADS
from everlog.testing import ScriptedModel, call, system
from tests.support import virtual_time


def made(function: Callable[..., Any], **more: Any) -> Tool:
    function.__doc__ = "Dig."
    return tool(function, effect="read_only", **more)


async def ran(one: Tool, on_progress: Callable[[str], None]) -> Any:
    """Return the value of the function, which waits until `on_progress` lets it continue."""
    return await asyncio.wait_for(run_function(one, {}, PROCESS_THREADS, print, on_progress), timeout=60)


def test_a_line_of_a_plain_function_comes_while_it_runs() -> None:
    """The function, in its thread, continues only after its line was reported, on one line."""
    seen, released = [], threading.Event()

    def dig() -> str:
        everlog.progress("1 of 2\n  holes")
        return "dug" if released.wait(60) else "never seen"

    def on_progress(line: str) -> None:
        seen.append(line)
        released.set()

    assert asyncio.run(ran(made(dig), on_progress)) == "dug"
    assert seen == ["1 of 2 holes"]


def test_a_line_of_a_coroutine_comes_while_it_runs() -> None:
    """The same for a coroutine in the loop."""

    async def main() -> None:
        seen: list[str] = []
        released = asyncio.Event()

        async def dig() -> str:
            everlog.progress("half")
            await released.wait()
            return "dug"

        def on_progress(line: str) -> None:
            seen.append(line)
            released.set()

        assert (await ran(made(dig), on_progress), seen) == ("dug", ["half"])

    asyncio.run(main())


def test_a_line_of_a_function_in_a_process_of_its_own_comes_while_it_runs(tmp_path: Path) -> None:
    """The same for a process, which shares nothing with this one."""
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    end, seen = os.open(pipe, os.O_RDWR), []

    def dig() -> str:
        everlog.progress("half\ndone")
        waiting = os.open(pipe, os.O_RDONLY)
        return os.fsdecode(os.read(waiting, 1))

    def on_progress(line: str) -> None:
        seen.append(line)
        os.write(end, b"x")

    limits = everlog.ProcessLimits(network=True)
    assert asyncio.run(ran(made(dig, process=limits), on_progress)) == "x"
    os.close(end)
    assert seen == ["half done"]


def test_a_process_that_cannot_write_its_line_runs_on(tmp_path: Path) -> None:
    """Nothing depends on a line of progress: a full disk, or a limit of files, loses it and no more."""

    def dig() -> str:
        os.environ["_EVERLOG_PROGRESS_FILE"] = "/no/such/folder/file"
        everlog.progress("half")
        return "dug"

    assert asyncio.run(ran(made(dig, process=everlog.ProcessLimits(network=True)), pytest.fail)) == "dug"


def test_of_many_lines_the_newest_is_reported() -> None:
    """The first comes at once, then one each tenth of a second, and none after the end of the call."""

    async def main() -> None:
        loop, seen = asyncio.get_running_loop(), []
        began = loop.time()
        running = RunningCall(lambda line: seen.append((line, round(loop.time() - began, 3))))
        for number in range(1000):
            running.report(f"{number}")
            await asyncio.sleep(PROGRESS_S / 100)
        running.report("last")
        running.over.set()
        running.report("too late")
        await asyncio.sleep(1)
        assert seen[0] == ("0", 0.0)
        assert len(seen) <= 11
        assert [line for line, _ in seen] == sorted((line for line, _ in seen), key=int)
        assert "last" not in dict(seen)

    virtual_time.run(main)


def test_a_line_is_cut_and_an_empty_one_is_none() -> None:
    """A line has at most PROGRESS_CHARS_MAX characters."""

    async def main() -> None:
        seen: list[str] = []
        running = RunningCall(seen.append)
        running.report(" \n")
        running.report("ä" * 10_000)
        await asyncio.sleep(1)
        assert seen == ["ä" * PROGRESS_CHARS_MAX]

    virtual_time.run(main)


def test_progress_outside_of_a_call_does_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A function can be called in a test, or by a program, as it is."""
    monkeypatch.chdir(tmp_path)
    everlog.progress("half")
    assert list(tmp_path.iterdir()) == []


def test_a_slow_reader_gets_the_newest_line() -> None:
    """Lines that wait in the queue of a subscriber are replaced, so that they take no memory."""

    async def main() -> None:
        subscriber = StreamSubscriber("command", "asker", held=False)
        for number in range(100_000):
            subscriber.on_preview(Preview(1, 1, "progress", f"line {number}"))
        assert await subscriber.next() == Preview(1, 1, "progress", "line 99999")
        assert subscriber.collected.empty()
        subscriber.on_preview(Preview(1, 1, "message", "x" * PREVIEW_CHARS_MAX))
        assert await subscriber.next() == Preview(1, 1, "message", "x" * PREVIEW_CHARS_MAX)

    asyncio.run(main())


def test_progress_is_not_recorded_and_the_model_does_not_see_it() -> None:
    """The log and the requests of an agent are the same with and without it."""

    @tool(effect="read_only")
    def dig() -> str:
        """Dig."""
        everlog.progress("secret half")
        return "dug"

    model = ScriptedModel([call("dig"), "Dug."])
    with system(model, tools=[dig]) as agents:
        assert agents.agent("sam").ask("Dig").text == "Dug."
        assert "secret half" not in str(agents.log("sam"))
        assert "secret half" not in str(model.last.messages)
        agents.assert_verified("sam")
