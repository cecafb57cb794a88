"""`everlog export` and `everlog restore`: an agent is written to a file, and restored from the file unchanged."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from everlog.actors.api import open_system
from everlog.actors.hosting.pending_work import pending_work
from everlog.events import BadInput, Record, TimerSet, UnknownAgent, draft, uuid7
from everlog.store.backup.restore_service import _groups
from everlog.store.base.contract import Append
from tests.interfaces.erase.test_erase_command import CANARY, leftovers, store_of, talk
from tests.support.cli.command_line import Line, says


@pytest.fixture
def other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """Return the command line over another empty store."""
    return Line(tmp_path / "other", capsys)


def shown(cli: Line, name: str) -> list[object]:
    """Return the output of all reading commands for an agent."""
    return [
        cli.json(*argv)
        for argv in (["context", name], ["memory", name], ["pressure", name], ["search", name, CANARY, "--words"],
                     ["memory", name, "--as-of", "9"], ["timers", name])
    ]  # fmt: skip


def envelopes(cli: Line, name: str) -> list[object]:
    """Return the records as `events --json` prints them, without the numbers of their commits."""
    return [{**record, "commit": 0} for record in cli.lines("events", name)]


def test_an_agent_goes_into_a_file_and_comes_out_as_it_was(cli: Line, other: Line, tmp_path: Path):
    """Every reading command prints the same in both stores, every check passes, and the agent continues."""
    talk(cli)
    head = len(cli.lines("events", "sam"))
    file = str(tmp_path / "sam.everlog")
    out = cli.ok("export", "sam", file)
    assert out.startswith(f"Exported {head} records of sam to {file} (")
    assert other.ok("restore", file).startswith(f"sam: {head} records restored, with the same chain ")
    assert envelopes(other, "sam") == envelopes(cli, "sam")
    assert shown(other, "sam") == shown(cli, "sam")
    for proof in (["rebuild", "sam"], ["verify", "sam"], ["log", "check", "sam", "--deep"]):
        assert other.ok(*proof)
    assert other.json("verify", "sam")["checked"] > 2
    other.script.answers = [says("I know you.")]
    assert "I know you." in other.ok("send", "sam", "Do you know me?")
    assert other.ok("restore", file).startswith(f"sam: seq 1 to {head} exist already, with the same chain ")
    assert len(other.lines("events", "sam")) > head


def test_the_archive_finds_what_was_restored(cli: Line, other: Line, tmp_path: Path):
    """The other store finds the agent's memories by meaning, without a command that builds an index."""
    cli.ok("create", "sam")
    cli.ok("archive", "insert", "sam", "The dog is called Rex")
    cli.ok("export", "sam", str(tmp_path / "sam.everlog"))
    other.ok("restore", str(tmp_path / "sam.everlog"))
    found = other.json("archive", "search", "sam", "animal companion")
    assert [hit["text"] for hit in found["results"]] == ["The dog is called Rex"]
    assert found["by_meaning"]


def test_a_fork_and_its_sources_come_along(cli: Line, other: Line, tmp_path: Path):
    """The parent is exported as far as the fork needs it; sources are named, and exported on request."""
    (tmp_path / "a.txt").write_text("The sea is wide.")
    cli.ok("load", "sam", str(tmp_path / "a.txt"), "--source", "books")
    cli.ok("send", "sam", "hello")
    head = len(cli.lines("events", "sam"))
    cli.ok("fork", "sam", "--new-name", "tom")
    cli.ok("send", "sam", "and on")
    cli.ok("send", "tom", "I am tom")
    file = str(tmp_path / "tom.everlog")
    out = cli.ok("export", "tom", file)
    assert f"Also in the file: {head} records of sam." in out
    assert "Not in the file: documents of books. --with-sources" in out
    out = cli.ok("export", "tom", file, "--with-sources", "--force")
    assert "1 record of the source books." in out and "Not in the file" not in out
    assert other.ok("restore", file).count("restored, with the same chain") == 3
    assert [row["agent"] for row in other.json("agents")] == ["tom"]
    assert other.json("sources")[0]["source"] == "books"
    assert envelopes(other, "tom") == envelopes(cli, "tom")
    assert shown(other, "tom") == shown(cli, "tom")
    assert "no difference" in other.ok("verify", "--all")
    other.ok("send", "tom", "go on")
    assert "no difference" in other.ok("verify", "tom")


def test_an_agent_that_moved_and_was_deleted_comes_back_as_it_ended(cli: Line, other: Line, tmp_path: Path):
    """A deleted agent stays deleted after the restore, in whatever partition it was; a new agent can use its name."""
    talk(cli)
    cli.ok("move", "sam", "--placement", "shared")
    cli.ok("send", "sam", "here")
    cli.ok("delete", "sam", "--yes")
    file = str(tmp_path / "sam.everlog")
    cli.ok("export", "sam", file)
    other.ok("restore", file)
    assert other.json("agents") == []
    assert "was deleted" in other("memory", "sam")[2]
    other.ok("create", "sam")
    for proof in (["rebuild", "sam"], ["verify", "sam"], ["log", "check", "--all", "--deep"]):
        assert other.ok(*proof)


