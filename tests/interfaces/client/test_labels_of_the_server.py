"""--label with --server: the server says which agents have the labels, and the command is for all of them."""

import json
from pathlib import Path

import pytest

from tests.support.cli.command_line import Made
from tests.support.http.served_line import ServedLine, served_line


def fill(line: ServedLine) -> None:
    """Make ann and bob with the label crew, ann also with night, and eve with none."""
    for name in ("ann", "bob", "eve"):
        line.ok("create", name)
    line.ok("configure", "ann", "--label", "crew", "--label", "night")
    line.ok("configure", "bob", "--label", "crew")


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, made: Made):
    """Return a command line whose commands go to a server with three agents."""
    for name in ("EVERLOG_STORE", "EVERLOG_SERVER", "EVERLOG_KEY", "EVERLOG_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    with served_line(tmp_path / "store", capsys) as line:
        made.begin(line, "labels of a server", fill)
        yield line


def headed(text: str) -> list[str]:
    """Return the agents whose answers a text has, in order."""
    return [row.removesuffix(":") for row in text.splitlines() if row in ("ann:", "bob:", "eve:")]


def said(line: ServedLine, name: str) -> list[str]:
    return [record["text"] for record in line.lines("events", name) if record["type"] == "user_message"]


def test_agents_with_a_label_are_listed_and_written_to(line: ServedLine) -> None:
    """`agents --label` lists them, and a message goes to each; with two labels to those that have both."""
    assert [row["agent"] for row in json.loads(line.ok("agents", "--label", "crew", "--json"))] == ["ann", "bob"]
    assert headed(line.ok("send", "--label", "crew", "Hello")) == ["ann", "bob"]
    assert headed(line.ok("send", "--label", "crew", "--label", "night", "Hello again")) == ["ann"]
    assert [said(line, name) for name in ("ann", "bob", "eve")] == [["Hello", "Hello again"], ["Hello"], []]


@pytest.mark.parametrize(
    "words",
    [
        ("verify",), ("rebuild",), ("cancel",), ("timer", "Tea", "--every", "30m"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_command_is_run_for_each_agent_with_a_label(line: ServedLine, words: tuple[str, ...]) -> None:
    """Each answer comes after a line with the name of its agent."""
    code, out, err = line(*words, "--label", "crew")
    assert (headed(out), err) == (["ann", "bob"], ""), (code, out, err)


def test_shared_blocks_are_attached_and_detached(line: ServedLine) -> None:
    """The agents with the label have the block, and then no more."""
    line.ok("shared", "create", "team", "Bob sails.")
    line.ok("shared", "attach", "--label", "crew", "team")
    assert ["Bob sails." in line.ok("memory", name) for name in ("ann", "bob", "eve")] == [True, True, False]
    line.ok("shared", "detach", "--label", "crew", "team")
    assert ["Bob sails." in line.ok("memory", name) for name in ("ann", "bob", "eve")] == [False, False, False]


def test_settings_words_files_and_agents_are_changed_together(line: ServedLine, tmp_path: Path) -> None:
    """`configure`, `erase`, `export` and `delete` reach all agents with the label, and no other."""
    line.ok("configure", "--label", "crew", "--steps", "7")
    for name in ("ann", "bob", "eve"):
        line.ok("send", name, "My number is 4711")
    line.ok("erase", "--label", "crew", "--match", "4711", "--derived", "--yes")
    assert ["4711" in line.ok("events", name) for name in ("ann", "bob", "eve")] == [False, False, True]
    steps = [
        [one["payload"] for one in line.lines("events", name) if one["type"] == "agent_configured"][-1]
        for name in ("ann", "bob", "eve")
    ]
    assert [one.get("steps_max") for one in steps] == [7, 7, None]
    line.ok("export", "--label", "crew", str(tmp_path / "out"))
    assert sorted(path.name.partition("-")[0] for path in (tmp_path / "out").iterdir()) == ["ann", "bob"]
    assert json.loads(line.ok("delete", "--label", "crew", "--yes", "--json")) == {"deleted": ["ann", "bob"]}
    assert [row["agent"] for row in json.loads(line.ok("agents", "--json"))] == ["eve"]


def test_a_label_that_no_agent_has_is_refused(line: ServedLine) -> None:
    """The command ends with exit code 2, and says so."""
    code, _, err = line("send", "--label", "night owl", "Hello")
    assert (code, "No agent has the label 'night owl'." in err) == (2, True)
