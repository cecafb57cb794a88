"""A phrase that went through every path of a store is found nowhere after one `everlog erase --match --derived`."""

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.cli.canary_store import CANARY, MARKS, leftovers, tell
from tests.support.cli.command_line import Line, Made

ERASE = ("erase", "sam", "--match", CANARY, "--derived", "--yes")
AGENTS = ("sam", "tom", "kim", "ann", "gpt", "max")


@pytest.fixture
def told(cli: Line, made: Made, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Line:
    """Return a command line over a copy of the store of the phrase."""
    made.begin(cli, "canary", lambda line: tell(line, tmp_path_factory.mktemp("canary") / "outside"))
    return cli


def read_everything(cli: Line, outside: Path, agents: Sequence[str]) -> dict[str, str]:
    """Return the output of every command that shows or keeps words, by command; of these agents, if it is of one."""
    outside.mkdir(exist_ok=True)
    shown = {}
    for name in agents:
        for argv in (
            ["events", name], ["events", name, "--json"], ["context", name, "--full"], ["context", name, "--json"],
            ["memory", name], ["memory", name, "--json"], ["search", name, "cat", "--words"],
            ["search", name, "cat", "--words", "--in", "archival"], ["archive", "list", name],
            ["archive", "search", name, "cat"], ["archive", "list", name, "--json"], ["replay", name],
            ["replay", name, "--json"], ["diff", name, "1"], ["pressure", name], ["timers", name],
            ["verify", name, "--json"], ["configure", name], ["prompt", "show", name],
        ):  # fmt: skip
            code, out, err = cli(*argv)
            assert code in (0, 1), (argv, err)
            shown[" ".join(argv)] = out + err
        path = outside / f"{name}-{len(list(outside.iterdir()))}.everlog"
        cli.ok("export", name, str(path), "--with-sources")
        shown[f"export {name}"] = "\n".join(leftovers_of_export(path))
    for argv in (
        ["agents"], ["sources"], ["shared", "show", "team"], ["shared", "history", "team", "--json"],
        ["shared", "list"], ["events", "block:team", "--json"], ["events", "source:cats", "--json"],
        ["sql", "SELECT * FROM messages"], ["sql", "SELECT * FROM memory_history"], ["sql", "SELECT * FROM summaries"],
        ["report"], ["cost"], ["rerun", "sam", "--new-name", "gpt", "--report"], ["log", "stats", "--all"],
    ):  # fmt: skip
        code, out, err = cli(*argv)
        assert code in (0, 1), (argv, err)
        shown[" ".join(argv)] = out + err
    return shown


def leftovers_of_export(path: Path) -> list[str]:
    folder = path.with_suffix(".folder")
    folder.mkdir()
    (folder / "export.parquet").write_bytes(path.read_bytes())
    return [CANARY for _ in leftovers(folder)]


def saying(shown: dict[str, str]) -> list[str]:
    """Return the commands whose output holds a part of the phrase."""
    return [command for command, said in shown.items() if any(mark in said.lower().encode() for mark in MARKS)]


def assert_whole(cli: Line) -> None:
    for argv in (["log", "check", "--all", "--deep"], ["rebuild", "--all"], ["verify", "--all"], ["archive", "check"]):
        code, out, err = cli(*argv)
        assert code == 0, (argv, out, err)


@pytest.mark.parametrize(
    "agents", [AGENTS[:1], pytest.param(AGENTS, marks=[pytest.mark.long, pytest.mark.commands])], ids=["few", "all"]
)
def test_the_phrase_is_found_nowhere_afterwards(told: Line, tmp_path: Path, agents: Sequence[str]) -> None:
    """No file of the store and no command holds a part of the phrase; all else is whole, and unrelated words stay."""
    before = saying(read_everything(told, tmp_path / "a", agents))
    assert len(before) > 7 * len(agents), before
    held = {path.split("/")[0] for path in leftovers(told.root)}
    assert held - {"jobs"} == {"log", "archive"}  # a server keeps the result of the rerun as that of a job
    code, out, err = told(*ERASE)
    assert code == 0, err
    for stream in ("block:team", "source:cats", "kim", "tom", "ann", "gpt"):
        assert f"{stream} (seq " in out
    assert "files of `everlog export`" in out
    assert leftovers(told.root) == []
    assert saying(read_everything(told, tmp_path / "b", agents)) == []
    assert_whole(told)
    assert "I heard nothing of it." in told.ok("events", "max")
    assert told.fails(*ERASE)


def test_without_derived_the_copies_are_named(told: Line) -> None:
    """A plan names what stays, by stream and reason, and the number of it; a dry run changes nothing."""
    head = len(told.lines("events", "sam"))
    plan = told.json("erase", "sam", "--match", CANARY, "--dry-run")
    assert {one["stream"] for one in plan["records"]} == {"sam"}
    left = {one["stream"] for one in plan["left"]}
    assert left >= {"tom", "ann", "gpt", "kim", "block:team", "source:cats"}
    said = told.ok("erase", "sam", "--match", CANARY, "--dry-run")
    assert f"{len(plan['left'])} other records will still say the same; --derived erases them too:" in said
    assert len(told.lines("events", "sam")) == head


@pytest.mark.long
@pytest.mark.commands
def test_an_erasure_that_ended_before_the_index_is_finished_by_the_same_command(told: Line, monkeypatch) -> None:
    """The logs are erased and the search index is not: the same command finds no record, and clears the index."""
    with monkeypatch.context() as patched:
        patched.setattr("everlog.actors.erasure.erase_planned.catch_up", interrupt)
        code, _, err = told(*ERASE)
    assert (code, "is in the log" in err) == (130, True)
    assert {path.split("/")[0] for path in leftovers(told.root)} == {"archive"}
    assert "nothing is left to erase" in told.fails(*ERASE)
    assert leftovers(told.root) == []


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.long
@pytest.mark.commands
def test_p18_the_same_command_after_a_kill_leaves_no_copy(told: Line, tmp_path: Path) -> None:
    """After a SIGKILL of the command at some moment, the same command removes every copy, in the index too."""
    whole, moments = told.root, 4
    took = killed(told, tmp_path / "whole", None)
    assert leftovers(tmp_path / "whole") == []
    for moment in range(moments):
        told.root = whole
        killed(told, tmp_path / str(moment), took * (moment + 0.5) / moments)
        told.root = tmp_path / str(moment)
        told(*ERASE)
        assert leftovers(told.root) == [], moment
        assert_whole(told)
        shutil.rmtree(told.root)


def killed(line: Line, root: Path, after_s: float | None) -> float:
    """Run the command on a copy of the store in a process that is killed after a time; None: not. Return its time."""
    shutil.copytree(line.root, root)
    began = time.monotonic()
    command = [sys.executable, "-m", "everlog.interfaces.cli.main", "--store", str(root), *ERASE]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.wait(after_s) == 0
        except subprocess.TimeoutExpired:
            process.kill()
    return time.monotonic() - began
