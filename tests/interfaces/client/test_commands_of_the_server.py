"""Commands with --server that the server itself carries out: their output is that of the same command on the store."""

import json
import shutil
from pathlib import Path

import httpx2
import pytest

from everlog.actors.feed.store_feed import FeedReader
from everlog.events import ClusterError
from everlog.interfaces.client import mirror_store
from everlog.interfaces.client.server_channel import Patience
from everlog.interfaces.http.native import agents
from everlog.store import FileStore
from tests.support.cli.command_line import Line, Made, says
from tests.support.http.served_line import ServedLine, served_line
from tests.support.seeds import few_and_all, pick


def fill(line: Line) -> None:
    """Make a few agents, each with a turn."""
    line.script.answers = [says("Ahoy"), says("Aye"), says("Hm")]
    for name in ("fleet-1", "fleet-2", "sam"):
        line.ok("create", name, "--model", "script")
        line.ok("send", name, f"Hello from {name}")
    line.ok("fork", "sam", "--new-name", "fleet-kid")


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, made: Made):
    """Return a command line whose commands go to a server, with a few agents."""
    for name in ("EVERLOG_STORE", "EVERLOG_SERVER", "EVERLOG_KEY", "EVERLOG_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    with served_line(tmp_path / "store", capsys) as line:
        made.begin(line, "fleet of a server", fill)
        yield line


def no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a download of an agent fail the test."""
    monkeypatch.setattr(mirror_store, "export_request", lambda *_: pytest.fail("an agent was downloaded"))


def test_a_message_needs_no_listing_of_the_agents(line: ServedLine, monkeypatch: pytest.MonkeyPatch):
    """A command about one agent does not make the server read all of them."""
    monkeypatch.setattr(agents, "list_agents", lambda *_, **__: pytest.fail("all agents were listed"))
    assert "Indeed." in line.ok("send", "sam", "Hello again")
    assert "Hello again" in line.ok("events", "sam")


@pytest.mark.parametrize("command", ["events", "replay"])
def test_following_an_agent_of_a_server_shows_what_comes(line: ServedLine, command: str):
    """New records of the server are printed after each look, until Ctrl-C."""
    head = line.json("memory", "sam")["as_of"]

    def on_sleep() -> None:
        if len(line.sleeps) > 1:
            raise KeyboardInterrupt
        path = f"{line.address}/api/v1/agents/sam/messages"
        httpx2.post(path, json={"text": "Late"}, trust_env=False).raise_for_status()

    line.on_sleep = on_sleep
    code, out, err = line(command, "sam", "--follow", "--from", str(head), "--json")
    assert (code, err) == (130, "")
    shown = [json.loads(row) for row in out.splitlines()]
    assert [row["seq"] for row in shown] == list(range(head, head + len(shown)))
    assert shown[1]["text"] == "Late"


def on_a_copy(line: ServedLine, folder: Path) -> Line:
    """Return a command line on a copy of the store. The server stops for that."""
    line.release()
    shutil.copytree(line.root, folder)
    local = Line(folder, line._capsys)
    local.script, local.clock = line.script, line.clock
    return local


@pytest.mark.parametrize("count", few_and_all(5, part="commands"))
def test_listings_and_figures_download_nothing(
    line: ServedLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int | None
):
    """Agents, pressure, costs, the report, models and a search of all agents are what the store says, and no log is
    copied for them.
    """
    commands = (
        ("agents",), ("agents", "fleet-*", "--sort", "events", "--limit", "2"), ("pressure",), ("cost",),
        ("cost", "fleet-*", "--sort", "cost"), ("cost", "sam"), ("report", "--by", "day"), ("models",),
        ("report", "--agent", "sam", "--as-of", "2999-01-01"), ("search", "--all", "Hello"),
        ("search", "fleet-*", "Hello"),
    )  # fmt: skip
    local = on_a_copy(line, tmp_path / "copy")
    no_download(monkeypatch)
    for words in pick(commands, count, label="listings of a server"):
        there, here = line.json(*words), local.json(*words)
        if words[0] == "report":
            there, here = ({**shape, "as_of": ""} for shape in (there, here))
        assert there == here, words
    line.ok("report", "--html", str(tmp_path / "report.html"))
    assert "4 agents, " in (tmp_path / "report.html").read_text()


def test_changes_of_a_memory_download_nothing(line: ServedLine, monkeypatch: pytest.MonkeyPatch):
    """A memory is inserted once, changed and deleted, and no log is copied for that."""
    no_download(monkeypatch)
    memory = line.json("archive", "insert", "sam", "The boat is red")["memory"]
    again = line.json("archive", "insert", "sam", "The boat is red ")
    assert again == {"agent": "sam", "memory": memory, "known": True}
    assert line.json("archive", "update", "sam", memory, "The boat is blue") == {"agent": "sam", "memory": memory}
    assert line.json("archive", "delete", "sam", memory) == {"agent": "sam", "memory": memory}


def test_a_query_tells_the_position_of_the_server(line: ServedLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """An answer has the rows, the logs and the number of records that the store says, in each form."""
    local = on_a_copy(line, tmp_path / "copy")
    no_download(monkeypatch)
    query = "SELECT agent_id, events, last_recorded_at FROM agents ORDER BY ALL"
    for words in (("sql", query), ("sql", "SELECT count(*) FROM records", "--agent", "sam"), ("report",)):
        (there, here) = ({**one.json(*words), "as_of": ""} for one in (line, local))
        assert there == here, words
    for form in ("parquet", "arrow"):
        files = [tmp_path / f"there.{form}", tmp_path / f"here.{form}"]
        for one, path in zip((line, local), files, strict=True):
            one.ok("sql", query, "--format", form, "--out", str(path))
        assert files[0].read_bytes() == files[1].read_bytes()
    told = [one("sql", query, "--position")[2].partition(" UTC, ")[2] for one in (line, local)]
    assert told[0] == told[1] and told[0].startswith("4 partitions, ") and told[0].count("up to commit") == 4


def test_a_move_tells_the_log_that_the_server_moved_the_agent_to(line: ServedLine):
    """The partition is that of the server, not that of a copy."""
    moved = line.json("move", "sam", "--placement", "shared")
    assert moved["partition"].startswith("shard-")
    assert f"Moved sam to {moved['partition']};" in line.ok("move", "sam", "--placement", "shared")
    assert line.json("move", "sam", "--placement", "dedicated")["partition"].startswith("agent-")


def test_a_search_in_an_agent_is_done_where_its_index_is(
    line: ServedLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Messages, memories and documents of one agent are found by meaning as they are beside the store, at any moment
    of it; nothing is copied.
    """
    (tmp_path / "harbour.txt").write_text("The harbour of Bergen is deep.")
    line.ok("archive", "insert", "sam", "The dog is called Rex")
    line.ok("load", "sam", str(tmp_path / "harbour.txt"), "--source", "harbours")
    head = line.json("memory", "sam")["as_of"]
    line.ok("archive", "insert", "sam", "The cat is called Tom")
    line.ok("delete", "fleet-1", "--yes")
    local = on_a_copy(line, tmp_path / "copy")
    no_download(monkeypatch)
    for words in (
        ("archive", "search", "sam", "animal companion"), ("search", "sam", "animal companion"),
        ("search", "sam", "ships", "--in", "documents"), ("search", "sam", "Hello", "--in", "messages"),
        ("archive", "search", "sam", "animal companion", "--as-of", str(head)),
    ):  # fmt: skip
        there = line.json(*words)
        assert there["by_meaning"] and there["results"]
        assert there == local.json(*words), words
    assert "'fleet-1' was deleted" in line("search", "fleet-1", "Hello")[2]
    monkeypatch.undo()
    for moment in ("yesterday", "999"):
        words = ("search", "sam", "Hello", "--as-of", moment)
        assert line.fails(*words) == local.fails(*words)


def test_a_listing_names_what_the_register_of_the_server_has_lost(line: ServedLine):
    """`agents` ends with exit code 1 and the errors of the register, and `sql` with those of missing logs; the other
    agents are listed.
    """
    lost = line.root / "log" / FileStore(line.root, line.clock.now).partition_of("fleet-1")
    lost.rename(line.root / "away")
    code, out, err = line("agents")
    assert code == 1 and "sam" in out and f"{lost}, the log of 'fleet-1', is missing" in err
    code, out, err = line("sql", "SELECT agent_id FROM agents")
    assert code == 1 and "sam" in out and f"{lost}, the log of 'fleet-1', is missing" in err


def test_a_search_of_all_names_the_agents_that_it_cannot_read(line: ServedLine):
    """By meaning and by words the others are searched, each damage is printed, and the exit code is 1."""
    path = next(path for path in line.root.glob("log/agent-*/*.open") if b"fleet-2" in path.read_bytes())
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 255
    path.write_bytes(data)
    for words in ((), ("--words",)):
        code, out, err = line("search", "--all", "Hello", *words)
        assert code == 1 and "Hello from fleet-1" in out and str(path) in err, err


def test_a_restore_says_that_an_erased_agent_stays_deleted(line: ServedLine, tmp_path: Path):
    """The warning is the one of a restore beside the store."""
    file = str(tmp_path / "sam.everlog")
    line.ok("export", "fleet-1", file)
    line.ok("delete", "fleet-1", "--yes")
    line.ok("erase", "fleet-1", "--match", "Hello", "--yes")
    assert "'fleet-1' was deleted here and stays so: 2 of the exported records" in line("restore", file)[2]


def test_a_load_sends_what_has_changed(line: ServedLine, tmp_path: Path):
    """A dry run says what a load does, and --prune removes what has vanished from the folder; the documents are those
    of a load beside the store.
    """
    folder, local = tmp_path / "notes", Line(tmp_path / "local", line._capsys)
    folder.mkdir()
    for name in ("fog", "tide", "wind"):
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\nThe {name} came.")
    local.ok("create", "sam")
    for one in (line, local):
        one.ok("load", "sam", str(folder), "--source", "sea")
    (folder / "fog.md").unlink()
    (folder / "tide.md").write_text("# Tide\n\nThe tide turns.")
    for more in (["--dry-run"], [], ["--prune", "--dry-run"], ["--prune"]):
        words = ("load", "sam", str(folder), "--source", "sea", *more)
        assert line.json(*words) == local.json(*words)
    there, here = ([{**row, "loaded": ""} for row in one.json("sources", "--source", "sea")] for one in (line, local))
    assert there == here and [row["title"] for row in there] == ["Wind", "Tide"]


def test_a_verification_says_that_an_agent_was_deleted(line: ServedLine):
    """The notice comes before the proof, for one agent and for all."""
    line.ok("delete", "fleet-1", "--yes")
    for words in (("verify", "fleet-1"), ("verify", "--all")):
        code, out, err = line(*words)
        assert code == 0 and "fleet-1" in out and "'fleet-1' was deleted" in err
    assert "deleted" not in line.json("verify", "fleet-1")


def test_a_pattern_deletes_forks_before_their_parents(line: ServedLine, monkeypatch: pytest.MonkeyPatch):
    """The server says which agents there are, and which are forks of which; nothing is copied."""
    no_download(monkeypatch)
    assert line.json("delete", "*", "--yes")["deleted"] == ["fleet-kid", "fleet-1", "fleet-2", "sam"]
    assert line.json("agents") == []


def test_records_are_followed_on_the_server(line: ServedLine, monkeypatch: pytest.MonkeyPatch):
    """`follow` prints the records of the server, once each, and continues after the position that it told."""

    async def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    async def over(*_: object) -> None:
        raise ClusterError("The test has read everything.")

    def followed(*words: str) -> tuple[list[object], str]:
        code, out, err = line("follow", "--json", *words)
        assert code == 130
        return [json.loads(text) for text in out.splitlines()], err.rpartition("--resume ")[2].split()[0]

    monkeypatch.setattr(FeedReader, "wait", over)  # the server has no more records, and its stream ends
    monkeypatch.setattr(Patience, "wait", ctrl_c)
    records, token = followed("sam", "--resume", "start")
    assert records == line.lines("events", "sam")
    line.ok("send", "sam", "Hello again")
    later, token = followed("sam", "--type", "user_message", "--resume", token)
    assert [record["text"] for record in later] == ["Hello again"]
    assert followed("--resume", token)[0] == followed()[0] == []
    assert "is no position of a feed" in line.fails("follow", "--resume", "yesterday")


def test_an_earlier_agent_of_a_name_is_meant_by_its_own(line: ServedLine):
    """NAME@gen1 is the deleted agent, whose stream is called NAME, in what reads and in what changes it; NAME is the
    agent that has the name now.
    """
    line.ok("send", "fleet-kid", "of the first kid")
    line.ok("delete", "fleet-kid", "--yes")
    line.ok("fork", "sam", "--new-name", "fleet-kid")
    line.ok("send", "fleet-kid", "of the second kid")

    def told(name: str) -> list[str]:
        return [record["text"] for record in line.lines("events", name, "--type", "user_message")]

    assert told("fleet-kid@gen1")[1:] == ["of the first kid"]
    assert told("fleet-kid")[1:] == ["of the second kid"]
    line.ok("erase", "fleet-kid@gen1", "--match", "kid", "--yes")
    assert len(told("fleet-kid")) == 2
    query = "SELECT count(*) FROM records WHERE contains(text, 'first kid')"
    assert line.json("sql", query)["rows"] == [[0]]


def test_all_names_of_an_agent_are_told(line: ServedLine, tmp_path: Path):
    """A rename tells the names that were given before, and an export those that are not in its file."""
    line.ok("rename", "sam", "samuel")
    assert line.json("rename", "samuel", "sammy") == {"agent": "sam", "name": "sammy", "names": ["samuel", "sammy"]}
    told = line.ok("export", "sammy", str(tmp_path / "sam.everlog"))
    assert "Not in the file: the names samuel, sammy. A restored agent is called sam." in told


def test_an_agent_is_verified_where_it_is(line: ServedLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The proof of one agent, and of all, is that of the store; so is the page for people."""
    local = on_a_copy(line, tmp_path / "copy")
    no_download(monkeypatch)
    for words in (("verify", "sam"), ("verify", "--all"), ("verify", "sam", "--sample", "1", "--seed", "x")):
        assert line.json(*words) == local.json(*words)
        assert line.ok(*words) == local.ok(*words)
    assert "no agent 'nobody'" in line.fails("verify", "nobody")


def test_an_erasure_is_planned_asked_and_done_there(line: ServedLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Plan, question and outcome of an erasure, of one agent or of a pattern, are those of the store."""
    local = on_a_copy(line, tmp_path / "copy")
    no_download(monkeypatch)
    for words in (
        ("erase", "sam", "--match", "Hello", "--derived", "--dry-run"),
        ("erase", "sam", "--match", "Hello", "--derived", "--yes"),
        ("erase", "fleet-*", "--match", "Hello", "--dry-run"),
        ("erase", "fleet-*", "--match", "Hello", "--yes"),
    ):
        assert line.ok(*words) == local.ok(*words)
    again = ("erase", "sam", "--match", "Hello", "--yes")
    assert line.fails(*again) == local.fails(*again)
    assert "beyond the last record" in line.fails("erase", "sam", "--from", "99", "--yes")
    assert line.json("sql", "SELECT count(*) FROM records WHERE contains(text, 'Hello')")["rows"] == [[0]]


def test_a_rerun_is_a_job_of_the_server(line: ServedLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A rerun and the later comparison are those of the store, as JSON and as a page."""
    local = on_a_copy(line, tmp_path / "copy")
    no_download(monkeypatch)
    for words in (
        ("rerun", "sam", "--from", "8", "--new-name", "sue", "--recorded"),
        ("rerun", "sam", "--new-name", "sue", "--report"),
    ):
        assert line.ok(*words) == local.ok(*words)
    report = ("rerun", "sam", "--new-name", "sue", "--report")
    assert line.json(*report) == local.json(*report)
    shape = line.json("rerun", "sam", "--from", "8", "--new-name", "tom")
    assert [turn["now"]["answers"] for turn in shape["turns"]] == [["Indeed."]]
    assert "already" in line.fails("rerun", "sam", "--from", "8", "--new-name", "tom")


def test_what_belongs_beside_the_store_says_why(line: ServedLine):
    """The load generator, presets and tests of models are refused, each with its reason."""
    assert "would measure the network" in line.fails("fleet")
    assert "--persona FILE" in line.fails("preset", "list")
    assert "done where the store is" in line.fails("models", "test", "script")
    assert "limits of its own" in line.fails("sql", "SELECT 1", "--memory", "500")
