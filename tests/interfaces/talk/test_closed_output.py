"""Commands whose output is closed: they end at once, and sent messages are stored."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli.command_line import Line

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("said", [b"hello\nhello again\n/exit\n", b"/memory\n"])
def test_an_unread_chat_ends(cli: Line, said: bytes) -> None:
    """A chat with a closed output ends at once, with the exit code that shells use."""
    cli.ok("create", "sam")
    run = _unread(cli, said, "chat", "sam")
    assert (run.returncode, run.stderr) == (141, b"")


def test_an_unread_answer_is_kept(cli: Line) -> None:
    """The message is stored although the answer cannot be printed; the exit code is 141, and no failure is reported."""
    run = _unread(cli, b"", "send", "sam", "hi")
    assert (run.returncode, run.stderr) == (141, b"")
    assert "hi" in [record["text"] for record in cli.lines("events", "sam")]


def _unread(cli: Line, said: bytes, *argv: str) -> "subprocess.CompletedProcess[bytes]":
    """Start a command in a process of its own whose stdout is closed."""
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
