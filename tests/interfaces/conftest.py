"""The fixtures of the tests of the command line; what they are made of is in `line.py`."""

from pathlib import Path

import pytest

from tests.support.cli.command_line import Line


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Line:
    """The command line over an empty store."""
    monkeypatch.delenv("EVERLOG_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return Line(tmp_path / "store", capsys)
