"""Names of deleted agents are used again: by `fork`, `rerun`, `create`, `import` and `restore`."""

import json
from pathlib import Path

import pytest

from everlog.store import FileStore
from tests.support.cli.command_line import Line, says


@pytest.fixture
def other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """Return the command line over another empty store."""
    return Line(tmp_path / "other", capsys)


@pytest.fixture
def sam(cli: Line) -> Line:
    """Sam, who was forked as gpt; gpt was told something and deleted."""

    def make(line: Line) -> None:
        line.ok("create", "sam", "--shards", "2")
        for words in ("one", "two"):
            line.script.answers = [says(f"You said {words}.")]
            line.ok("send", "sam", words)
        line.ok("fork", "sam", "--new-name", "gpt", "--placement", "shared")
        line.ok("send", "gpt", "of the first gpt")
        line.ok("archive", "insert", "gpt", "The gold is under the oak.")
        line.ok("delete", "gpt", "--yes")

    cli.begin("reused names", make)
    return cli


def told(cli: Line, name: str) -> list[str]:
    return [said["text"] for said in cli.lines("events", name, "--type", "user_message")]


def proven(cli: Line) -> None:
    """Check the whole store: the logs, the register, and every agent."""
    for proof in (["rebuild", "--all"], ["verify", "--all"], ["log", "check", "--all", "--deep"]):
        cli.ok(*proof)
    assert "agrees" in cli.ok("log", "repair-register")


def test_a_fork_takes_the_name_of_a_deleted_agent_with_nothing_of_it(sam: Line) -> None:
    """The name leads to the fork, which has its parent's past only; the deleted agent is NAME@gen1, unchanged."""
    before = sam.lines("events", "gpt")
    made = sam.json("fork", "sam", "--new-name", "gpt", "--placement", "shared")
    assert (made["agent"], made["parent"]) == ("gpt@gen2", "sam")
    sam.script.answers = [says("You said three.")]
    assert "You said three." in sam.ok("send", "gpt", "three")
    assert told(sam, "gpt") == told(sam, "gpt@gen2") == ["one", "two", "three"]
    assert told(sam, "gpt@gen1") == ["one", "two", "of the first gpt"]
    assert sam.lines("events", "gpt@gen1") == before
    assert [row["agent"] for row in sam.json("agents")] == ["gpt@gen2", "sam"]
    assert [row["agent"] for row in sam.json("agents", "gpt")] == ["gpt@gen2"]
    assert sam.json("archive", "list", "gpt")["results"] == []
    assert sam.json("search", "gpt", "oak", "--in", "archival")["total"] == 0
    assert len(sam.json("archive", "list", "gpt@gen1")["results"]) == 1
    query = "SELECT DISTINCT agent_id FROM records ORDER BY 1"
    assert sam.json("sql", query)["rows"] == [["gpt"], ["gpt@gen2"], ["sam"]]
    assert sam.json("sql", query, "--agent", "gpt")["rows"] == [["gpt@gen2"]]
    proven(sam)


def test_a_name_is_taken_while_its_newest_agent_lives(sam: Line) -> None:
    """A second fork of the name is refused until the first is deleted, and then is the next generation."""
    sam.ok("fork", "sam", "--new-name", "gpt")
    said = sam.fails("fork", "sam", "--new-name", "gpt")
    assert "There is an agent 'gpt@gen2' already" in said and "name of a deleted agent can be used again" in said
    assert "cannot be called 'gpt@gen3'" in sam.fails("fork", "sam", "--new-name", "gpt@gen3")
    sam.ok("delete", "gpt", "--yes")
    assert sam.json("fork", "sam", "--new-name", "gpt")["agent"] == "gpt@gen3"
    proven(sam)


def test_a_rerun_takes_the_name_of_a_deleted_agent(sam: Line) -> None:
    """A rerun can be repeated under its name after `delete`, as often as wanted; its report finds the newest fork."""
    first = sam.lines("events", "sam", "--type", "user_message")[1]["seq"]
    for generation in (2, 3):
        done = sam.json("rerun", "sam", "--from", str(first), "--new-name", "gpt", "--recorded")
        assert (done["fork"], done["diverged"]) == (f"gpt@gen{generation}", None)
        assert sam.json("rerun", "sam", "--new-name", "gpt", "--report")["fork"] == f"gpt@gen{generation}"
        sam.ok("delete", "gpt", "--yes")
    proven(sam)


@pytest.mark.long
@pytest.mark.commands
def test_create_and_import_begin_anew_where_the_name_leads(sam: Line, tmp_path: Path) -> None:
    """The new agent calls itself by the name, without the ending."""
    sam.ok("fork", "sam", "--new-name", "gpt")
    sam.ok("delete", "gpt", "--yes")
    assert sam.json("create", "gpt")["agent"] == "gpt@gen2"
    assert "My name is Gpt." in sam.ok("memory", "gpt")
    assert told(sam, "gpt")[-2:] == ["one", "two"]
    sam.ok("delete", "gpt", "--yes")
    past = tmp_path / "past.jsonl"
    past.write_text(json.dumps({"role": "user", "content": "Long ago", "time": "2020-01-01T00:00:00Z"}))
    sam.ok("import", "gpt", str(past))
    assert told(sam, "gpt")[-1] == "Long ago"
    assert [row["agent"] for row in sam.json("agents")] == ["gpt@gen2", "sam"]
    proven(sam)


