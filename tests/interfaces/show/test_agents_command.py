"""`everlog agents` with patterns, an order and a limit; `delete`, `configure` and `export` with a pattern."""

from pathlib import Path

import pytest

from everlog.projections import HEAD, Projections
from everlog.store import FileStore
from tests.interfaces.conftest import Line

NAMES = ("fleet-1", "fleet-2", "fleet-3", "sam")


@pytest.fixture
def fleet(cli: Line) -> Line:
    """Return a command line with four agents, of which `fleet-2` talked most."""

    def make(line: Line) -> None:
        for name in NAMES:
            line.ok("create", name)
        for name in ("fleet-1", "fleet-2", "fleet-2"):
            line.ok("send", name, "Hello")

    cli.begin("listed fleet", make)
    return cli


def listed(fleet: Line, *argv: str) -> list[str]:
    """Return the names that `agents` lists, in its order."""
    return [row["agent"] for row in fleet.json("agents", *argv)]


def test_patterns_order_and_limit(fleet: Line) -> None:
    """Patterns select, --sort puts the largest first, --reverse turns the order, --limit ends the list."""
    assert listed(fleet, "fleet-*") == ["fleet-1", "fleet-2", "fleet-3"]
    assert listed(fleet, "fleet-[12]", "sam") == ["fleet-1", "fleet-2", "sam"]
    assert listed(fleet, "--sort", "messages", "--limit", "2") == ["fleet-2", "fleet-1"]
    assert listed(fleet, "--reverse") == ["sam", "fleet-3", "fleet-2", "fleet-1"]
    assert "... and 3 more; --limit 0 lists all" in fleet.ok("agents", "--limit", "1")


def test_a_name_with_a_star_is_that_agent(fleet: Line) -> None:
    """The exact name of an agent means that agent alone, also if it looks like a pattern."""
    fleet.ok("create", "fleet-*")
    assert listed(fleet, "fleet-*") == ["fleet-*"]


@pytest.mark.parametrize("command", [["agents"], ["delete", "--yes"]])
def test_a_pattern_that_matches_nothing_names_similar_agents(fleet: Line, command: list[str]) -> None:
    """The exit code is 2, and the error names agents of similar names."""
    code, _, err = fleet(*command, "flet-1*")
    assert code == 2
    assert "no agent matches 'flet-1*'" in err and "'fleet-1'" in err


def test_the_listing_equals_the_projection_of_each_agent(fleet: Line) -> None:
    """Counts, head and last activity of each agent, forks included, are those of its own projection `agents`."""
    fleet.ok("fork", "fleet-2", "--new-name", "kid")
    fleet.ok("delete", "fleet-3", "--yes")
    fleet.ok("create", "fleet-3")
    store = FileStore(fleet.root, lambda: 0)
    rows = {row["agent"]: row for row in fleet.json("agents")}
    assert sorted(rows) == [*NAMES[:3], "kid", "sam"]
    for name, row in rows.items():
        with Projections() as projections:
            projections.load(store.reader(name).table(name))
            (known,) = projections.batch("agents", [(name, HEAD)])
        assert (row["events"], row["messages"], row["turns"]) == (known["events"], known["messages"], known["turn"])


def test_delete_takes_a_pattern(fleet: Line) -> None:
    """`delete PATTERN` deletes each agent that it matches, forks before parents, and no other."""
    fleet.ok("fork", "fleet-1", "--new-name", "fleet-kid")
    assert "Deleted 4 agents" in fleet.ok("delete", "fleet-*", "--yes")
    assert listed(fleet) == ["sam"]


def test_one_agent_that_cannot_be_deleted_does_not_keep_the_others(fleet: Line) -> None:
    """An agent with a fork outside the pattern is named, the others are deleted, and the exit code is 1."""
    fleet.ok("fork", "fleet-1", "--new-name", "kid")
    code, out, err = fleet("delete", "fleet-*", "--yes")
    assert (code, "Deleted 2 agents" in out) == (1, True)
    assert "'fleet-1' was not deleted" in err
    assert listed(fleet) == ["fleet-1", "kid", "sam"]


def test_show_tables_lists_the_documented_views(fleet: Line) -> None:
    """SHOW TABLES lists views that the reference describes, and none that they are made of."""
    names = [name for (name,) in fleet.json("sql", "SHOW TABLES;")["rows"]]
    assert {"agents", "messages", "prices", "records"} <= set(names)
    assert not {"fresh", "lived", "everything", "price_list"} & set(names)


def test_configure_takes_a_pattern(fleet: Line) -> None:
    """`configure PATTERN` changes each agent that it matches, and no other; without a setting it is refused."""
    assert "Configured 3 agents." in fleet.ok("configure", "fleet-*", "--zone", "Europe/Oslo")
    zones = {name: fleet.json("configure", name)["settings"]["zone"] for name in NAMES}
    assert zones == {"fleet-1": "Europe/Oslo", "fleet-2": "Europe/Oslo", "fleet-3": "Europe/Oslo", "sam": "UTC"}
    assert fleet.json("configure", "fleet-[12]", "--zone", "UTC") == {"configured": ["fleet-1", "fleet-2"]}
    assert fleet("configure", "fleet-*")[0] == 2


def test_export_takes_a_pattern(fleet: Line, tmp_path: Path) -> None:
    """`export PATTERN FOLDER` writes a file for each agent, which can be restored; what exists is named and kept."""
    folder = tmp_path / "made" / "here"
    assert f"Exported 3 agents to {folder}." in fleet.ok("export", "fleet-*", str(folder))
    assert len(list(folder.glob("*.everlog"))) == 3
    code, out, err = fleet("export", "fleet-*", str(folder))
    assert (code, "Exported 0 agents; 3 failed" in out, "'fleet-1' was not exported" in err) == (1, True, True)
    (again,) = [row for row in fleet.json("export", "fleet-*", str(folder), "--force") if row["agent"] == "fleet-2"]
    assert "exist already, with the same chain" in fleet.ok("restore", again["file"])


def test_a_folder_of_an_export_that_is_a_file_is_refused(fleet: Line, tmp_path: Path) -> None:
    """Nothing is written if the folder cannot be made."""
    (tmp_path / "file").write_text("mine")
    code, _, err = fleet("export", "fleet-*", str(tmp_path / "file"))
    assert (code, "cannot be a folder" in err) == (1, True)
    assert (tmp_path / "file").read_text() == "mine"
