"""docs/examples/town.py in a cluster: the same day, tomorrow."""

import asyncio
from pathlib import Path

import pytest

from tests.support.town_day import INVITATION, town

pytestmark = pytest.mark.ray


@pytest.mark.long
@pytest.mark.cluster
def test_the_day_is_lived_in_a_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The program prints the same talk of the town as in one process: only the date is another one."""
    printed = asyncio.run(town().main(str(folder), "ray"))
    assert f"12:10  cafe       Isabella: {INVITATION}" in printed
    assert any(line.endswith("Ayesha heard of the party from Klaus") for line in printed)
    assert any("Klaus thinks: Klaus moved from Oak Street to Mill Lane" in line for line in printed)
    assert "\n".join(printed) in capsys.readouterr().out
