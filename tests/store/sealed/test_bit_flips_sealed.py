"""P4 in sealed segments: Parquet alone reads most flipped bits as other data; a sealed segment never does."""

import random
from pathlib import Path

import pytest

from everlog.events import CorruptLog
from everlog.store import check
from tests.contract.log_contract import NOW, Drafts
from tests.support.seeds import few_and_all, pick
from tests.support.store.faulty_disk import FaultyDisk
from tests.support.store.memory_disk_store import AGENT, append, begun, fill, partition_on, store_on

AGENTS = ("sam", "ann")
FLIPS = 400
SECOND = 1_000_000


@pytest.fixture(scope="module")
def sealed() -> FaultyDisk:
    """Return a disk with one sealed segment of many commits, and an open one after it."""
    disk, store = begun(segment_bytes_max=2000)
    fill(store, [(AGENTS[number % 2], 1 + number % 3) for number in range(12)], Drafts())
    log = store.open(AGENT, "seal")
    log.seal()
    append(log, "sam", Drafts(NOW + SECOND).some(1))
    log.close()
    return disk


def parquet(disk: FaultyDisk) -> Path:
    (path,) = [path for path in disk.files if path.suffix == ".parquet"]
    return path


def told(disk: FaultyDisk, agent_id: str) -> list | str:
    """Return the records of an agent, or the error."""
    try:
        return list(store_on(disk).reader(AGENT).read(agent_id))
    except CorruptLog as error:
        return str(error)


def opened(disk: FaultyDisk) -> str:
    """Return the error of the next owner; empty if it opens the log."""
    try:
        store_on(disk).open(AGENT, "after").close()
    except CorruptLog as error:
        return str(error)
    return ""


def assert_never_wrong(disk: FaultyDisk, path: Path, right: dict[str, list | str]) -> bool:
    """Check that `check` finds the damage, and that reads return the right records, or CorruptLog with the file's name.

    Return True if a read failed.
    """
    was = bytes(disk.files[path].content)
    assert any(str(path) in error for error in check(partition_on(disk)).errors)
    answers = [(told(disk, agent_id), right[agent_id]) for agent_id in AGENTS]
    assert all(answer == wanted or str(path) in answer for answer, wanted in answers)
    assert opened(disk) == "" or str(path) in opened(disk)
    assert bytes(disk.files[path].content) == was
    return any(isinstance(answer, str) for answer, _ in answers)


@pytest.mark.parametrize("count", few_and_all(30, part="storage"))
def test_p4_a_flipped_bit_in_a_sealed_segment_is_never_read_as_data(sealed: FaultyDisk, count: int | None) -> None:
    """With any of many single bits flipped, no read returns other records: it raises CorruptLog, and no byte
    changes.
    """
    path = parquet(sealed)
    right = {agent_id: told(sealed, agent_id) for agent_id in AGENTS}
    assert [len(records) for records in right.values()] == [13, 12]
    chance = random.Random(400)
    size = len(sealed.files[path].content)
    refused = 0
    bits = pick(chance.sample(range(size * 8), FLIPS), count, label="flips")
    for bit in bits:
        disk = sealed.killed()
        disk.files[path].content[bit // 8] ^= 1 << bit % 8
        refused += assert_never_wrong(disk, path, right)
    assert refused > len(bits) // (2 if count is None else 4)


def test_p4_a_sealed_segment_that_was_cut_short_or_is_gone_is_an_error(sealed: FaultyDisk) -> None:
    """At any shorter length, and without the file, no read ends as if it were complete."""
    path = parquet(sealed)
    right = {agent_id: told(sealed, agent_id) for agent_id in AGENTS}
    size = len(sealed.files[path].content)
    for length in (*range(0, size, 101), size - 1):
        disk = sealed.killed()
        del disk.files[path].content[length:]
        assert assert_never_wrong(disk, path, right)
    disk = sealed.killed()
    disk.remove(path)
    assert all(str(path) in told(disk, agent_id) for agent_id in AGENTS)
    assert not check(partition_on(disk)).ok
