"""Fixtures of the tests of the command line; their parts are in `tests/support/cli/command_line.py`."""

from pathlib import Path

import pytest

from tests.support.cli.command_line import Line, Made


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Line:
    """Return a command line over an empty store."""
    monkeypatch.delenv("EVERLOG_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return Line(tmp_path / "store", capsys)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return stores with which many tests begin, each made once."""
    return Made(tmp_path_factory.mktemp("made"))