def test_a_deleted_agent_is_forked_under_its_own_name(sam: Line) -> None:
    """The fork of a record before the deletion has the agent's past, and its name: the deletion is undone."""
    last = sam.lines("events", "gpt")[-1]["seq"]
    assert "had been deleted" in sam.fails("fork", "gpt", "--new-name", "gpt")
    assert sam.json("fork", "gpt", "--as-of", str(last - 1), "--new-name", "gpt")["parent"] == "gpt"
    assert told(sam, "gpt")[-1] == "of the first gpt"
    assert len(sam.json("archive", "list", "gpt")["results"]) == 1
    proven(sam)


def test_the_older_agent_is_erased_by_its_own_name(sam: Line) -> None:
    """Erasing NAME leaves the earlier agents of the name, and says so; NAME@gen1 is erased as any agent is."""
    sam.ok("fork", "sam", "--new-name", "gpt")
    sam.ok("send", "gpt", "of the second gpt")
    code, _, err = sam("erase", "gpt", "--match", "second", "--yes")
    assert code == 0 and "were not erased: gpt@gen1" in err
    assert told(sam, "gpt@gen1")[-1] == "of the first gpt"
    assert sam("erase", "gpt@gen1", "--match", "first", "--yes")[0] == 0
    assert told(sam, "gpt@gen1") == ["one", "two", None]
    proven(sam)


def test_the_new_agent_moves_is_exported_and_restored_as_any_other(sam: Line, other: Line, tmp_path: Path) -> None:
    """In the other store, too, the name leads to the restored agent."""
    sam.ok("fork", "sam", "--new-name", "gpt")
    sam.ok("send", "gpt", "three")
    sam.ok("move", "gpt", "--placement", "shared")
    file = str(tmp_path / "gpt.everlog")
    sam.ok("export", "gpt", file)
    assert other.json("restore", file)["agent"] == "gpt@gen2"
    assert told(other, "gpt") == ["one", "two", "three"]
    assert "exists already" in other.fails("create", "gpt")
    proven(other)


def test_a_restored_generation_does_not_take_the_name_of_a_living_agent(sam: Line, other: Line, tmp_path: Path) -> None:
    """The restore is refused before anything is written; after the agent is deleted it succeeds."""
    sam.ok("fork", "sam", "--new-name", "gpt")
    file = str(tmp_path / "gpt.everlog")
    sam.ok("export", "gpt", file)
    sam.ok("export", "--all", str(tmp_path / "all"))
    other.ok("create", "gpt")
    assert "'gpt' of this store has that name and is not deleted" in other.fails("restore", file)
    assert [row["agent"] for row in other.json("agents")] == ["gpt"]
    other.ok("delete", "gpt", "--yes")
    assert other.json("restore", file)["streams"][-1]["restored"] > 0
    assert told(other, "gpt") == ["one", "two"]


def test_a_backup_of_a_store_with_reused_names_is_restored_whole(sam: Line, other: Line, tmp_path: Path) -> None:
    """All agents of a name come back, and the name leads to the newest."""
    sam.ok("fork", "sam", "--new-name", "gpt")
    folder = str(tmp_path / "all")
    sam.ok("export", "--all", folder)
    assert other.json("restore", folder)["failed"] == {}
    for name in ("gpt", "gpt@gen1", "sam"):
        assert told(other, name) == told(sam, name)
    proven(other)


def test_the_export_of_a_deleted_agent_brings_it_back_under_its_name(sam: Line, tmp_path: Path) -> None:
    """A restored agent that was deleted since continues as a fork of itself; restoring again changes nothing."""
    file = str(tmp_path / "sam.everlog")
    sam.ok("export", "sam", file)
    sam.ok("send", "sam", "three")
    assert sam.json("restore", file)["revived"] is None
    sam.ok("delete", "sam", "--yes")
    assert sam.json("restore", file)["revived"] == "sam@gen2"
    assert told(sam, "sam") == ["one", "two"] and told(sam, "sam@gen1") == ["one", "two", "three"]
    assert sam.json("restore", file)["revived"] is None
    sam.script.answers = [says("Welcome back.")]
    assert "Welcome back." in sam.ok("send", "sam", "four")
    proven(sam)


def test_an_agent_whose_records_were_erased_is_not_brought_back(sam: Line, tmp_path: Path) -> None:
    """The export still has the content, and the store must not seem to have it: a warning says what happened."""
    file = str(tmp_path / "sam.everlog")
    sam.ok("export", "sam", file)
    sam.ok("delete", "sam", "--yes")
    sam.ok("erase", "sam", "--match", "one", "--yes")
    code, out, err = sam("restore", file)
    assert code == 0 and "exist already" in out and "continues" not in out
    assert "was deleted here and stays so" in err
    assert sam.json("agents") == []


def test_a_lost_file_of_the_newest_agent_stops_each_command_that_names_it(sam: Line) -> None:
    """No command works on the older agent instead; the repair of the register finds the newer one again."""
    sam.ok("fork", "sam", "--new-name", "gpt")
    store = FileStore(sam.root, sam.clock.now)
    store.register_files.path_of("gpt@gen2").unlink()
    for command in (
        ["send", "gpt", "hello"],
        ["create", "gpt"],
        ["events", "gpt"],
        ["fork", "sam", "--new-name", "gpt"],
    ):
        assert "'gpt@gen2' in the register, is missing" in sam.fails(*command)
    sam.ok("log", "repair-register", "--yes")
    assert told(sam, "gpt") == ["one", "two"]
    proven(sam)
