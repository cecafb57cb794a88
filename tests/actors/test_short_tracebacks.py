"""The traceback of an error that a script did not catch is short, and the whole story can be had."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import everlog
from everlog.actors.short_tracebacks import shorten
from everlog.events import ModelError

BLOCKING = """
import everlog

with everlog.open("store", base_url="http://127.0.0.1:1/v1") as system:
    agent = system.agent("sam", everlog.Settings(model="some-model"))
    agent.ask("Hi")
"""
ASYNCHRONOUS = """
import asyncio
import everlog

async def main() -> None:
    async with everlog.open_system("store", base_url="http://127.0.0.1:1/v1") as system:
        agent = await system.agent("sam", everlog.Settings(model="some-model"))
        await agent.ask("Hi")

asyncio.run(main())
"""
TINY_PATIENCE = {"EVERLOG_GATEWAY_ATTEMPTS_MAX": "1", "OPENAI_API_KEY": "none", "EVERLOG_RUNTIME": "local"}


def printed(folder: Path, program: str, **environment: str) -> list[str]:
    """Run a program whose endpoint refuses every connection. Return the lines that it prints on stderr."""
    (folder / "script.py").write_text(program)
    kept = {name: value for name, value in os.environ.items() if name != "EVERLOG_LOG"}
    run = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env={**kept, **TINY_PATIENCE, **environment}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout
    return run.stderr.splitlines()


@pytest.mark.parametrize(("program", "lines_max"), [(BLOCKING, 10), (ASYNCHRONOUS, 25)])
def test_an_error_of_a_model_is_a_few_lines(tmp_path: Path, program: str, lines_max: int) -> None:
    """A script prints its own line, at most one of everlog's border, and the error; asyncio adds its own lines."""
    lines = printed(tmp_path, program)
    assert len(lines) <= lines_max, "\n".join(lines)
    assert lines[-1].startswith("everlog.events.errors.ModelError: ")
    assert any('script.py"' in line for line in lines)
    assert not any("httpx" in line or "httpcore" in line or "gateway" in line for line in lines[:-1])


def test_everything_is_shown_for_debugging(tmp_path: Path) -> None:
    """With EVERLOG_LOG=debug the traceback has the frames of everlog and of the library that failed."""
    lines = printed(tmp_path, BLOCKING, EVERLOG_LOG="debug")
    assert any("gateway" in line for line in lines)
    assert any("httpx2" in line for line in lines)


def test_what_led_to_an_error_stays_with_it() -> None:
    """The cause is hidden in the traceback, and kept as the context of the error."""
    cause = OSError("no route")

    def fail() -> None:
        try:
            raise cause
        except OSError as error:
            raise ModelError("The endpoint is down.", kind="unreachable") from error

    with pytest.raises(ModelError) as raised:
        fail()
    error = raised.value
    shorten(error)
    assert (error.__cause__, error.__context__, error.__suppress_context__) == (None, cause, True)
    assert error.__traceback__ is None


def test_a_fault_of_everlog_keeps_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors that are not raised on purpose are not shortened."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with everlog.open(tmp_path) as system:
        monkeypatch.setattr(system._wrapped._reading, "agents", broken)
        with pytest.raises(ZeroDivisionError) as raised:
            system.agents()
        assert raised.traceback[-1].name == "broken"
