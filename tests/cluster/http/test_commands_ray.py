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
from everlog.interfaces.cli.command_parser import COMMANDS
from everlog.interfaces.client.server_channel import Patience
from everlog.interfaces.common.server_choice import FILES_ONLY, WITHOUT_STORE
from tests.support.cli.command_line import Line
from tests.support.http.served_line import ServedLine, served_line

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.cluster]

TALK = (
    ("create sam", "Created sam"),
    ("send sam 'Hi, my name is Chad and I sail'", "Nice to meet you, Chad"),
    ("chat sam", "Your name is Chad"),
    ("search sam sail", "I sail"),
    ("search --all sail", "user in sam"),
    ("cancel sam", "no open turn"),
    ("create ann --preset extras", "Created ann"),
    ("timer ann --every 1h 'Look outside'", "then every 1h"),
    ("timers ann", "Look outside"),
    ("import past @/past.jsonl", "Imported 2 messages"),
    ("configure sam --approval 'ask core_memory_append'", "-> ask core_memory_append"),
    ("send sam 'I like tea'", ""),
    ("approvals sam", "core_memory_append"),
    ("approve sam # --reason fine", ""),
    ("send sam 'I like rum'", ""),
    ("refuse sam # --reason no", ""),
    ("approvals sam", "No call waits"),
    ("rerun sam --from 8 --new-name sue", "sue"),
)  # fmt: skip
"""Commands about conversations, each with a pattern of its output. `@` is a folder of files, `#` a call that waits."""
MEMORY = (
    ("block add sam notes First", "Added notes"),
    ("block set sam notes Second", "Changed notes"),
    ("blame sam notes", "Second"),
    ("block remove sam notes", "Removed notes"),
    ("shared create team 'The captain is Ann.'", "version 1"),
    ("shared set team 'The captain is Lea.'", "version 2"),
    ("shared describe team --description crew", "version 3"),
    ("shared attach sam team", "now attached to sam"),
    ("shared list", "team .* sam"),
    ("shared show team", "The captain is Lea."),
    ("shared history team", "The captain is Ann.(.|\n)*The captain is Lea."),
    ("shared detach sam team", "Detached team"),
    ("shared delete team", "Deleted"),
    ("archive insert sam 'The keel is oak'", "Stored as"),
    ("archive list sam", "The keel is oak"),
    ("archive show sam ID", "The keel is oak"),
    ("archive update sam ID 'The keel is elm'", "ID"),
    ("archive search sam elm", "The keel is elm"),
    ("archive delete sam ID", "ID"),
    ("load harbours @/notes.md", "1 document"),
    ("attach sam harbours", "can now search"),
    ("sources", "harbours .* sam"),
    ("detach sam harbours", "no longer"),
    ("reflect sam", "by rules"),
    ("derive sam --generation 2", "by rules"),
    ("memories sam", "the user is Chad"),
    ("withdraw sam SEQ", "SEQ"),
    ("facts sam", "likes +rum"),
    ("plans sam", "no plans"),
)
PROMPT = (
    ("prompt add sam manners 'Be kind.'", "added manners"),
    ("prompt set sam manners 'Be very kind.'", "changed manners"),
    ("prompt show sam manners", "Be very kind."),
    ("prompt move sam manners 1", "in the order manners"),
    ("prompt hide sam manners", "hid manners"),
    ("prompt unhide sam manners", "unhid manners"),
    ("prompt remove sam manners", "removed manners"),
    ("prompt render sam", "Nothing was changed"),
    ("prompt reset sam", "-> chat"),
)
READING = (
    "agents", "pressure", "show sam", "events sam", "context sam", "memory sam", "replay sam", "diff sam 4",
    "rebuild sam", "verify sam", "sql 'SELECT agent_id, events FROM agents ORDER BY ALL'", "report --as-of 2999-01-01",
    "cost", "models", "tools sam", "facts sam --json", "sources --json", "timers ann --json", "shared list",
    "memories sam --json", "approvals --json --decided", "dataset sam --out @/data.jsonl --force",
    "traces sam --out @/traces.json --force",
)  # fmt: skip
"""Commands that change nothing. Beside the store they print the same."""
LIVES = (
    ("fork sam --new-name kid", "Created kid from sam"),
    ("rename kid kit", "now called kit"),
    ("move ann --placement shared", "Moved ann"),
    ("export sam @/sam.everlog", "Exported [0-9]+ records of sam"),
    ("erase past --match Rust --yes", "rased"),
    ("delete kit --yes", "Deleted kid"),
    ("restore @/sam.everlog", "exist already"),
)
FOLLOWED = "follow --resume start sam --json"


@pytest.fixture
def line(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[ServedLine]:
    """Return a command line whose commands go to a server in front of a Ray cluster."""
    with served_line(folder, capsys, runtime="ray") as line:
        line.clock, line._ids, line.real = RealClock(), RealIds(), True  # type: ignore[assignment]
        yield line


def test_every_command_that_a_server_carries_out_is_tried():
    """The tables name all commands except those that look after files or processes of a store."""
    carried_out = {command.name for command in COMMANDS} - FILES_ONLY - WITHOUT_STORE
    tried = [FOLLOWED, *READING, *(words for words, _ in (*TALK, *MEMORY, *PROMPT, *LIVES))]
    assert not [name for name in carried_out if not any(f"{words} ".startswith(f"{name} ") for words in tried)]


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
