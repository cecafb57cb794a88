"""`everlog rename`: every command takes the new name, a taken name is refused, and names are freed with the agent."""

from pathlib import Path

import pytest

import everlog
from everlog.events import BadInput
from tests.support.cli.command_line import Line


@pytest.fixture
def sam(cli: Line) -> Line:
    def make(line: Line) -> None:
        line.ok("send", "sam", "Hi")
        line.ok("create", "ann")
        assert "sam is now called samuel. Its log keeps the name sam" in line.ok("rename", "sam", "samuel")

    cli.begin("renamed sam", make)
    return cli


def test_every_command_takes_the_new_name_and_the_old_one(sam: Line) -> None:
    """Commands that read and that write mean the same agent by both names; patterns go by the name of the log."""
    head = len(sam.lines("events", "sam"))
    sam.ok("send", "samuel", "Hi again")
    sam.ok("archive", "insert", "samuel", "It is a dry cave.")
    events = sam.lines("events", "samuel")
    assert len(events) > head and events == sam.lines("events", "sam")
    assert {event["agent_id"] for event in events} == {"sam"}
    for words in ("memory", "context", "pressure", "cost", "verify", "log check", "log stats", "show", "timers"):
        found = [sam.ok(*words.split(), name, "--json") for name in ("samuel", "sam")]
        assert found[0] == found[1], words
    assert sam.json("search", "samuel", "cave")["results"]
    assert [row["agent"] for row in sam.json("agents", "samuel")] == ["sam"]
    assert [row["agent"] for row in sam.json("agents", "s*")] == ["sam"]
    assert "no agent matches 'samu*'" in sam("agents", "samu*")[2]


def test_the_new_name_is_shown(sam: Line) -> None:
    """`agents` and SQL show the newest name beside that of the log."""
    assert "samuel (sam)" in sam.ok("agents")
    assert {row["agent"]: row["name"] for row in sam.json("agents")} == {"sam": "samuel", "ann": "ann"}
    query = "SELECT agent_id, name FROM agents ORDER BY ALL"
    assert sam.json("sql", query)["rows"] == [["ann", "ann"], ["sam", "samuel"]]
    assert sam.json("sql", query, "--agent", "samuel")["rows"] == [["sam", "samuel"]]
    assert sam.json("rename", "samuel", "sammy") == {"agent": "sam", "name": "sammy", "names": ["samuel", "sammy"]}
    assert sam.ok("rename", "sammy", "sam") == "sam is now called sam.\n"
    assert sam.json("sql", query)["rows"] == [["ann", "ann"], ["sam", "sam"]]


def test_a_taken_name_is_refused(sam: Line) -> None:
    """No other agent gets the name: by a rename, a fork or a new agent; nothing is changed."""
    before = sam.json("agents")
    assert "there is an agent of that name" in sam.fails("rename", "sam", "ann")
    assert "it is a name of 'sam' already" in sam.fails("rename", "ann", "samuel")
    assert "exists already" in sam.fails("create", "samuel")
    assert "'samuel' is another name of 'sam'" in sam.fails("fork", "ann", "--new-name", "samuel")
    assert "there is no agent 'bob'" in sam.fails("rename", "bob", "rob")
    assert sam.json("agents") == before


@pytest.mark.parametrize("words", [("delete", "samuel", "--yes"), ("erase", "samuel", "--all", "--yes")])
def test_the_names_go_with_the_agent(words: tuple[str, ...], sam: Line) -> None:
    """After `delete`, and after `erase --all`, no file has the name any more, and an agent can be made under it."""
    assert list((sam.root / "names").iterdir())
    sam.ok(*words)
    assert not list((sam.root / "names").iterdir())
    sam.ok("create", "samuel")
    assert "samuel" in [row["agent"] for row in sam.json("agents")]


def test_a_part_of_an_erasure_keeps_the_name(sam: Line) -> None:
    """Erasing some records is no reason to forget a name."""
    sam.ok("erase", "samuel", "--match", "Hi", "--yes")
    assert sam.json("sql", "SELECT name FROM agents WHERE agent_id = 'sam'")["rows"] == [["samuel"]]


def test_an_export_says_that_it_has_no_given_names(sam: Line, tmp_path: Path) -> None:
    """The file has the name of the log; restored elsewhere, the agent has that name alone. A file whose agent's name is
    another name here is refused.
    """
    file = tmp_path / "sam.everlog"
    assert "Not in the file: the names samuel. A restored agent is called sam." in sam.ok("export", "samuel", str(file))
    sam.ok("rename", "samuel", "sam")
    assert "the names samuel. A" in sam.ok("export", "sam", str(file), "--force")
    other = Line(tmp_path / "other", sam._capsys)
    other.ok("restore", str(file))
    assert [row["name"] for row in other.json("agents")] == ["sam"]
    third = Line(tmp_path / "third", sam._capsys)
    third.ok("create", "bob")
    third.ok("rename", "bob", "sam")
    assert "'sam' is another name of 'bob'" in third.fails("restore", str(file))
    assert [row["agent"] for row in third.json("agents")] == ["bob"]
    assert "names that `everlog rename` gave" in sam.ok("export", "--all", str(tmp_path / "all"))


def test_python_renames_too(tmp_path: Path) -> None:
    """`system.rename` and `agent.rename` give names that every call takes, and a deletion frees them."""
    with everlog.open(tmp_path / "store") as system:
        agent = system.agent("sam")
        system.rename("sam", "samuel")
        agent.rename("sammy")
        assert system.agent("samuel").agent_id == system.agent("sammy").agent_id == "sam"
        assert system.agents() == ["sam"]
        assert [sent.agent_id for sent in system.send_many([("sammy", "Hi")])] == ["sam"]
        assert system.sql("SELECT name FROM agents", agent="samuel").to_pylist() == [{"name": "sammy"}]
        with system.view("sammy") as state:
            assert state.agent_id == "sam"
        with pytest.raises(BadInput, match="'samuel' is another name of 'sam'"):
            system.fork("sam", "samuel")
        agent.delete()
        assert system.agent("samuel").agent_id == "samuel"
