"""`everlog erase` where there are forks: they are named before, their shared content is erased too, and records of an
ancestor are erased in the ancestor only.
"""

import sqlite3
from pathlib import Path

import pytest

from everlog.actors.archive.archive_index import index_of
from everlog.store import ArchiveQuery
from tests.interfaces.erase.test_erase_command import CANARY, leftovers, store_of, talk
from tests.support.cli.command_line import Line, says
from tests.support.seeds import split

END = 2**62
FIRST = "8"
"""Seq at which the conversation begins, after the records of the creation, which are all that Max shares."""


def family(cli: Line) -> int:
    """Create Sam, Tom (a fork of Sam), Ann (a fork of Tom), and Max (a fork of Sam before the conversation). Return
    Sam's head.
    """

    def make(line: Line) -> None:
        line.ok("create", "sam", "--shards", "2", "--window", "8192")
        line.ok("fork", "sam", "--new-name", "max")
        talk(line)
        line.ok("fork", "sam", "--new-name", "tom")
        line.ok("send", "tom", "I am the fork")
        line.ok("fork", "tom", "--new-name", "ann")
        line.ok("send", "ann", "I am the fork of the fork")

    cli.begin("erased family", make)
    return store_of(cli).reader("sam").head("sam").seq


def unsealed(_: Line) -> None:
    """Leave the logs as they are after a few messages."""


def sealed_twice(cli: Line) -> None:
    """Seal all logs twice: states quote the conversation, and some files of forks have the content only in states."""
    for _ in range(2):
        cli.ok("log", "seal", "--all")
        for name in ("tom", "ann"):
            cli.ok("send", name, "and again")


def moved(cli: Line) -> None:
    """Move two forks and their parent to a shared log, sealed before and after the move."""
    for name in ("tom", "sam", "ann"):
        cli.ok("log", "seal", name)
        cli.ok("move", name, "--placement", "shared")
        cli.ok("send", name, "from there")
    cli.ok("log", "seal", "--all")
    cli.ok("move", "ann", "--placement", "dedicated")


@pytest.mark.parametrize("prepare", split([unsealed, sealed_twice, moved], 1, label="prepared", part="commands"))
def test_nothing_is_left_in_any_file_of_any_fork(cli: Line, prepare):
    """No byte of any log, state or archive file of Sam, its forks and their forks has the content; all logs are whole,
    and unrelated content remains.
    """
    family(cli)
    prepare(cli)
    store = store_of(cli)
    index = index_of(store)
    index.follow()
    for name in ("sam", "tom", "ann"):
        assert index.search(ArchiveQuery(query=CANARY, agent_id=name, as_of=END, as_of_time=END)).total == 1
    index.close()
    assert any("archive" in str(path) for path in places(cli.root))
    before = vectors_in(cli.root)
    assert ".lance" in {path.suffix for path in files(cli.root) for vector in before if vector in path.read_bytes()}
    shape = cli.json("erase", "sam", "--from", FIRST, "--yes")
    assert shape["forks"] == ["ann", "tom"]
    assert leftovers(cli.root) == []
    assert_whole(cli)
    index = index_of(store)
    for name in ("sam", "tom", "ann"):
        found = index.search(ArchiveQuery(query=CANARY, agent_id=name, as_of=END, as_of_time=END))
        assert [match for match in found.results if CANARY in match.text] == []
    assert index.check() == []
    index.close()
    gone = before - vectors_in(cli.root)
    assert gone
    assert [file for file in files(cli.root) for vector in gone if vector in file.read_bytes()] == []
    said = {name: cli.ok("events", name) for name in ("tom", "ann", "max")}
    assert "I am the fork" in said["tom"] and "I am the fork of the fork" in said["ann"]
    assert "erased" not in said["max"]


def places(root: Path) -> list[Path]:
    return [path for path in files(root) if CANARY.encode() in path.read_bytes()]


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


def vectors_in(root: Path) -> set[bytes]:
    """Return the vectors of the archive's cache, in the encoding of the archive's table."""
    with sqlite3.connect(root / "archive" / "archive.sqlite") as notes:
        return {numbers[: 2 * 256] for (numbers,) in notes.execute("SELECT numbers FROM vector")}


