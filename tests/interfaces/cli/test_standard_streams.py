"""Processes whose standard streams are closed, full or of no width: nothing is lost without a word."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli.command_line import Line
from tests.support.seeds import split

ROOT = Path(__file__).parents[3]
FULL = "/dev/full"


def run_shell(cli: Line, words: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a shell command in which `everlog` stands for the command line over the store of `cli`."""
    command = f'"{sys.executable}" -m everlog.interfaces.cli.main --store "{cli.root}"'
    env = {**os.environ, "EVERLOG_RUNTIME": "local", **environment}
    words = words.replace("everlog", command)
    return subprocess.run(["/bin/sh", "-c", words], cwd=ROOT, env=env, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("closed", split([">&-", "<&- >&-", "<&- >&- 2>&-"], 1, label="closed", part="commands"))
def test_closed_streams_end_no_command(cli: Line, closed: str) -> None:
    """With any of the three streams closed a message is sent, answered and stored, and the log is whole."""
    cli.ok("create", "sam")
    ran = run_shell(cli, f"everlog send sam hello {closed}")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    kinds = [record["type"] for record in cli.lines("events", "sam")]
    assert "user_message" in kinds and kinds[-1] == "function_result"
    assert "no damage" in cli.ok("log", "check", "--all", "--deep")


def test_a_chat_with_a_closed_stdin_ends(cli: Line) -> None:
    cli.ok("create", "sam")
    ran = run_shell(cli, "everlog chat sam <&-")
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.skipif(not Path(FULL).exists(), reason="no /dev/full here")
def test_output_that_is_lost_is_an_error(cli: Line) -> None:
    """On a full disk a command whose output is lost says so, and what it had done is kept; help does so too."""
    cli.ok("create", "sam")
    for words in ("send sam hello", "events sam", "--help"):
        ran = run_shell(cli, f"everlog {words} > {FULL}")
        assert ran.returncode == 1
        assert ran.stderr.startswith(b"everlog: The output could not be written (No space left on device).")
        assert b"Traceback" not in ran.stderr
    assert "hello" in [record["text"] for record in cli.lines("events", "sam")]


def test_a_terminal_of_no_columns_shows_everything(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS=0, as some editors set it, is no width: the output is what it is without the variable."""
    cli.ok("create", "sam")
    monkeypatch.setenv("COLUMNS", "0")
    shown = cli.ok("agents")
    monkeypatch.delenv("COLUMNS")
    assert shown == cli.ok("agents") and "sam" in shown
