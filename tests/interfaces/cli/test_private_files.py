"""Commands leave no file that other users of the machine can read."""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from everlog.actors.api import open_system
from tests.support.store.open_paths import open_paths

ROOT = Path(__file__).parents[3]

COMMANDS = (
    "create sam",
    "send sam Hello",
    "create ann --placement shared",
    "send ann Hello",
    "fork sam --new-name kid",
    "shared create plan Sail",
    "load sam README.md",
    "archive insert sam Bergen",
    "archive search sam Bergen",
    "log seal --all",
    "export sam {outside}/sam.everlog",
    "report --html {outside}/report.html",
    "log check --all --deep",
)


def everlog(store: Path, *words: str, umask: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own under that umask."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("EVERLOG_")}
    return subprocess.run(
        [sys.executable, "-m", "everlog.interfaces.cli.main", *words, "--store", str(store)],
        cwd=ROOT, env={**kept, "PYTHONPATH": str(ROOT)}, text=True, capture_output=True, check=False, umask=umask,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.storage
def test_all_files_of_commands_are_private(tmp_path: Path) -> None:
    """Under umask 0 every path of a store with all kinds of logs, an archive and sealed files is closed to other
    users, and so are exports and reports.
    """
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    for line in COMMANDS:
        done = everlog(tmp_path / "store", *line.format(outside=outside).split())
        assert done.returncode == 0, (line, done.stderr)
        assert "Other users" not in done.stderr
    assert open_paths(tmp_path / "store") == {}
    assert open_paths(outside) == {}
    assert len(list(outside.iterdir())) == 2


def test_a_command_sets_the_umask_of_its_process(tmp_path: Path) -> None:
    """A store that a command makes under umask 0 is closed to other users, and `log check` has nothing to say."""
    assert everlog(tmp_path / "store", "create", "sam").returncode == 0
    assert open_paths(tmp_path / "store") == {}
    assert "Other users" not in everlog(tmp_path / "store", "log", "check", "--all").stderr


@pytest.mark.long
@pytest.mark.storage
def test_log_check_names_a_store_that_was_made_wider(tmp_path: Path) -> None:
    """The warning has the command that closes the store; the log is whole, so the exit code is 0. Opening the store for
    writing changes no mode.
    """
    store = tmp_path / "store"
    assert everlog(store, "create", "sam").returncode == 0
    store.chmod(0o755)
    assert everlog(store, "create", "ann").returncode == 0
    assert stat.S_IMODE(store.stat().st_mode) == 0o755
    checked = everlog(store, "log", "check", "--all")
    assert checked.returncode == 0
    assert f"warning: Other users of this machine may enter the store {store}" in checked.stderr
    assert f"`chmod -R go= {store}`" in checked.stderr


def test_a_program_keeps_its_umask(tmp_path: Path) -> None:
    """A program that uses the Python API has its own umask afterwards, and no other user gets into its store."""

    async def talk() -> None:
        async with open_system(tmp_path / "store", runtime="local") as system:
            agent = await system.agent("sam")
            await agent.send("Hello")

    before = os.umask(0)
    try:
        asyncio.run(talk())
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert open_paths(tmp_path / "store") == {}