def assert_whole(cli: Line) -> None:
    """Check that each log is whole, that rebuilt projections are equal, and that each fork verifies and continues."""
    cli.ok("log", "check", "--all", "--deep")
    assert "no difference" in cli.ok("rebuild", "--all")
    for name in ("sam", "tom", "ann", "max"):
        code, out, err = cli("verify", name, "--json")
        assert code == 0, out + err
        cli.script.answers = [says("Still here.")]
        assert "Still here." in cli.ok("send", name, "Are you there?")
        assert CANARY not in cli.ok("memory", name) + cli.ok("context", name, "--full")
        assert CANARY.encode() not in cli.script.asked[-1]
        assert CANARY not in cli.ok("search", name, "cat", "--words", "--in", "recall")


def test_the_question_names_the_forks_that_it_reaches(cli: Line, monkeypatch):
    """Exactly the forks that share a record of the range are named; after the answer no, nothing is erased."""
    head = family(cli)
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(cli, "_ask", lambda prompt: asked.append(prompt) or "n")
    code, out, _ = cli("erase", "sam", "--from", FIRST)
    assert code == 1
    assert out.endswith("\nNothing was erased.\n")
    assert f"Erase {head - 7} records of sam (seq {FIRST} to {head})? Also erased in its forks ann, tom." in asked[-1]
    cli("erase", "ann", "--from", str(len(cli.lines("events", "ann"))))
    assert "fork" not in asked[-1]
    assert leftovers(cli.root)
    monkeypatch.setattr(cli, "_ask", lambda _: "y")
    assert "Also erased in its forks ann, tom." in cli.ok("erase", "sam", "--from", str(head))
    assert "Also gone" not in cli.ok("erase", "tom", "--from", str(len(cli.lines("events", "tom"))))


def test_records_of_an_ancestor_are_erased_in_the_ancestor_only(cli: Line, monkeypatch):
    """A range that reaches into the shared part is refused before the question, and the error names the parent."""
    head = family(cli)
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(cli, "_ask", lambda prompt: asked.append(prompt) or "y")
    for argv in (["--match", CANARY], ["--from", str(head)], ["--to", "3", "--yes"]):
        said = cli.fails("erase", "tom", *argv)
        assert f"forked from 'sam': its records 1 to {head} are those of 'sam'" in said
        assert f"begin at seq {head + 1}" in said
    assert asked == []
    end = len(cli.lines("events", "tom"))
    assert cli.json("erase", "tom", "--from", str(head + 2), "--yes")["forks"] == ["ann"]
    assert len(cli.lines("events", "tom")) == end + 1
    assert "I am the fork" not in cli.ok("events", "ann").replace("I am the fork of the fork", "")
    assert CANARY in cli.ok("events", "tom")


def test_a_cluster_unloads_all_affected_agents_after_the_confirmation(cli: Line, monkeypatch):
    """The content of the agent and its forks is erased; after the answer no, none of it is."""
    family(cli)
    let_go: list[str] = []

    async def release(_args, _world, names):
        let_go.extend(names)

    monkeypatch.setattr("everlog.interfaces.manage.erase_command.release", release)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    cli.typed = ["n", "y"]
    assert cli("erase", "sam", "--from", FIRST)[0] == 1
    assert let_go == []
    assert cli("erase", "sam", "--from", FIRST)[0] == 0
    assert let_go == ["sam", "ann", "tom"]


def test_a_fork_open_elsewhere_stops_the_whole_erasure(cli: Line):
    """Nothing is erased unless all logs can be opened; the error names the process that has one open."""
    family(cli)
    count = {name: len(cli.lines("events", name)) for name in ("sam", "tom", "ann")}
    log = store_of(cli).open("ann", "everlog chat")
    try:
        code, _, err = cli("erase", "sam", "--from", FIRST, "--yes")
        assert (code, "everlog chat" in err) == (1, True)
    finally:
        log.close()
    assert count == {name: len(cli.lines("events", name)) for name in ("sam", "tom", "ann")}


def test_the_erasure_is_an_event_of_each_that_it_reached(cli: Line):
    """`events` shows the erasure in each fork, in the fork's own seqs: up to its fork point."""
    head = family(cli)
    cli.ok("erase", "sam", "--from", FIRST, "--yes")
    for name in ("sam", "tom", "ann"):
        assert cli.ok("events", name).splitlines()[-1].endswith(f"records_erased     seq {FIRST} to {head}")
    assert "records_erased" not in cli.ok("events", "max")


def test_a_deleted_fork_is_reached_too(cli: Line):
    """The records of a deleted fork stay in its log, so they are erased too."""
    family(cli)
    for name in ("ann", "tom"):
        cli.ok("delete", name, "--yes")
    cli.ok("log", "seal", "--all")
    assert cli.json("erase", "sam", "--from", FIRST, "--yes")["forks"] == ["ann", "tom"]
    assert leftovers(cli.root) == []
