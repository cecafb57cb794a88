"""--label in place of the name of an agent: the command is for all agents that have the labels."""

import json
from pathlib import Path

import pytest

from everlog.interfaces.cli.args_selection import label_of_all, label_of_each
from everlog.interfaces.cli.command_parser import COMMANDS, NAMELESS, with_name
from everlog.store import FileStore
from tests.support.cli.command_line import Line, Made

LABELLED = [command for command in COMMANDS if {label_of_all, label_of_each} & set(command.arguments)]


def fill(line: Line) -> None:
    """Make ann and bob with the label crew, ann also with night, and eve with none."""
    for name in ("ann", "bob", "eve"):
        line.ok("create", name)
    line.ok("configure", "ann", "--label", "crew", "--label", "night")
    line.ok("configure", "bob", "--label", "crew")


@pytest.fixture
def crew(cli: Line, made: Made) -> Line:
    """Return a command line with these agents."""
    made.begin(cli, "labels", fill)
    return cli


def said(cli: Line, name: str) -> list[str]:
    """Return the messages of people to an agent."""
    return [record["text"] for record in cli.lines("events", name) if record["type"] == "user_message"]


def test_a_message_is_sent_to_each_agent_with_the_labels(crew: Line) -> None:
    """Each agent answers under its name; with two labels only agents that have both are meant."""
    out = crew.ok("send", "--label", "crew", "Hello")
    assert [line for line in out.splitlines() if line in ("ann:", "bob:", "eve:")] == ["ann:", "bob:"]
    crew.ok("send", "Hello again", "--label=crew", "--label=night")
    assert [said(crew, name) for name in ("ann", "bob", "eve")] == [["Hello", "Hello again"], ["Hello"], []]


def test_settings_are_changed_and_labels_stay(crew: Line) -> None:
    """Without NAME the labels say which agents, and are no setting: ann keeps her other label."""
    crew.ok("configure", "--label", "crew", "--steps", "7")
    steps = {
        name: [record["payload"] for record in crew.lines("events", name) if record["type"] == "agent_configured"][-1]
        for name in ("ann", "bob", "eve")
    }
    assert {name: one.get("steps_max", 20) for name, one in steps.items()} == {"ann": 7, "bob": 7, "eve": 20}
    assert steps["ann"]["labels"] == ["crew", "night"]


def test_agents_are_deleted_after_one_question(crew: Line) -> None:
    """Without --yes nothing is deleted where no person can answer; with it all agents with the label are."""
    code, _, error = crew("delete", "--label", "crew")
    assert (code, "give --yes to confirm" in error) == (2, True)
    assert json.loads(crew.ok("delete", "--label", "crew", "--yes", "--json")) == {"deleted": ["ann", "bob"]}
    assert [row["name"] for row in json.loads(crew.ok("agents", "--json"))] == ["eve"]


def test_words_are_erased_in_all_agents_with_a_label(crew: Line) -> None:
    """An agent without the label keeps the words."""
    for name in ("ann", "bob", "eve"):
        crew.ok("send", name, "My number is 4711")
    crew.ok("erase", "--label", "crew", "--match", "4711", "--derived", "--yes")
    assert ["4711" in crew.ok("events", name) for name in ("ann", "bob", "eve")] == [False, False, True]


def test_agents_are_exported_to_a_folder(crew: Line, tmp_path: Path) -> None:
    """Each agent with the label has a file, under its name."""
    crew.ok("export", "--label", "crew", str(tmp_path / "out"))
    assert sorted(path.name.partition("-")[0] for path in (tmp_path / "out").iterdir()) == ["ann", "bob"]


def test_one_failure_does_not_stop_the_others(crew: Line) -> None:
    """The error names its agent, the others are done, and the exit code is 1."""
    crew.ok("block", "add", "ann", "watch", "x")
    crew.ok("shared", "create", "watch", "Bob has it.")
    code, _, error = crew("shared", "attach", "--label", "crew", "watch")
    assert (code, "'ann': " in error) == (1, True)
    assert "Bob has it." in crew.ok("memory", "bob")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["send", "--label", "nobody", "Hello"], "No agent has the label 'nobody'."),
        (["send", "--label", "crew"], "give TEXT: with --label it is not read from stdin"),
        (["send", "--label", "crew", "--label", "day", "Hello"], "No agent has the labels 'crew' and 'day'."),
        (["send", "--label", "crew", "ann", "Hello"], "give NAME or --label, not both: ann Hello"),
        (["verify", "ann", "--label", "crew"], "give NAME or --label, not both: ann"),
        (["configure"], "give the name of an agent, a pattern, or --label"),
        (["configure", "--label", "crew"], "several agents need a setting to change"),
    ],
)
def test_a_label_that_chooses_nothing_is_refused(crew: Line, words: list[str], error: str) -> None:
    """The command ends with exit code 2 and says why; nothing is done."""
    store = FileStore(crew.root, crew.clock.now)
    heads = [store.reader(name).head(name) for name in ("ann", "bob")]
    code, _, found = crew(*words)
    assert (code, error in found) == (2, True), found
    assert [store.reader(name).head(name) for name in ("ann", "bob")] == heads


@pytest.mark.parametrize("command", LABELLED, ids=[command.name for command in LABELLED])
def test_label_stands_for_the_name_in_the_words(command) -> None:
    """The name is where the parser expects it, wherever --label is; a text after `--` is no option."""
    words = command.name.split()
    assert with_name([*words, "--label", "crew"])[: len(words) + 1] == [*words, NAMELESS]
    assert with_name(["--json", "--store", "DIR", *words, "--label=crew"])[3 : len(words) + 4] == [*words, NAMELESS]
    assert with_name([*words, "sam", "--", "--label"]) == [*words, "sam", "--", "--label"]
