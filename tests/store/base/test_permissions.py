"""Files of a store are closed to other users, whatever the umask of the process."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.events import BadInput
from everlog.store import RealDisk, exposure, open_private, restrict_process, write_whole
from everlog.store.archive.archive_lock import locked, try_lock
from everlog.store.archive.archive_metadata import ArchiveMetadata
from everlog.store.base.disk import publish
from everlog.store.base.permissions import MODE_VARIABLE
from tests.support.store.open_paths import open_paths


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set the umask of this process for a test."""
    before = os.umask(request.param)
    try:
        yield request.param
    finally:
        os.umask(before)


def make_all(root: Path) -> ArchiveMetadata:
    """Create a file or folder by each function that creates one. Return the open database: its journal is there until
    it is closed.
    """
    disk = RealDisk()
    disk.make_dirs(root / "log" / "shard-000")
    disk.create(root / "log" / "frames").close()
    assert publish(disk, root / "log" / "published", b"content", "token")
    write_whole(root / "other" / "sidecar", b"content")
    with locked(root / "lock"), try_lock(root / "tried"), open_private(root / "export", "xb"):
        pass
    metadata = ArchiveMetadata(root / "archive.sqlite")
    with metadata.change():
        assert (root / "archive.sqlite-wal").exists()
    sqlite3.connect(root / "archive.sqlite").close()
    return metadata


def test_every_new_path_is_private(tmp_path: Path, umask: int) -> None:
    """Every file and folder that the store creates, SQLite's journals included, is closed to other users."""
    database = make_all(tmp_path / "store")
    assert open_paths(tmp_path / "store") == {}
    assert exposure(tmp_path / "store") == ""
    database.close()


def test_a_store_of_a_group(tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With EVERLOG_STORE_MODE=group every path is open to the group, for writing too, and to no other user."""
    monkeypatch.setenv(MODE_VARIABLE, "group")
    database = make_all(tmp_path / "store")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "store").rglob("*")}
    assert modes == {0o660, 0o770}
    assert exposure(tmp_path / "store") == ""
    database.close()


def test_an_unknown_mode_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt EVERLOG_STORE_MODE is an error with both values before anything is written; for the umask it counts
    as `private`.
    """
    monkeypatch.setenv(MODE_VARIABLE, "gruop")
    with pytest.raises(BadInput, match=r"'gruop'; expected `private`.*or `group`"):
        RealDisk().make_dirs(tmp_path / "store")
    assert not (tmp_path / "store").exists()
    before = os.umask(0)
    try:
        restrict_process()
        assert os.umask(0) == 0o077
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mode", "umask_before", "umask_after"), [
    ("", 0o000, 0o077), ("", 0o022, 0o077), ("private", 0o177, 0o177), ("group", 0o077, 0o007),
])  # fmt: skip
def test_the_umask_of_our_processes(
    mode: str, umask_before: int, umask_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of everlog denies other users everything, keeps what a stricter user denies, and opens new files to the
    group only on request.
    """
    monkeypatch.setenv(MODE_VARIABLE, mode)
    before = os.umask(umask_before)
    try:
        restrict_process()
        assert os.umask(0) == umask_after
    finally:
        os.umask(before)


def test_a_store_that_was_made_wider_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning names the folder, its mode and the command that closes it; opening a store changes no mode."""
    make_all(tmp_path / "store")
    (tmp_path / "store").chmod(0o750)
    RealDisk().make_dirs(tmp_path / "store" / "log")
    said = exposure(tmp_path / "store")
    assert f"{tmp_path / 'store'}: its mode is 0750, expected 0700" in said
    assert f"`chmod -R go= {tmp_path / 'store'}`" in said
    monkeypatch.setenv(MODE_VARIABLE, "group")
    assert exposure(tmp_path / "store") == ""
    (tmp_path / "store").chmod(0o755)
    assert "chmod -R o=" in exposure(tmp_path / "store")
