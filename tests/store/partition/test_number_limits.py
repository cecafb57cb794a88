"""P9 in files: numbers in names outgrow their padding and 32 bits, and a segment ends exactly at its size."""

from pathlib import Path

import msgspec
import pytest

from everlog.store import check
from everlog.store.partition.manifest import encode, load
from tests.contract.log_contract import NOW, Drafts
from tests.support.store.faulty_disk import FaultyDisk
from tests.support.store.memory_disk_store import AGENT, append, begun, fill, open_files, partition_on, store_on

SECOND = 1_000_000
BORDERS = [999_999, 2**31 - 1, 2**32 - 1, 2**53 - 1]


def renamed(disk: FaultyDisk, path: Path, name: str, content: bytes) -> None:
    """Give a file another name and content."""
    inode = disk.files[path.with_name(name)] = disk.files.pop(path)
    inode.content, inode.durable = bytearray(content), content
    disk.sync_dir(path.parent)


@pytest.mark.parametrize("border", BORDERS)
def test_p9_epochs_and_manifests_cross_their_borders(border: int) -> None:
    """After the millionth owner and the 2**32nd manifest, the highest number still counts, and the next is one
    higher.
    """
    disk, store = begun()
    fill(store, [("sam", 1)], Drafts())
    where = partition_on(disk)
    (epoch,) = where.numbers("epoch-")
    manifest = load(where)
    path = where.numbered("epoch-", epoch)
    renamed(disk, path, f"epoch-{border - 1:06d}", bytes(disk.files[path].content))
    forged = msgspec.structs.replace(manifest, number=border - 1)
    renamed(disk, where.numbered("manifest-", manifest.number), f"manifest-{border - 1:06d}", encode(forged))
    for number in range(border, border + 3):
        log = store_on(disk, segment_bytes_max=1).open(AGENT, "test")
        assert log.epoch == number
        append(log, "sam", Drafts(NOW + (number - border + 1) * SECOND).some(1))
        log.close()
        assert load(where).number == number
        assert where.numbers("epoch-") == [number]
    assert [record.seq for record in store_on(disk).reader(AGENT).read("sam")] == [1, 2, 3, 4]
    assert check(where).ok


def test_p9_a_segment_ends_exactly_at_its_size() -> None:
    """A file of at least the limit is closed before the next frame, a file of one byte less is not; the records are the
    same.
    """
    disk, store = begun()
    commits = fill(store, [("sam", 1), ("ann", 2)], Drafts())
    ((_, inode),) = open_files(disk)
    size = len(inode.content)
    for limit in range(size - 64, size + 65):
        after = disk.killed()
        log = store_on(after, segment_bytes_max=limit).open(AGENT, "test")
        records = append(log, "sam", Drafts(NOW + SECOND).some(1))
        assert len(open_files(after)) == (2 if limit <= size else 1)
        assert list(log.read("sam")) == [*commits[0], *records]
        assert check(partition_on(after)).ok
