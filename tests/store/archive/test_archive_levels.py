"""An archive under a constant load levels off: versions, files and caches have a bound, while it works and at rest."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from everlog.store.archive import Archive, IndexSizes
from everlog.store.archive import archive as archive_module
from everlog.store.archive.archive_constants import (
    COMPACT_WRITES,
    COMPACT_WRITES_MAX,
    REST_VERSIONS_MAX,
    TABLE_CACHE_BYTES_MAX,
    VERSIONS_KEPT,
)
from everlog.store.archive.archive_metadata import ServingTable
from everlog.store.archive.archive_table import Table, Tables
from everlog.store.archive.archive_writer import ArchiveWriter
from everlog.store.archive.table_files import table_files
from tests.support.store.archive_world import Chance, World, found, rows_of

BATCHES = 300
"""Batches in the deep suite."""
VERSIONS_MAX = COMPACT_WRITES + VERSIONS_KEPT + 4
"""Versions that a small table may have: the writes until a compaction, those that it keeps, and its own."""
FILES_A_VERSION = 6
"""Files that a version may have of its own: rows, marks of deletion, its manifest, its transaction and the index."""
QUERIES = ("cat", "river", "whale song", "")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store", shards=1)
    yield world
    world.close()


def sizes_of(archive: Archive) -> IndexSizes:
    """Return the sizes of the archive, which agree with a look at the folder."""
    sizes = archive.sizes()
    (table,) = archive._folder.glob("*.lance")
    assert sizes.versions == len(list(table.glob("_versions/*.manifest")))
    assert sizes.files == sum(path.is_file() for path in table.rglob("*"))
    return sizes


def results(archive: Archive, agents: list[str]) -> list[list[str]]:
    return [found(archive, query, agent, count=50) for agent in agents for query in QUERIES]


@pytest.mark.parametrize("batches", [80, pytest.param(BATCHES, marks=[pytest.mark.long, pytest.mark.storage])])
def test_versions_and_files_have_a_bound_while_it_works_and_at_rest(
    world: World, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    """After many batches of writes and searches the table has a bounded number of versions and files at every moment,
    fewer at rest, and all results are those of a table that was never compacted.
    """
    agents = ["sam", "ann", "tom"]
    chance = Chance(world, 19, agents)
    archive, reader = world.archive(), world.archive()
    most_versions = most_files = 0
    for number in range(batches):
        chance.act(rarely=False)
        archive.follow()
        agent = agents[number % 3]
        texts = found(archive, "cat", agent)
        assert number % 10 or texts == found(reader, "cat", agent)
        files = table_files(archive._folder / "memories-000001.lance")
        most_versions, most_files = max(most_versions, files.versions), max(most_files, files.files)
    assert sizes_of(archive).versions == files.versions
    assert COMPACT_WRITES < most_versions <= VERSIONS_MAX
    assert most_files <= FILES_A_VERSION * VERSIONS_MAX
    before = results(archive, agents)
    archive.rest()
    sizes = sizes_of(archive)
    assert sizes.versions <= 2 and sizes.files <= 3 * FILES_A_VERSION
    assert results(archive, agents) == before == results(reader, agents)
    assert archive.check() == []
    rows = rows_of(archive)
    archive.close(), reader.close()
    never = never_compacted(world, monkeypatch)
    assert results(never, agents) == before and rows_of(never) == rows
    never.close()


def never_compacted(world: World, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """Return an archive that followed the same log from its beginning and was never compacted."""
    with monkeypatch.context() as patch:
        patch.setattr(ArchiveWriter, "is_due", lambda *_: False)
        patch.setattr(archive_module, "FOLDER", "another")
        archive = world.archive()
        archive.follow()
    return archive


def test_an_index_at_rest_is_compacted_once(world: World) -> None:
    """Rest compacts a table with more versions than a few, and changes nothing when it is called again, or before
    there is a table.
    """
    archive = world.archive()
    archive.rest()
    assert not archive._folder.exists()
    for number in range(REST_VERSIONS_MAX - 2):  # the table has two versions before its first rows
        world.insert("sam", f"cat {number}")
        archive.follow()
    few = sizes_of(archive).versions
    archive.rest()
    assert sizes_of(archive).versions == few <= REST_VERSIONS_MAX
    for number in range(3):
        world.insert("sam", f"whale {number}")
        archive.follow()
    archive.rest()
    rested = archive._writer_opened().notes.serving()
    assert sizes_of(archive).versions <= 2
    archive.rest()
    assert archive._writer_opened().notes.serving() == rested
    world.insert("sam", "one more")
    archive.follow()
    assert len(found(archive, "", "sam", count=50)) == REST_VERSIONS_MAX + 2
    archive.close()


def test_no_reader_of_this_process_loses_its_files(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While versions are removed no thread reads: the lock of searches is held."""
    held: list[bool] = []
    archive = world.archive()
    removed = Table.remove_versions

    def remove(table: Table, keep: int) -> None:
        held.append(archive._reading._is_owned())  # type: ignore[attr-defined]
        removed(table, keep)

    monkeypatch.setattr(Table, "remove_versions", remove)
    monkeypatch.setattr("everlog.store.archive.archive_writer.COMPACT_WRITES", 3)
    for number in range(8):
        world.insert("sam", f"cat {number}")
        archive.follow()
        assert len(found(archive, "", "sam", count=50)) == number + 1
    assert held == [True, True]
    archive.close()


