"""Every command of the command line with --server, carried out by a server whose agents run on Ray."""

import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.actors.feed.store_feed import FeedReader
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import ClusterError
from everlog.interfaces.client.server_channel import Patience
from tests.support.cli.command_line import Line
from tests.support.http.served_commands import FOLLOWED, LIVES, MEMORY, PROMPT, READING, TALK
from tests.support.http.served_line import ServedLine, served_line

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.cluster]


@pytest.fixture
def line(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[ServedLine]:
    """Return a command line whose commands go to a server in front of a Ray cluster."""
    with served_line(folder, capsys, runtime="ray") as line:
        line.clock, line._ids, line.real = RealClock(), RealIds(), True  # type: ignore[assignment]
        yield line


def test_the_commands_of_a_conversation(line: ServedLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Each command does its work on agents of the cluster; what only reads prints what it prints beside the store."""
    (tmp_path / "notes.md").write_text("# Harbours\n\nThe harbour of Bergen is deep.\n")
    said = [("user", "I like Rust"), ("assistant", "Noted")]
    (tmp_path / "past.jsonl").write_text("".join(
        f'{json.dumps({"role": role, "content": text, "time": f"2024-01-01T10:00:0{n}Z"})}\n'
        for n, (role, text) in enumerate(said)
    ))  # fmt: skip
    monkeypatch.setattr("sys.stdin", io.StringIO("What is my name?\n"))
    told = {"@": str(tmp_path)}
    for command, pattern in (*TALK, *MEMORY, *PROMPT):
        if "#" in command:
            told["#"] = str(line.json("approvals", "sam")[0]["seq"])
        if "ID" in command:
            told["ID"] = line.json("archive", "list", "sam")["results"][0]["ref"]
        if "SEQ" in command:
            told["SEQ"] = str(line.json("memories", "sam", "--kind", "fact")[0]["seq"])
        printed = line.ok(*words_of(command, told))
        for short, long in told.items():
            pattern = pattern.replace(short, long)
        assert re.search(pattern, printed), (command, printed)
    beside = Line(line._folder, line._capsys)
    beside.clock = line.clock
    for command in READING:
        words = words_of(command, told)
        assert without_ages(line.ok(*words)) == without_ages(beside.ok(*words)), command
    for command, pattern in LIVES:
        printed = line.ok(*words_of(command, told))
        assert re.search(pattern, printed), (command, printed)
    monkeypatch.setattr(FeedReader, "wait", over)
    monkeypatch.setattr(Patience, "wait", ctrl_c)
    code, printed, _ = line(*words_of(FOLLOWED, told))
    assert (code, printed) == (130, line.ok("events", "sam", "--json"))


async def over(*_: object) -> None:
    """End the feed of the server."""
    raise ClusterError("The test has read everything.")


async def ctrl_c(*_: object) -> None:
    """Press Ctrl-C while the client waits for the server."""
    raise KeyboardInterrupt


def words_of(command: str, told: dict[str, str]) -> list[str]:
    """Return the words of a command of the tables."""
    words = shlex.split(command)
    return [told.get(word, word.replace("@/", f"{told['@']}/")) for word in words]


def without_ages(text: str) -> str:
    """Return a text without the ages in it, which differ from one command to the next."""
    return re.sub(r"just now|\d+ (second|minute)s? ago|[─ ]+", " ", text)