def test_an_erasure_says_that_it_does_not_reach_copies(cli: Line, other: Line, tmp_path: Path):
    """The warning is printed as text and as JSON; a later export names the erasure, and has no erased content."""
    talk(cli)
    assert "files of `everlog export`" in cli.ok("erase", "sam", "--from", "8", "--to", "9", "--yes")
    assert cli.json("erase", "sam", "--all", "--yes")["exports_reached"] is False
    file = tmp_path / "sam.everlog"
    assert "in the file without content, because of earlier erasures" in cli.ok("export", "sam", str(file))
    assert cli.json("export", "sam", str(file), "--force")["streams"][0]["erased"] > 8
    other.ok("restore", str(file))
    assert leftovers(other.root) == []
    assert envelopes(other, "sam") == envelopes(cli, "sam")


def test_an_older_export_does_not_undo_an_erasure(cli: Line, tmp_path: Path):
    """Restoring an older export over the agent that has erased since changes nothing, and no file gets the content
    again.
    """
    head = talk(cli)
    file = str(tmp_path / "sam.everlog")
    cli.ok("export", "sam", file)
    cli.ok("erase", "sam", "--all", "--yes")
    assert f"sam: seq 1 to {head} exist already" in cli.ok("restore", file)
    assert leftovers(cli.root) == []


def test_a_damaged_file_restores_nothing(cli: Line, other: Line, tmp_path: Path):
    """The exit code is 1 with one paragraph, and the store has no agent."""
    talk(cli)
    file = tmp_path / "sam.everlog"
    cli.ok("export", "sam", str(file))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert "is damaged" in other.fails("restore", str(file))
    file.write_text("hello")
    assert "no export of everlog" in other.fails("restore", str(file))
    assert "There is no file" in other.fails("restore", str(tmp_path / "gone.everlog"))
    assert other.json("agents") == []


def test_a_name_that_is_taken_is_refused(cli: Line, other: Line, tmp_path: Path):
    """The other agent of that name stays unchanged, and the error says what can be done."""
    talk(cli)
    file = str(tmp_path / "sam.everlog")
    cli.ok("export", "sam", file)
    other.ok("send", "sam", "I am another sam")
    before = envelopes(other, "sam")
    assert "restore into another store" in other.fails("restore", file)
    assert envelopes(other, "sam") == before


def test_an_export_leaves_an_agent_alone_that_is_open(cli: Line, tmp_path: Path):
    """An export only reads: the process that has the agent open keeps it, and the file is complete."""
    head = talk(cli)
    log = store_of(cli).open("sam", "everlog chat")
    try:
        assert cli.json("export", "sam", str(tmp_path / "sam.everlog"))["streams"][0]["to_seq"] == head
        assert log.head("sam").seq == head
    finally:
        log.close()


def test_an_unknown_agent_is_not_exported(cli: Line, tmp_path: Path):
    """The error suggests a similar name, and no file is written; replacing an existing file needs --force."""
    talk(cli)
    assert "Did you mean 'sam'?" in cli.fails("export", "san", str(tmp_path / "x.everlog"))
    assert not (tmp_path / "x.everlog").exists()
    (tmp_path / "x.everlog").write_text("mine")
    assert "--force" in cli.fails("export", "sam", str(tmp_path / "x.everlog"))


@pytest.mark.beside_store("Ctrl-C is raised by the store, which the server has")
def test_an_interruption_says_what_became_of_it(cli: Line, other: Line, tmp_path: Path, monkeypatch):
    """Ctrl-C during an export leaves no file; during a restore, the message says how to continue. The exit code
    is 130.
    """
    talk(cli)
    file = tmp_path / "sam.everlog"

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("everlog.store.backup.export_agent.ExportWriter.write", interrupted)
        assert cli("export", "sam", str(file))[::2] == (130, "everlog: interrupted; nothing was exported.\n")
    assert not [path for path in tmp_path.iterdir() if "sam.everlog" in path.name]
    cli.ok("export", "sam", str(file))
    with monkeypatch.context() as patched:
        patched.setattr("everlog.store.backup.restore_service._append", interrupted)
        code, _, said = other("restore", str(file))
    assert (code, "run the same command again" in said) == (130, True)
    other.ok("restore", str(file))
    assert envelopes(other, "sam") == envelopes(cli, "sam")


