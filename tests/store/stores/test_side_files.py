"""Small files next to the logs: only files are read."""

import os
import socket
from pathlib import Path

import pytest

from everlog.actors.models.model_catalogue import DESCRIPTIONS, catalogue_of
from everlog.events import BadInput, StoreError
from everlog.store import read_whole


def test_a_pipe_a_device_or_a_folder_in_place_of_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `models.toml` that is a named pipe is refused at once, and not waited for; so is every other path that is no
    file.
    """
    path = tmp_path / DESCRIPTIONS
    os.mkfifo(path)
    with pytest.raises(BadInput, match=r"models\.toml is a pipe, and a file is expected there"):
        catalogue_of(tmp_path)
    with pytest.raises(BadInput, match="/dev/zero is a device"):
        read_whole(Path("/dev/zero"))
    with pytest.raises(BadInput, match="is a folder"):
        read_whole(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(tmp_path)
        listening.bind("socket")
        with pytest.raises(StoreError):
            read_whole(Path("socket"))
    monkeypatch.setenv("EVERLOG_MODELS", "/dev/null")
    with pytest.raises(BadInput, match="/dev/null is a device"):
        catalogue_of(tmp_path)
    assert read_whole(tmp_path / "missing") is None
    path.unlink()
    path.write_bytes(b"content")
    assert read_whole(path) == b"content"
