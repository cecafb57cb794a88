"""A command that opens a log says what was cut off its end, or lost from it: agents, shards, sources, shared blocks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from everlog.store import partition_of, shard_of, stream_of, stream_of_block
from tests.support.cli.command_line import Line

pytestmark = pytest.mark.beside_store("the server has its own log of warnings")


def folder_of(cli: Line, kind: str) -> Path:
    """Return the folder of the log that a kind of writer opens."""
    names = {
        "dedicated": partition_of("sam"), "shared": shard_of("sam", 2),
        "source": partition_of(stream_of("book")), "block": partition_of(stream_of_block("team")),
    }  # fmt: skip
    return cli.root / "log" / names[kind]


def made(cli: Line, tmp_path: Path, kind: str) -> tuple[str, ...]:
    """Make a log of that kind. Return a command that opens the log to write."""
    book = tmp_path / "book"
    book.mkdir()
    (book / "one.txt").write_text("The tide turns at noon.")
    cli.ok("create", "sam", "--placement", "shared" if kind == "shared" else "dedicated", "--shards", "2")
    if kind == "source":
        cli.ok("load", "sam", str(book), "--source", "book")
        (book / "one.txt").write_text("The tide turns at two.")
        cli.ok("load", "sam", str(book), "--source", "book")
        (book / "one.txt").write_text("The tide turns at one.")
        return "load", "sam", str(book), "--source", "book"
    if kind == "block":
        cli.ok("shared", "create", "team", "The captain is Ann.")
        cli.ok("shared", "set", "team", "The captain is Kim.")
        return "shared", "set", "team", "The captain is Bob."
    cli.ok("send", "sam", "hello")
    return "send", "sam", "hello again"


def open_file(cli: Line, kind: str) -> Path:
    (path,) = [path for path in folder_of(cli, kind).glob("*.open") if path.stat().st_size]
    return path


KINDS = ["dedicated", "shared", "source", "block"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_that_opens_a_torn_log_says_what_was_cut(cli: Line, tmp_path: Path, kind: str):
    """A command that opens a log with bytes after its last frame says so once on stderr, and names the copy."""
    command = made(cli, tmp_path, kind)
    with open_file(cli, kind).open("ab") as file:
        file.write(b"nonsense")
    code, _, err = cli(*command)
    assert code == 0, err
    assert err.count("8 damaged bytes") == 1
    assert Path(err.split("kept in ")[1].split()[0].rstrip(".")).read_bytes() == b"nonsense"
    if kind == "shared":
        assert f"{shard_of('sam', 2)}, which 'sam' shares with other agents," in err
    assert "damaged" not in cli(*command)[2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", [lambda whole: whole[:-1], lambda whole: whole[:-1] + bytes([whole[-1] ^ 1])])
def test_a_command_that_opens_a_log_that_lost_commits_says_which(
    cli: Line, tmp_path: Path, kind: str, damage: Callable[[bytes], bytes]
):
    """Acknowledged commits that a closed log has lost are named by the check, by the command that opens the log, and by
    a note of each later check.
    """
    command = made(cli, tmp_path, kind)
    path = open_file(cli, kind)
    path.write_bytes(damage(path.read_bytes()))
    code, out, _ = cli("log", "check", "--all")
    assert code == 1
    assert "acknowledged commit" in out and "backup" in out
    code, _, err = cli(*command)
    assert code == 0, err
    assert err.count("has lost 1 acknowledged commit") >= 1 and "no torn write" in err
    assert "acknowledged" not in cli(*command)[2]
    code, out, _ = cli("log", "check", "--all")
    assert code == 0
    assert "were lost" in out


@pytest.mark.parametrize("kind", ["dedicated", "shared"])
def test_a_reader_says_that_commits_are_lost(cli: Line, tmp_path: Path, kind: str):
    """A reading command warns of lost commits before any process has opened the log to write."""
    made(cli, tmp_path, kind)
    path = open_file(cli, kind)
    path.write_bytes(path.read_bytes()[:-1])
    code, _, err = cli("events", "sam")
    assert code == 0
    assert "has lost 1 acknowledged commit" in err


@pytest.mark.parametrize(
    "command",
    [("erase", "sam", "--from", "1", "--to", "1", "--yes"), ("move", "sam", "--placement", "shared"),
     ("log", "seal", "sam"), ("timers", "sam"), ("memory", "sam")],
)  # fmt: skip
def test_other_commands_that_open_a_log_say_it_too(cli: Line, tmp_path: Path, command: tuple[str, ...]):
    """Erasing, moving, sealing and reading name the damaged end."""
    made(cli, tmp_path, "dedicated")
    with open_file(cli, "dedicated").open("ab") as file:
        file.write(b"nonsense")
    code, _, err = cli(*command)
    assert code == 0, err
    assert "8 damaged bytes" in err or "8 bytes after byte" in err
    if command[0] not in ("memory", "timers"):
        assert err.count("8 damaged bytes") == 1


def test_moving_an_agent_out_of_a_shard_says_what_was_cut(cli: Line, tmp_path: Path):
    """A shard whose log is opened for a move only says what was cut."""
    made(cli, tmp_path, "shared")
    with open_file(cli, "shared").open("ab") as file:
        file.write(b"nonsense")
    code, _, err = cli("move", "sam", "--placement", "dedicated")
    assert code == 0, err
    assert err.count("8 damaged bytes") == 1
