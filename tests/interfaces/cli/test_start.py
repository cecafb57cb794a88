"""First things that a person types: `everlog`, `everlog --version`, `everlog help`; and options before the command."""

import json
from importlib import metadata

import pytest

from everlog.interfaces.cli.command_parser import COMMANDS
from everlog.interfaces.cli.main import main
from tests.support.cli.command_line import Line


def test_the_bare_command_says_where_to_begin(cli: Line) -> None:
    """`everlog` alone exits 0, names the first commands on a screen, and makes no store."""
    code, out, err = cli()
    assert (code, err) == (0, "")
    assert len(out.splitlines()) < 15
    assert f"list all {len(COMMANDS)} commands" in out and 'everlog send sam "Hi"' in out
    assert not cli.root.exists()


def test_the_version_is_that_of_the_package(cli: Line) -> None:
    """`everlog --version` prints the installed version and nothing else."""
    assert cli("--version") == (0, f"everlog {metadata.version('everlog')}\n", "")


@pytest.mark.parametrize("words", [[], ["send"], ["log"], ["log", "check"]], ids=" ".join)
def test_help_explains_commands_groups_and_all(words: list[str], cli: Line) -> None:
    """`everlog help WORDS` prints what `everlog WORDS --help` prints."""
    code, out, err = cli("help", *words)
    assert (code, err) == (0, "")
    assert out == cli(*words, "--help")[1]


def test_help_for_a_word_that_is_no_command_names_similar_ones(cli: Line) -> None:
    """The error is the one of the command itself."""
    code, _, err = cli("help", "sned")
    assert code == 2
    assert err.startswith("everlog: there is no command 'sned'; did you mean `everlog send`?")
    assert "there is no command 'log chekc'; did you mean `everlog log check`?" in cli("help", "log", "chekc")[2]


def test_json_may_come_before_the_command(cli: Line) -> None:
    """`everlog --json agents` prints what `everlog agents --json` prints."""
    cli.ok("create", "sam")
    assert cli("--json", "agents") == cli("agents", "--json")
    assert json.loads(cli.ok("--json", "log", "check", "sam"))
    code, _, err = cli("--json", "tour", "--list")
    assert code == 2
    assert err.startswith("everlog: `everlog tour` has no --json\n")


def test_commands_that_change_an_agent_print_json_too(cli: Line) -> None:
    """`move` says where the agent is, and `delete` which agents are gone, forks included."""
    cli.ok("create", "sam")
    moved = cli.json("move", "sam", "--placement", "shared")
    assert (moved["agent"], moved["placement"]) == ("sam", "shared")
    assert moved["partition"].startswith("shard-")
    cli.ok("fork", "sam", "--new-name", "kid")
    assert cli.json("delete", "sam", "--with-forks", "--yes") == {"deleted": ["kid", "sam"]}


def test_help_works_with_a_broken_file_of_defaults(
    cli: Line, tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user who corrects the file can still read the help, the version and the page of the error."""
    broken = tmp_path / "config.toml"
    broken.write_text("model =\n")
    monkeypatch.setenv("EVERLOG_CONFIG", str(broken))
    for argv in ([], ["--version"], ["help"], ["explain", "bad-input"], ["completion", "bash"]):
        assert main(argv, world=cli.world) == 0, argv
    capsys.readouterr()
    assert f"The file of defaults {broken} is not TOML" in cli.fails("agents")
