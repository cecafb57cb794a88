"""Fixtures of the tests of the command line; their parts are in `tests/support/cli/command_line.py`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli.command_line import Line, Made
from tests.support.http.served_line import served_line


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> Iterator[Line]:
    """Return a command line over an empty store; with `--served`, one whose commands go to a server."""
    monkeypatch.delenv("EVERLOG_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    if not pytestconfig.getoption("--served"):
        yield Line(tmp_path / "store", capsys)
        return
    with served_line(tmp_path / "store", capsys) as line:
        yield line


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return stores with which many tests begin, each made once."""
    return Made(tmp_path_factory.mktemp("made"))
