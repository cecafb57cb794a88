"""Commands whose output nobody reads any more: they end at once, and what was sent is kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli.command_line import Line

ROOT = Path(__file__).parents[3]


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
