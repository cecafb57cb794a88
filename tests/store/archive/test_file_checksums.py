"""The files of the index have checksums: a flipped bit in one is never a search result."""

from pathlib import Path

import pytest

from everlog.events import ArchiveError
from everlog.store import ArchiveQuery
from everlog.store.archive import Archive
from tests.support.seeds import few_and_all, pick
from tests.support.store.archive_world import END, World


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return the folder of the table of an index that was followed twice and closed."""
    world = World(tmp_path / "store")
    for text in ("the harbour is deep", "the mast is of oak"):
        world.insert("sam", text)
        archive = world.archive()
        archive.follow()
        assert archive.check() == []
        archive.close()
    world.close()
    return next((tmp_path / "store" / "archive").glob("*.lance"))


def faults_of(archive: Archive) -> list[str]:
    """Return what the check finds, or the error that ends it."""
    try:
        return archive.check()
    except ArchiveError as error:
        return [str(error)]


@pytest.mark.parametrize("count", few_and_all(4, part="damage"))
def test_a_flipped_bit_in_a_file_of_the_index_is_found(table: Path, count: int | None) -> None:
    """Each flipped bit of each data file is a finding of the check or an error, and an error of a search in a new
    process; the rebuild cures it.
    """
    world = World(table.parents[1])
    (path, *_) = sorted((table / "data").iterdir())
    whole = path.read_bytes()
    for bit in pick(range(0, len(whole) * 8, 5), count, label="index bits"):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(flipped))
        archive = world.archive()
        with pytest.raises(ArchiveError, match="archive rebuild"):
            archive.search(ArchiveQuery("sam", "harbour", END, END))
        assert any(path.name in fault or "archive rebuild" in fault for fault in faults_of(archive))
        archive.close()
    archive = world.archive()
    archive.rebuild()
    assert archive.check() == []
    assert archive.search(ArchiveQuery("sam", "harbour", END, END)).results[0].text == "the harbour is deep"
    archive.close()
