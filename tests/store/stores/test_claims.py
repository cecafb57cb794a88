"""Claims: one holder at a time by the time that each process sees pass, and no clock is compared."""

from pathlib import Path

import pytest

from everlog.store.object.bucket_side_files import BucketSideFiles
from everlog.store.stores.claims import BEAT_S, EXPIRES_S, Claim
from everlog.store.stores.side_files import FOLDER_FILES, SideFiles
from tests.contract.test_bucket_logs import ROOT, memory_bucket


class Machine:
    """A process with a clock of its own and a claim."""

    def __init__(self, files: SideFiles, path: Path, name: str, start_s: float) -> None:
        self.now_s = start_s
        self.claim = Claim(files, path, name, f"process of {name}", lambda: self.now_s)


@pytest.fixture(params=["folder", "bucket"])
def machines(request: pytest.FixtureRequest, tmp_path: Path) -> list[Machine]:
    """Return three machines whose clocks are hours apart."""
    in_folder = request.param == "folder"
    files = FOLDER_FILES if in_folder else BucketSideFiles(memory_bucket(), ROOT)
    path = (tmp_path if in_folder else ROOT) / "claims" / "cluster"
    return [Machine(files, path, name, start) for name, start in (("one", 9e4), ("two", 0.0), ("three", 5e3))]


def test_a_claim_that_is_kept_is_never_taken(machines: list[Machine]) -> None:
    """While the holder keeps the claim, others are told who has it, however long they wait."""
    one, two, _ = machines
    assert one.claim.take() == ""
    for _ in range(10 * int(EXPIRES_S / BEAT_S)):
        assert two.claim.take() == "process of one"
        two.now_s += BEAT_S
        assert one.claim.keep()
    assert one.claim.take() == ""


def test_a_holder_that_has_gone_is_replaced_by_one_process(machines: list[Machine]) -> None:
    """Others that see no change for EXPIRES_S seconds take the claim, one of them; the old holder finds that out, and
    what it frees then stays taken.
    """
    one, two, three = machines
    assert one.claim.take() == ""
    for waits in (0.0, EXPIRES_S / 2, EXPIRES_S / 2 - 0.001):
        for other in (two, three):
            other.now_s += waits
            assert other.claim.take() == "process of one"
    two.now_s += 1
    three.now_s += 1
    assert two.claim.take() == ""
    assert three.claim.take() == "process of two"
    assert not one.claim.keep()
    one.claim.free()
    assert three.claim.take() == "process of two"
    assert two.claim.keep()


def test_a_claim_that_is_freed_is_taken_at_once(machines: list[Machine]) -> None:
    """A claim that its holder frees is anyone's, and the former holder does not keep it."""
    one, two, _ = machines
    assert one.claim.take() == ""
    one.claim.free()
    assert not one.claim.keep()
    assert two.claim.take() == ""
    assert one.claim.take() == "process of two"
