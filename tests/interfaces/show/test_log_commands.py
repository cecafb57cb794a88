"""`everlog log check`, `log stats` and `log seal`."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everlog.interfaces.output import json_shapes
from everlog.projections import DERIVER
from everlog.store import FileStore
from tests.support.cli.command_line import Line
from tests.support.seeds import split

ROOT = Path(__file__).resolve().parents[3]


def store_of(cli: Line) -> FileStore:
    return FileStore(cli.root, cli.clock.now)


def sealed_bytes(cli: Line) -> dict[str, int]:
    return {log["agent"]: log["sealed"]["bytes"] for log in cli.json("log", "stats", "--all")["logs"]}


def test_seal_says_what_it_did(cli: Line):
    """The first run reports records, bytes and files before and after; the second run finds nothing to seal."""
    cli.ok("send", "sam", "I sail")
    before = cli.ok("events", "sam", "--json")
    count = len(before.splitlines())
    said = cli.ok("log", "seal", "sam")
    assert said.startswith(f"sam: {count} records, ")
    assert said.count(" in 1 file") == 2
    assert cli.ok("log", "seal", "sam") == "sam: nothing to seal\n"
    assert cli.json("log", "seal", "sam")["files"] == 0
    assert cli.ok("events", "sam", "--json") == before
    assert cli.json("log", "check", "sam", "--deep")["errors"] == []
    assert "no difference" in cli.ok("verify", "sam")


def test_seal_leaves_an_open_log_alone(cli: Line):
    """With --all the other logs are sealed and the exit code is 1; for the open log alone the exit code is 1 with one
    paragraph.
    """
    for name in ("ann", "bob", "cy"):
        cli.ok("create", name)
    log = store_of(cli).open("bob", "everlog chat")
    try:
        code, out, err = cli("log", "seal", "--all")
        assert code == 1
        assert "bob is open in process" in err
        assert "--take-over" not in err
        assert [line.partition(":")[0] for line in out.splitlines()] == ["ann", "cy"]
        assert "bob is open" in cli.fails("log", "seal", "bob")
    finally:
        log.close()
    assert {name for name, count in sealed_bytes(cli).items() if count} == {"ann", "cy"}
    assert cli.ok("log", "seal", "--all").splitlines()[1].startswith("bob: ")


def test_seal_tells_of_a_torn_tail(cli: Line):
    """The sealing process is the next owner: it cuts and keeps the tail, and its output says so."""
    cli.ok("create", "sam")
    (path,) = cli.root.rglob("*.open")
    with path.open("ab") as file:
        file.write(b"torn")
    code, out, err = cli("log", "seal", "sam")
    assert code == 0
    assert "4 damaged bytes" in err
    assert "records" in out


def test_stats_add_up(cli: Line):
    """The kinds of files sum up to the bytes in the folder, before and after sealing; the total is the sum over the
    logs.
    """
    for name in ("ann", "sam"):
        cli.ok("send", name, "I sail")
    cli.ok("log", "seal", "sam")
    found = cli.json("log", "stats", "--all")
    ann, sam = found["logs"]
    for log in (ann, sam):
        kinds = [log[kind] for kind in ("open", "frames", "sealed", "states", "other")]
        folder = list((cli.root / "log" / log["partition"]).iterdir())
        assert sum(kind["bytes"] for kind in kinds) == log["all"]["bytes"] == sum(f.stat().st_size for f in folder)
        assert sum(kind["files"] for kind in kinds) == log["all"]["files"] == len(folder)
        assert log["records"] == len(cli.lines("events", log["agent"]))
        assert log["amplification"] == pytest.approx(log["all"]["bytes"] / log["text_bytes"], abs=1e-3)
    assert ann["sealed"]["files"] == 0 < ann["open"]["bytes"]
    assert sam["open"]["bytes"] == 0 < sam["states"]["bytes"]
    assert found["total"]["records"] == ann["records"] + sam["records"]
    assert found["total"]["agents"] == 2


@pytest.mark.parametrize("columns", ["80", "120"])
def test_stats_fit_the_terminal(cli: Line, monkeypatch, columns):
    """No line is wider than the terminal, and the total is the last line."""
    monkeypatch.setenv("COLUMNS", columns)
    for name in ("ann", "a-name-that-is-rather-long-for-a-table-of-numbers"):
        cli.ok("create", name)
    cli.ok("log", "seal", "ann")
    for argv in (["sam"], ["--all"]):
        cli.ok("create", "sam") if argv == ["sam"] else None
        out = cli.ok("log", "stats", *argv)
        assert max(map(len, out.splitlines())) <= int(columns)
    assert out.splitlines()[-1].startswith("3 logs")


def test_an_unknown_agent_is_reported_with_similar_names(cli: Line):
    """The error of each command names similar names."""
    cli.ok("create", "sam")
    for command in ("check", "stats", "seal"):
        assert "sam" in cli.fails("log", command, "samm")


def test_deep_finds_what_a_checksum_does_not(cli: Line, monkeypatch):
    """A state that differs from its records is found only with --deep."""
    cli.ok("send", "sam", "I sail")
    real = type(DERIVER).__call__
    monkeypatch.setattr(type(DERIVER), "__call__", lambda self, e, r: real(self, e, r).slice(1))
    cli.ok("log", "seal", "sam")
    monkeypatch.undo()
    cli.ok("log", "check", "sam")
    code, out, _ = cli("log", "check", "sam", "--deep")
    assert code == 1
    assert "is not what its records say" in out


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB"), (16_200_000, "16.2 MB"),
     (5 * 10**12, "5.0 TB"), (5 * 10**16, "50,000.0 TB")],
)  # fmt: skip
def test_sizes_are_for_people(count, text):
    assert json_shapes.size(count) == text


def large(cli: Line) -> str:
    """Make a large log in one append. Return the text of its events."""
    talk = cli.root.parent / "talk.jsonl"
    line = '{{"role":"user","content":"{} the sea was wide","time":"2024-01-01","ref":"{}"}}\n'
    talk.write_text("".join(line.format(f"{n} " * 20, n) for n in range(3000)))
    cli.ok("import", "sam", str(talk), "--window", "100000000")
    return cli.ok("events", "sam", "--json")


INTERRUPTED = """
import os, signal, sys
from contextlib import contextmanager
from everlog.interfaces.cli import main
{hook}
sys.exit(main.main(sys.argv[1:]))
"""
AT_FIRST_PROGRESS = """
@contextmanager
def shown(what):
    yield lambda done, total: os.kill(os.getpid(), signal.SIGINT)