def test_programs_export_and_restore(tmp_path: Path) -> None:
    """From Python, an export and a restore give equal records, in a process that has the agent in memory."""

    async def go() -> None:
        file = tmp_path / "sam.everlog"
        async with open_system(tmp_path / "one", runtime="local") as system:
            agent = await system.agent("sam")
            await agent.send("Hi, my name is Chad")
            contents = await system.export("sam", file)
            assert contents.records == contents.own.to_seq > 5
            with pytest.raises(BadInput):
                await system.export("sam", file)
            with pytest.raises(UnknownAgent):
                await system.export("tom", file)
        async with open_system(tmp_path / "two", runtime="local") as system:
            done = await system.restore(file)
            assert (done.contents, done.written) == (contents, contents.records)
            agent = await system.agent("sam", create=False)
            records = await agent.send("What is my name?")
            assert "Chad" in "".join(record.text or "" for record in records if record.type == "message_sent")

    asyncio.run(go())


def test_an_ancestor_that_gave_nothing_stays_behind_and_the_fork_is_whole(cli: Line, other: Line, tmp_path: Path):
    """Ann is a fork of Tom at a record of Sam: only Sam, whose records Ann has, is exported with Ann, and every check
    passes.
    """
    cli.ok("send", "sam", "Hello")
    cli.ok("fork", "sam", "--new-name", "tom")
    cli.ok("fork", "tom", "--as-of", "5", "--new-name", "ann")
    cli.ok("send", "ann", "Hi")
    cli.ok("export", "ann", str(tmp_path / "ann.everlog"))
    other.ok("restore", str(tmp_path / "ann.everlog"))
    assert [row["agent"] for row in other.json("agents")] == ["ann"]
    assert store_of(other).agents() == ["ann", "sam"]
    for proof in (["log", "check", "--all", "--deep"], ["verify", "--all"], ["rebuild", "--all"]):
        other.ok(*proof)


def test_no_reader_sees_an_unfinished_restore(cli: Line, other: Line, tmp_path: Path, monkeypatch):
    """Views and commands show no unfinished restore, and its name cannot be created; `log check --all` names it, and
    the same restore finishes it.
    """
    talk(cli)
    file = str(tmp_path / "sam.everlog")
    cli.ok("export", "sam", file)

    def stopping(commits: Iterable[list[Record]]) -> Iterator[Sequence[Append]]:
        yield next(iter(_groups(commits)))[:2]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("everlog.store.backup.restore_service._groups", stopping)
        assert other("restore", file)[0] == 130
    assert other.json("agents") == []
    counting = ["sql", "SELECT agent_id, events FROM agents"]
    assert other.json(*counting)["rows"] == []
    assert "a restore was interrupted" in other.ok("log", "check", "--all")
    assert "A restore of 'sam' was interrupted" in other.fails("create", "sam")
    assert other.json("agents") == []
    other.ok("restore", file)
    assert envelopes(other, "sam") == envelopes(cli, "sam")
    assert other.json(*counting)["rows"] == cli.json(*counting)["rows"] != []


def raised(complaint: str) -> None:
    raise AssertionError(complaint)


@pytest.mark.long
@pytest.mark.commands
def test_an_ancestor_that_came_with_a_fork_does_nothing_again(cli: Line, tmp_path: Path, capsys):
    """An ancestor that is restored for a fork is marked as deleted: its open turn and its timer do not run, and its
    name is free.
    """
    cli.ok("create", "sam")
    with closing(store_of(cli).open("sam", "test")) as log:
        timer = TimerSet(text="Look.", timer="tea", due_at=10**15)
        event_id = uuid7(cli.clock.now(), 7)
        log.append("sam", log.head("sam").seq, [draft(timer, event_id=event_id, recorded_at=1, turn=0, step=0)])
    cli.ok("send", "sam", "Hello")
    said = [record["seq"] for record in cli.lines("events", "sam") if record["type"] == "user_message"][-1]
    head = len(cli.lines("events", "sam"))
    for at, name in ((said, "tom"), (head, "ann")):
        cli.ok("fork", "sam", "--as-of", str(at), "--new-name", name)
        file = str(tmp_path / f"{name}.everlog")
        cli.ok("export", name, file)
        place = Line(tmp_path / f"with {name}", capsys)
        out = place.ok("restore", file)
        assert "It was restored for its fork only, and is marked as deleted." in out
        assert [row["agent"] for row in place.json("agents")] == [name]
        assert "was deleted" in place("memory", "sam")[2]
        assert envelopes(place, name) == envelopes(cli, name)
        assert shown(place, name) == shown(cli, name)
        woken = {one.agent_id: (one.unfinished, len(one.timers)) for one in pending_work(store_of(place), raised)}
        assert {who: does for who, does in woken.items() if any(does)} == {name: (False, 1)}
        place.script.answers = [says("Hello, I am new.")]
        assert "I am new" in place.ok("send", "sam", "Hello")
        for proof in (["log", "check", "--all", "--deep"], ["verify", "--all"], ["rebuild", "--all"]):
            assert place.ok(*proof)