def test_a_reader_in_another_process_reads_the_newest_version(world: World) -> None:
    """A table that was opened before all its versions were removed is read as it is now, even if its version is lost
    between opening and reading.
    """
    archive, other = world.archive(), world.archive()
    for number in range(12):
        world.insert("sam", f"cat {number}")
        world.insert("ann", f"whale {number}")
        archive.follow()
        if number == 5:
            assert len(found(other, "", "sam", count=50)) == 6
            opened = Tables(archive._folder).open(1)
    archive.rest()
    assert opened.read().num_rows == 24
    assert len(found(other, "", "ann", count=50)) == len(found(other, "", "sam", count=50)) == 12
    archive.close(), other.close()


@pytest.mark.parametrize(("rows", "due"), [(0, COMPACT_WRITES), (10**9, COMPACT_WRITES_MAX)])
def test_a_compaction_is_due_after_a_bounded_number_of_writes(
    world: World, monkeypatch: pytest.MonkeyPatch, rows: int, due: int
) -> None:
    """A table of any size is compacted after COMPACT_WRITES_MAX writes at the latest."""
    archive = world.archive()
    world.insert("sam", "a cat")
    archive.follow()
    monkeypatch.setattr(Table, "count", lambda *_: rows)
    writer = archive._writer_opened()
    serving = ServingTable(1, "hashed", 16, 1, 1)
    at = [writes for writes in (due - 1, due) if writer.is_due(ServingTable(1, "hashed", 16, 1, 1, 0, 0, writes))]
    assert at == [due] and not writer.is_due(serving)
    archive.close()


def test_following_evicts_row_caches_that_grow(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row caches stay below their limit while they only grow by new records, without any new search."""
    archive = world.archive()
    agents = [f"agent {number}" for number in range(6)]
    for agent in agents:
        world.insert(agent, "the first cat")
    archive.follow()
    for agent in agents:
        found(archive, "cat", agent)
    limit = archive.sizes().row_cache_bytes + 5_000
    monkeypatch.setattr("everlog.store.archive.row_caches.ROW_CACHE_BYTES_MAX", limit)
    for number in range(60):
        world.insert(agents[number % 6], f"another cat {number} " * 20)
        archive.follow()
        assert archive.sizes().row_cache_bytes <= limit
    assert len(found(archive, "cat", agents[0], count=50)) == 11
    archive.close()


def test_an_empty_row_cache_has_a_size(world: World) -> None:
    """The caches of agents without rows count too, so that their number has a bound."""
    archive = world.archive()
    world.insert("sam", "the cat")
    archive.follow()
    found(archive, "cat", "sam")
    one = archive.sizes()
    found(archive, "cat", "ann")
    assert archive.sizes().row_caches == one.row_caches + 1
    assert archive.sizes().row_cache_bytes > one.row_cache_bytes
    archive.close()


def test_caches_of_the_table_have_limits(world: World) -> None:
    """LanceDB gets a limit for each of its caches, and they are in the sizes of the archive."""
    archive = world.archive()
    for number in range(5):
        world.insert("sam", f"cat {number}")
        archive.follow()
        found(archive, "cat", "sam")
    sizes = archive.sizes()
    assert 0 < sizes.table_cache_bytes < sizes.table_cache_bytes_max == 4 * TABLE_CACHE_BYTES_MAX
    assert archive.status().sizes == sizes
    archive.close()


def test_files_of_no_table_are_none(tmp_path: Path) -> None:
    """A folder that does not exist has no versions and no files."""
    assert table_files(tmp_path / "none.lance") == table_files(Path()) == (0, 0)
    assert np.all(np.array(table_files(tmp_path)) == 0)
