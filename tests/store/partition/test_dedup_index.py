"""Event ids are remembered in memory and in sealed files, and a sealed file is read for them only if necessary."""

from everlog.events import uuid7
from everlog.store.base.arrow_schema import id_bytes
from everlog.store.partition.dedup_index import DedupIndex

SECOND = 1_000_000
NOW = 1_700_000_000 * SECOND


def key(at: int) -> bytes:
    return id_bytes(uuid7(at, 7))


def sealed(times: list[int], reads: list[int]) -> DedupIndex:
    """Return an index of commits 1, 2 ... with one id each, whose file was sealed; `reads` gets an entry for each read
    of that file.
    """
    ids = {key(at): number for number, at in enumerate(times, 1)}

    def load() -> dict[bytes, int]:
        reads.append(1)
        return ids

    memory = DedupIndex()
    memory.note(ids)
    memory.begin_generation(len(times), NOW)
    memory.seal(1, len(times), max(times), load, NOW)
    return memory


def test_a_file_that_was_just_sealed_is_not_read_for_what_was_on_its_way() -> None:
    """Ids a little older than the newest are looked up in memory; for an old id the file is read once."""
    reads: list[int] = []
    times = [NOW - 600 * SECOND, NOW - 30 * SECOND, NOW]
    memory = sealed(times, reads)
    assert memory.find(key(NOW - 30 * SECOND)) == 2
    assert memory.find(key(NOW - 29 * SECOND)) is None
    assert not reads
    assert memory.find(key(NOW - 600 * SECOND)) == 1
    assert memory.find(key(NOW - 599 * SECOND)) is None
    assert len(reads) == 1


def test_files_that_are_sealed_together_again_keep_what_is_recent() -> None:
    """Compaction makes one file of two: the ids of its last minute stay in memory, older ids are in the file."""
    reads: list[int] = []
    memory = sealed([NOW - 90 * SECOND, NOW - 50 * SECOND], reads)
    memory.note({key(NOW): 3})
    memory.begin_generation(3, NOW)
    memory.seal(1, 3, NOW, lambda: {key(NOW - 90 * SECOND): 1}, NOW)
    assert memory.find(key(NOW - 50 * SECOND)) == 2
    assert memory.find(key(NOW)) == 3
    assert not reads
    assert memory.find(key(NOW - 90 * SECOND)) == 1


def test_ids_of_files_are_kept_for_a_minute_only() -> None:
    """Sealing a later file drops the ids of files that are more than a minute older: a log that seals every two minutes
    keeps those of one file, however many it has. Older ids are found in their files.
    """
    reads: list[int] = []
    memory = DedupIndex()
    for number in range(1, 6):
        at = NOW + number * 120 * SECOND
        ids = {key(at): number}
        memory.note(ids)
        memory.begin_generation(number, at)
        memory.seal(number, number, at, lambda ids=ids, number=number: reads.append(number) or ids, at)
        assert [len(list(one.recent.items())) for one in memory._closed] == [0] * (number - 1) + [1]
    assert memory.find(key(NOW + 600 * SECOND)) == 5 and not reads
    assert memory.find(key(NOW + 240 * SECOND)) == 2 and reads == [5, 4, 3, 2]


def test_a_file_that_was_sealed_by_an_owner_before_is_read() -> None:
    """No id of the file is in memory, so the file is read."""
    memory = DedupIndex()
    memory.seal(1, 1, NOW, lambda: {key(NOW): 1}, NOW)
    assert memory.find(key(NOW)) == 1
    assert memory.find(key(NOW - SECOND)) is None
