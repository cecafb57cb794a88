"""The options for presets and for the resources that an agent may use."""

from pathlib import Path

import pytest

from tests.support.cli.command_line import Line, completion, says

pytestmark = pytest.mark.beside_store("what is granted belongs to the process that runs the agents")


def reading(name: str = "a.txt") -> str:
    """Return a reply that reads the first line of a file."""
    return completion(("read_from_text_file", {"filename": name, "line_start": 1, "request_heartbeat": True}))


def results(cli: Line) -> list[str]:
    """Return the results of reading, in order."""
    found = cli.lines("events", "sam", "--type", "function_result")
    return [line["text"] for line in found if line["payload"]["name"] == "read_from_text_file"]


def test_a_workspace_is_granted_for_one_command(cli: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--preset is recorded, --workspace is not; a relative path is resolved from the current folder."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("hello\n")
    monkeypatch.chdir(tmp_path)
    cli.script.answers = [reading(), says("So."), reading(), says("No.")]
    cli.ok("send", "sam", "read", "--preset", "extras", "--workspace", "files")
    cli.ok("send", "sam", "read again")
    told = results(cli)
    assert told[0] == "hello"
    assert "--workspace DIR" in told[1]
    assert cli.json("verify", "sam")["faults"] == []
    assert cli.json("rebuild", "sam")["faults"] == []


@pytest.mark.parametrize("command", [["send", "sam", "hi"], ["create", "sam"]])
@pytest.mark.parametrize(
    "flags",
    [
        ["--preset", "nothing"],
        ["--workspace", "{tmp}/nowhere"],
        ["--workspace", "{tmp}/file"],
        ["--workspace", "{tmp}"],
        ["--workspace", "/"],
        ["--allow-host", "https://a.test"],
        ["--allow-host", "*.test"],
        ["--allow-host", "127.1"],
    ],
)
def test_what_cannot_be_granted_fails_before_anything_is_kept(
    cli: Line, tmp_path: Path, command: list[str], flags: list[str]
) -> None:
    """An unknown preset, a workspace that is no folder or holds the store, and an invalid host exit with code 1 and a
    reason, and no agent is created.
    """
    (tmp_path / "file").write_text("")
    given = [flag.replace("{tmp}", str(tmp_path)) for flag in flags]
    assert flags[1].replace("{tmp}", str(tmp_path)) in cli.fails(*command, *given)
    assert cli.script.asked == []
    code, out, _ = cli("agents", "--json")
    assert (code, out.strip()) in ((0, "[]"), (1, ""))


def test_the_store_is_no_workspace(cli: Line) -> None:
    """A folder inside the store is refused as a workspace: no function may write to a log."""
    cli.ok("create", "sam")
    assert "store" in cli.fails("send", "sam", "hi", "--workspace", str(cli.root / "log"))


def test_the_users_code_is_in_no_workspace(cli: Line, tmp_path: Path) -> None:
    """A workspace that holds a file of --tools is refused: an agent must not change code that runs next time."""
    folder = tmp_path / "files"
    folder.mkdir()
    tools = folder / "mine.py"
    tools.write_text("")
    said = cli.fails("send", "sam", "hi", "--tools", str(tools), "--workspace", str(folder))
    assert "could change code that is run" in said


@pytest.mark.parametrize("flag", ["--preset", "--workspace", "--allow-host", "--helper"])
def test_an_empty_flag_is_bad_usage(cli: Line, flag: str) -> None:
    """An empty value stands neither for the current folder nor for everything."""
    assert cli("create", "sam", flag, "")[0] == 2


def test_a_helper_and_hosts_are_granted(cli: Line) -> None:
    """--helper and --allow-host reach the functions; requests to hosts that are not public fail nevertheless."""
    question = completion(("message_chatgpt", {"message": "How deep?", "request_heartbeat": True}))
    request = completion(("http_request", {"method": "GET", "url": "http://localhost/", "request_heartbeat": True}))
    cli.script.answers = [question, completion(words="Deep."), request, says("So.")]
    cli.ok("send", "sam", "go", "--preset", "extras", "--helper", "other", "--allow-host", "localhost")
    assert b'"model":"other"' in cli.script.asked[1]
    told = [line["text"] for line in cli.lines("events", "sam", "--type", "function_result")]
    assert "Deep." in told
    assert any("not an address of the public network" in text for text in told if text)
