"""Commands whose output is closed: they end at once, and sent messages are kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli.command_line import Line

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("said", [b"hello\nhello again\n/exit\n", b"/memory\n"])
def test_an_unread_chat_ends(cli: Line, said: bytes) -> None:
    """A conversation with a closed output ends at once, with the code that shells give it."""
    cli.ok("create", "sam")
    run = _unread(cli, said, "chat", "sam")
    assert (run.returncode, run.stderr) == (141, b"")


def test_an_unread_answer_is_kept(cli: Line) -> None:
    """The message is kept, though its answer is not read: 141, and not a failure."""
    run = _unread(cli, b"", "send", "sam", "hi")
    assert (run.returncode, run.stderr) == (141, b"")
    assert "hi" in [record["text"] for record in cli.lines("events", "sam")]


def _unread(cli: Line, said: bytes, *argv: str) -> "subprocess.CompletedProcess[bytes]":
    """A command in a process of its own, whose stdout is closed."""
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
