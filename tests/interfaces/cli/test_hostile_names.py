"""No name commands a terminal, hides a character, or begins a line of its own."""

import shlex
from pathlib import Path

import pytest

from everlog.store import FileStore
from tests.support.cli.command_line import Line, completion, says
from tests.support.seeds import split

NAME = "y\x1b[31m\nqz\u200b"
RAW = ("\x1b", "\nqz", "\u200b")
"""Characters of the name that must not be printed as they are."""

COMMANDS = (
    "create NAME", "create NAME", "agents", "send NAME Hi", "send NAME", "memory NAME", "events NAME", "context NAME",
    "pressure NAME", "search NAME hi", "timers NAME", "timer NAME --every 1m look", "timers NAME",
    "configure NAME --window 9000", "configure NAME", "prompt show NAME", "fork NAME --new-name NAMEf",
    "fork NAME --new-name NAMEf", "agents", "diff NAMEf NAME", "rerun NAME --from 6 --new-name NAMEr",
    "rerun NAME --new-name NAMEr --report", "delete NAMEf --yes", "verify NAME", "rebuild NAME", "cost NAME",
    "log check NAME", "log stats NAME", "log seal NAME", "export NAME FILE", "restore FILE", "replay NAME", "sources",
    "shared create plan Sail", "shared attach NAME plan", "shared list", "shared show plan", "shared detach NAME plan",
    "archive list NAME", "cancel NAME",
    "erase NAME --from 3 --to 3 --yes", "move NAME --placement shared", "report", "load NAME README.md",
    "detach NAME README", "events NAMEx", "delete NAME --yes",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_command_prints_a_name_raw(cli: Line, tmp_path: Path) -> None:
    """ESC, a line feed and an invisible character in a name are escaped in what every command prints for people."""
    FileStore.create(cli.root, cli.clock.now, "store", shards=2).register(NAME)  # no command creates such an agent
    raw, codes = [], set()
    for command in COMMANDS:
        words = [word.replace("NAME", NAME).replace("FILE", str(tmp_path / "a.everlog")) for word in command.split()]
        code, out, err = cli(*words)
        codes.add(code)
        raw += [(command, part) for part in RAW if part in out + err]
    assert raw == []
    assert codes == {0, 1, 2}


def test_a_table_of_sql_and_a_csv_on_a_terminal_are_escaped(cli: Line) -> None:
    """A CSV through a pipe has the exact value."""
    FileStore.create(cli.root, cli.clock.now, "store").register(NAME)
    cli.ok("create", NAME)
    query = "SELECT agent_id FROM agents"
    assert "\x1b" not in cli.ok("sql", query)
    assert NAME in cli.ok("sql", query, "--format", "csv")


@pytest.mark.parametrize(
    "name",
    split(["a\nb", "a\tb", "\x1b[31m", "a\x85", "a\u2028b", "--x", "-"], 3, label="names to type", part="commands"),
)
def test_a_name_that_cannot_be_typed_is_refused_for_a_new_agent(cli: Line, name: str) -> None:
    """No command makes an agent whose name has a control character or begins with `-`, and nothing is written."""
    cli.ok("create", "sam")
    cli.ok("send", "sam", "Hi, I sail")
    for words in (
        ["create", "--", name],
        ["send", "--", name, "Hi"],
        ["fork", "sam", f"--new-name={name}"],
        ["rerun", "sam", "--from", "8", f"--new-name={name}"],
    ):
        assert "Choose another name" in cli.fails(*words)
    assert [row["agent"] for row in cli.json("agents")] == ["sam"]


@pytest.mark.parametrize("name", ["a b", "..", "../x", "sam fork!", "it's", "$HOME"])
def test_a_suggested_command_can_be_typed(cli: Line, name: str) -> None:
    """A command in a message has the agent's name with quotes where a shell needs them."""
    said = cli.ok("create", name)
    assert shlex.split(said.partition("Talk to it: ")[2]) == ["everlog", "chat", name]
    said = cli.fails("create", name).split("`")
    assert shlex.split(said[1]) == ["everlog", "chat", name]


EVIL = "s\x1b]0;evil\x07\u202eam"


def test_nothing_from_outside_reaches_the_terminal_raw(cli: Line, tmp_path: Path) -> None:
    """Names, labels, calls and errors are escaped in every command's output for people."""
    tricky = completion(
        ("no\x1bsuch", {"a\x1bb": "c\x1bd"}), ("send_message", {"message": "hi\x1b[2J"}), thought="th\x1bink"
    )
    cli.script.answers = [tricky, says("x\x1b")]
    talk = tmp_path / "talk\x1b.jsonl"
    talk.write_text(
        '{"role":"user","name":"A\\u001bnn","content":"boat\\u001b","time":"2023-05-08","ref":"r\\u001b"}\n'
    )
    FileStore.create(cli.root, cli.clock.now, "store").register(EVIL)  # no command creates such an agent
    runs = [
        cli("create", EVIL), cli("create", EVIL), cli("send", EVIL, "boat\x1b", "-v", "--speaker", "x\x1by"),
        cli("import", EVIL, str(talk)), cli("import", EVIL, str(talk)), cli("agents"), cli("memory", EVIL),
        cli("context", EVIL), cli("context", EVIL, "--full"), cli("pressure", EVIL), cli("events", EVIL),
        cli("search", EVIL, "boat"), cli("search", EVIL, "\x1b"), cli("memory", "t\x1b"), cli("rebuild", EVIL),
        cli("verify", EVIL), cli("log", "check", EVIL), cli("events", EVIL, "--type", "\x1b"), cli("no\x1b"),
        cli("memory", EVIL, "x\x1b", "y"), cli("memory", EVIL, "--as-of", "\x1b"), cli("delete", EVIL, "--yes"),
        cli("delete", EVIL, "--yes"), cli("memory", EVIL),
    ]  # fmt: skip
    for _, out, err in runs:
        assert not any(sign in out + err for sign in "\x1b\x07\u202e"), (out, err)
    assert "\\x1b" in runs[0][1]
