"""--server and its variables: what they choose, what they refuse, and that a key is never an argument."""

from pathlib import Path

import pytest

from everlog.interfaces.cli.command_parser import COMMANDS
from everlog.interfaces.client.server_address import ServerAddress
from everlog.interfaces.client.server_channel import BlockingChannel
from everlog.interfaces.common.server_choice import FILES_ONLY, WITHOUT_STORE, key_in
from tests.support.http.served_commands import FOLLOWED, LIVES, MEMORY, PROMPT, READING, TALK
from tests.support.http.served_line import ServedLine, served_line

SAM = ("send", "sam", "Hello")


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Return a command line whose commands go to a server."""
    for name in ("EVERLOG_STORE", "EVERLOG_SERVER", "EVERLOG_KEY", "EVERLOG_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    with served_line(tmp_path / "store", capsys) as line:
        yield line


def test_the_lists_name_commands_that_exist():
    """Each command that is refused with --server exists."""
    names = {command.name for command in COMMANDS}
    assert names >= FILES_ONLY
    assert names | {""} >= WITHOUT_STORE


def test_every_command_that_a_server_carries_out_is_tried():
    """The tables name all commands except those that look after files or processes of a store."""
    carried_out = {command.name for command in COMMANDS} - FILES_ONLY - WITHOUT_STORE
    tried = [FOLLOWED, *READING, *(words for words, _ in (*TALK, *MEMORY, *PROMPT, *LIVES))]
    assert not [name for name in carried_out if not any(f"{words} ".startswith(f"{name} ") for words in tried)]


@pytest.mark.parametrize(
    "words",
    ["log check --all", "store check", "cluster drain n1", "up", "down", "doctor", "config", "archive rebuild", "tour"],
)
def test_commands_of_the_machine_are_refused_in_one_clear_error(words: str, line: ServedLine):
    """A command that looks after files or processes says that a server does not carry it out."""
    assert "is not carried out by a server" in line.fails(*words.split())


def test_an_export_of_the_whole_store_is_refused(line: ServedLine, tmp_path: Path):
    """A copy of the whole store is made where the store is, and no file is left."""
    line.ok("create", "sam")
    assert "is done where the store is" in line.fails("export", "--all", str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def test_the_variable_chooses_the_server_and_a_store_comes_before_it(line: ServedLine, monkeypatch, tmp_path: Path):
    """EVERLOG_SERVER is used without --server; --store wins over it; both options together are bad usage."""
    from everlog.interfaces.cli.main import main

    line.ok(*SAM)
    monkeypatch.setenv("EVERLOG_SERVER", line.address)
    assert main(["memory", "sam"], world=line.world) == 0
    assert main(["--store", str(tmp_path / "other"), "memory", "sam"], world=line.world) == 1
    assert main(["--store", "x", "--server", line.address, "memory", "sam"], world=line.world) == 2
    assert main(["keys", "list"], world=line.world) == 1
    assert main(["completion", "bash"], world=line.world) == 0


def test_certificates_are_read_for_encrypted_connections_only(monkeypatch: pytest.MonkeyPatch):
    """An http:// address needs none, so that a command does not wait for them; an https:// address does."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    BlockingChannel(ServerAddress("http://store.example:8283")).close()
    with pytest.raises(FileNotFoundError):
        BlockingChannel(ServerAddress("https://store.example"))


def test_options_of_the_process_of_the_agents_are_refused(line: ServedLine, tmp_path: Path):
    """Functions, grants and endpoints belong to the server: nothing is sent."""
    tools = tmp_path / "tools.py"
    tools.write_text("")
    for option in (["--tools", str(tools)], ["--base-url", "http://x"], ["--take-over"]):
        assert line(*SAM, *option)[0] == 1
    assert "no agents" in line.fails("memory", "sam")


def test_the_key_comes_from_the_variable_or_a_file(tmp_path: Path):
    """EVERLOG_KEY comes first, then the file of EVERLOG_KEY_FILE; there is no option for a key."""
    file = tmp_path / "key"
    file.write_text("from-file\n")
    assert key_in({"EVERLOG_KEY": "from-variable", "EVERLOG_KEY_FILE": str(file)}) == "from-variable"
    assert key_in({"EVERLOG_KEY_FILE": str(file)}) == "from-file"
    assert key_in({}) is None
