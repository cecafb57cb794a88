"""Builds are the same twice, and a store of the code before opens with the code of today."""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.tidy.parsed_source import PACKAGE, ROOMS, ROOT
from tests.tidy.test_wheel import build, environment_with, in_user_environment

BUILT = (*ROOMS, PACKAGE)
FILES = ("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")
EPOCH = "1800000000"


def copy_of_the_project(folder: Path) -> Path:
    """Copy what a build reads, without what running leaves behind. Return the folder."""
    folder.mkdir(parents=True)
    for name in BUILT:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_a_build_is_the_same_twice(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two copies of the project, in folders of other names and with files of other times, give the same bytes."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    digests = []
    for number, place in enumerate(("here", "at/another/place")):
        tree = copy_of_the_project(tmp_path / place)
        for path in tree.rglob("*"):
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number), follow_symlinks=False)
        digests.append(hashlib.sha256(build(kind, tree, tmp_path / f"made{number}").read_bytes()).hexdigest())
    assert digests[0] == digests[1]


def test_a_build_of_another_day_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SOURCE_DATE_EPOCH is what the times in a wheel come from: another value gives other bytes."""
    tree = copy_of_the_project(tmp_path / "tree")
    made = []
    for epoch in (EPOCH, "1700000000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        made.append(build("wheel", tree, tmp_path / epoch).read_bytes())
    assert made[0] != made[1]


def tree_before(folder: Path) -> Path:
    """Unpack the project as it was one commit ago. Skip the test where the history is not at hand."""
    run = subprocess.run(["git", "-C", ROOT, "archive", "HEAD~1"], capture_output=True, check=False)
    if run.returncode:
        pytest.skip(f"the commit before this one is not here: {run.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(run.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.long
@pytest.mark.commands
def test_a_store_of_the_wheel_before_opens(tmp_path: Path) -> None:
    """This tree says of a store what the wheel of the commit before says, which wrote it, and continues it."""
    before = environment_with(build("wheel", tree_before(tmp_path / "tree"), tmp_path / "built"), tmp_path / "before")
    store = str(tmp_path / "store")

    def old(*words: str) -> str:
        return in_user_environment(before, f"{before}/bin/python", "-m", PACKAGE, "--store", store, *words)

    def new(*words: str) -> str:
        command = [sys.executable, "-m", PACKAGE, "--store", store, *words]
        known = {**os.environ, "PYTHONPATH": str(ROOT), "EVERLOG_RUNTIME": "local"}
        run = subprocess.run(command, cwd=tmp_path, env=known, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{words}: {run.stdout}{run.stderr}"
        return run.stdout

    origin = in_user_environment(before, f"{before}/bin/python", "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)")
    assert Path(origin.strip()).is_relative_to(before), "another everlog was imported"
    old("send", "sam", "Hi, my name is Chad and I sail")
    old("send", "sam", "Remind me to buy bread in 2 hours")
    old("fork", "sam", "--new-name", "ann")
    old("send", "ann", "What is my name?")
    rows = ("sql", "SELECT agent_id, messages FROM agents ORDER BY agent_id")
    questions = [("events", "sam"), ("context", "sam"), ("context", "ann"), rows]
    assert [new(*words) for words in questions] == [old(*words) for words in questions]
    new("verify", "--all")
    assert "Chad" in new("send", "sam", "What is my name?")
    new("log", "check", "--all")
