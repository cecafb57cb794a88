"""Fixtures of the tests of the command line; their parts are in `tests/support/cli/command_line.py`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli.command_line import Line, Made
from tests.support.http.served_line import served_line


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--served`, keep the tests of the command line only: the others would do the same again."""
    if not config.getoption("--served"):
        return
    kept = [item for item in items if "cli" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=[item for item in items if "cli" not in getattr(item, "fixturenames", ())])
    items[:] = kept


@pytest.fixture
def cli(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    made: Made,
) -> Iterator[Line]:
    """Return a command line over an empty store; with `--served`, one whose commands go to a server.

    A test marked `beside_store` with a reason is skipped then.
    """
    monkeypatch.delenv("EVERLOG_STORE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    if not request.config.getoption("--served"):
        line = Line(tmp_path / "store", capsys)
        line.made = made
        yield line
        return
    local = request.node.get_closest_marker("beside_store")
    if local is not None:
        pytest.skip(local.args[0])
    with served_line(tmp_path / "store", capsys, beside=True) as line:
        line.made = made
        yield line


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return stores with which many tests begin, each made once."""
    return Made(tmp_path_factory.mktemp("made"))