from everlog.interfaces.output import progress_bar
progress_bar.shown = shown
"""
IN_A_QUERY = """
import threading
from everlog.projections import Projections
real = Projections.states
def states(self, agents):
    threading.Timer(0, os.kill, (os.getpid(), signal.SIGINT)).start()
    self._db.sql("SELECT sum(a.range * b.range) FROM range(100000) a, range(100000) b").fetchall()
    return real(self, agents)
Projections.states = states
"""
AT_THE_MANIFEST = """
from everlog.store.log import file_log
def succeed(*args, real=file_log.succeed):
    os.kill(os.getpid(), signal.SIGINT)
    return real(*args)
file_log.succeed = succeed
"""
AFTER_THE_MANIFEST = """
from everlog.store.log import file_log
def remove(*args):
    os.kill(os.getpid(), signal.SIGINT)
file_log.remove_if_there = remove
"""

AT_OPENING = """
from everlog.store.stores import file_store
def open_partition(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGINT)
file_store.FileStore.open_partition = open_partition
"""
AT_READING = """
from everlog.interfaces.show import show_commands
show_commands.events = lambda *_: os.kill(os.getpid(), signal.SIGINT)
"""
IN_AN_IMPORT = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "pyarrow":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
AT_THE_ARGUMENTS = """
from everlog.interfaces.cli import command_run
command_run.parser = lambda *_: os.kill(os.getpid(), signal.SIGINT)
"""


def interrupted(cli: Line, hook: str, *argv: str, out: bool = False) -> str:
    """Run a command in its own process, with Ctrl-C at the hook. Return its message, which is one line or empty,
    without a traceback. `out`: the command prints something before the hook.
    """
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(hook=hook), "--store", str(cli.root), *argv],
        cwd=ROOT, capture_output=True, text=True, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (run.returncode, bool(run.stdout)) == (130, out), run.stderr
    assert len(run.stderr.splitlines()) <= 1
    return run.stderr.removeprefix("everlog: interrupted; ")


SEALING = {
    "progress": AT_FIRST_PROGRESS,
    "query": IN_A_QUERY,
    "manifest": AT_THE_MANIFEST,
    "removal": AFTER_THE_MANIFEST,
}


@pytest.mark.parametrize("moment", split([*SEALING], 1, label="sealing", part="commands"))
def test_ctrl_c_while_sealing_is_safe(cli: Line, moment: str):
    """After an interruption at any step no record is lost, every record reads as before, and the next run seals."""
    before = large(cli)
    assert interrupted(cli, SEALING[moment], "log", "seal", "sam") == "nothing is lost.\n"
    assert cli.ok("events", "sam", "--json") == before
    assert cli.json("log", "check", "sam", "--deep")["errors"] == []
    cli.ok("log", "seal", "sam")
    assert cli.ok("events", "sam", "--json") == before
    assert cli.json("log", "check", "sam", "--deep") | {"bytes": 0} == {
        "agent": "sam", "partition": FileStore(cli.root, cli.clock.now).reader("sam").partition, "files": 2,
        "frames": 0, "commits": 2, "records": len(before.splitlines()), "agents": 1, "bytes": 0, "errors": [],
        "notes": [],
    }  # fmt: skip
    cli.ok("verify", "sam")


@pytest.mark.long
@pytest.mark.commands
def test_ctrl_c_before_anything_was_erased_says_so(cli: Line):
    """If Ctrl-C comes while the log is being opened, the message says that no record was written."""
    before = large(cli)
    assert interrupted(cli, AT_OPENING, "erase", "sam", "--seq", "10", "--yes", out=True) == "nothing was erased.\n"
    assert cli.ok("events", "sam", "--json") == before


@pytest.mark.parametrize("hook", [IN_AN_IMPORT, AT_THE_ARGUMENTS], ids=["import", "arguments"])
def test_ctrl_c_at_the_very_beginning_is_answered(cli: Line, hook):
    """During imports and the reading of arguments nothing was done yet, so Ctrl-C prints no message."""
    assert interrupted(cli, hook, "log", "seal", "sam") == ""


def test_ctrl_c_in_a_command_that_reads_prints_nothing(cli: Line):
    """After Ctrl-C only commands that write print a message about the log."""
    large(cli)
    assert interrupted(cli, AT_READING, "events", "sam") == ""


@pytest.mark.parametrize("hook", [AT_FIRST_PROGRESS, AT_THE_MANIFEST], ids=["progress", "manifest"])
def test_ctrl_c_while_erasing_is_safe(cli: Line, hook):
    """The next owner of the log finishes an interrupted erasure."""
    large(cli)
    said = interrupted(cli, hook, "erase", "sam", "--from", "10", "--to", "20", "--yes", out=True)
    assert "is completed when the agent is opened next" in said
    cli.ok("send", "sam", "hello")
    assert sum(record["payload"].get("erased", False) for record in cli.lines("events", "sam")) == 11
    assert cli.json("log", "check", "sam", "--deep")["errors"] == []


def test_a_bar_is_for_terminals_and_leaves_stdout_alone(cli: Line):
    """On a terminal a bar moves on stderr while stdout, a pipe, has only the result; without a terminal, stderr stays
    empty.
    """
    cli.ok("send", "sam", "I sail")
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "everlog.interfaces.cli.main", "--store", str(cli.root), "log", "check", "--all"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    run = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, text=True, check=True, env=env)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "checking sam (1 of 1)" in shown
    assert "100%" in shown
    assert run.stdout.startswith("sam: ")
    assert "\x1b" not in run.stdout
    assert cli("log", "check", "--all")[2] == ""
