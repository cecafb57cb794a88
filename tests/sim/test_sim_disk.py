"""The simulated disk fails as documented and not worse: synced data survives."""

import errno
import random
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from tests.sim.sim_disk import SECTOR_BYTES, Platter, SimDisk

FOLDER = Path("/log")
FILE = FOLDER / "file"
WORDS = bytes(range(256)) * 8


class Open:
    """A gate that lets every call through, except the one call that is to fail."""

    def __init__(self) -> None:
        self.failing = ""

    def __call__(self, operation: str, path: Path) -> AbstractContextManager[None]:
        if operation == self.failing:
            self.failing = ""
            raise OSError(errno.EIO, "told to fail")
        return nullcontext()

    def torn(self, operation: str) -> bool:
        return False


def begun(seed: int) -> tuple[Platter, SimDisk, Open]:
    """Return a disk with one folder."""
    platter, gate = Platter(random.Random(seed)), Open()
    disk = SimDisk(platter, gate)
    disk.make_dirs(FOLDER)
    return platter, disk, gate


@pytest.mark.parametrize("seed", range(50))
def test_what_was_synced_survives_a_power_loss(seed: int) -> None:
    """A synced file in a synced folder survives unchanged, whatever is written later without a sync."""
    platter, disk, _ = begun(seed)
    file = disk.create(FILE)
    file.write([WORDS], 0)
    file.sync()
    disk.sync_dir(FOLDER)
    file.write([WORDS], len(WORDS))
    platter.power_loss()
    assert disk.read(FILE, 0, len(WORDS)) == WORDS


def test_what_was_not_synced_survives_in_any_part() -> None:
    """Over many power losses each sector, the length and the name are sometimes kept and sometimes lost."""
    found = set()
    for seed in range(300):
        platter, disk, _ = begun(seed)
        disk.create(FILE).write([WORDS], 0)
        platter.power_loss()
        if disk.exists(FILE):
            content = disk.read(FILE)
            whole = tuple(
                WORDS[at : at + SECTOR_BYTES] == content[at : at + SECTOR_BYTES] for at in range(0, 2048, 512)
            )
            found.add((whole, len(content) == len(WORDS)))
        else:
            found.add(((), False))
    assert ((), False) in found
    assert ((True,) * 4, True) in found
    assert any(whole[:2] == (False, True) for whole, _ in found)
    assert any(whole[:2] == (True, False) and same_length for whole, same_length in found)


def test_a_failed_sync_is_never_made_good() -> None:
    """After a failed sync the next sync succeeds, and the bytes are still not on the platter."""
    lost = 0
    for seed in range(50):
        platter, disk, gate = begun(seed)
        file = disk.create(FILE)
        disk.sync_dir(FOLDER)
        file.write([WORDS], 0)
        gate.failing = "sync"
        with pytest.raises(OSError, match="told to fail"):
            file.sync()
        assert disk.read(FILE) == WORDS
        file.sync()
        platter.power_loss()
        lost += disk.read(FILE) != WORDS
    assert lost == 50


def test_a_dead_process_releases_its_locks() -> None:
    """A lock excludes other processes until its process closes the file or dies."""
    platter, disk, gate = begun(1)
    other = SimDisk(platter, gate)
    assert disk.create(FILE).lock() and not other.open(FILE).lock()
    assert other.is_locked(FILE)
    disk.die()
    assert not other.is_locked(FILE) and other.open(FILE).lock()
