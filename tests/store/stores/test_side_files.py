"""Small files next to the logs: only files are read."""

import os
import socket
from pathlib import Path

import pytest

from everlog.actors.a2a import remote_agents
from everlog.actors.erasure import job_results
from everlog.actors.mcp import accepted_tools, servers_toml
from everlog.actors.models import model_catalogue
from everlog.actors.models.model_catalogue import DESCRIPTIONS, catalogue_of
from everlog.events import BadInput, StoreError
from everlog.interfaces.common import own_presets
from everlog.interfaces.defaults import default_files
from everlog.interfaces.http.core import keys
from everlog.interfaces.http.letta import agent_labels
from everlog.interfaces.http.openai import client_conversations
from everlog.interfaces.http.webhooks import webhook_files
from everlog.store import read_whole
from everlog.store.base.store_constants import SIDE_FILES, SIDE_FOLDERS


def test_every_side_file_is_named_where_stores_are_copied() -> None:
    """The list of side files, by which a store is copied and foreign objects are told, has each file that a module
    keeps beside the logs.
    """
    files = {
        remote_agents.FILE, accepted_tools.FILE, servers_toml.SERVERS, model_catalogue.DESCRIPTIONS,
        model_catalogue.FOUND, default_files.STORE_FILE, keys.FILE,
    }  # fmt: skip
    folders = {
        job_results.JOBS_FOLDER, agent_labels.FOLDER, client_conversations.FOLDER, webhook_files.FOLDER,
        *(f"presets/{folder}" for folder in own_presets.FOLDERS.values()),
    }  # fmt: skip
    assert set(SIDE_FILES) == files
    assert SIDE_FOLDERS.keys() == folders


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
