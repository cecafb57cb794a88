"""A store whose configuration is a folder, a pipe, a device or endless is refused at once, in words."""

import os
from pathlib import Path

import pytest

from everlog.events import CorruptLog, StoreError
from everlog.store import FileStore
from tests.store.conftest import now


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "words"),
    [(Path.mkdir, "Is a directory"), (a_pipe, "no file but a pipe"), (a_device, "no file but a device")],
)
def test_a_configuration_that_is_no_file_is_refused(tmp_path: Path, make: object, words: str) -> None:
    """A pipe is not waited for, and a device is not read until the memory is full; nothing is made."""
    make(tmp_path / "everlog.json")  # type: ignore[operator]
    for opening in (lambda: FileStore(tmp_path, now), lambda: FileStore.create(tmp_path, now, "new")):
        with pytest.raises(StoreError, match=words):
            opening()
    assert [path.name for path in tmp_path.iterdir()] == ["everlog.json"]


def test_a_configuration_of_terabytes_is_damage(tmp_path: Path) -> None:
    """A file of a terabyte of zeros is called damaged, and is not read whole."""
    with (tmp_path / "everlog.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(CorruptLog, match=r"everlog\.json"):
        FileStore(tmp_path, now)
