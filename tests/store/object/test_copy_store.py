"""A store is copied between a folder and a bucket, whole or not at all, however often the copy is interrupted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from everlog.events import BadInput, CorruptLog, Record, StoreError, UsageError
from everlog.store import FileStore
from everlog.store.base.disk import Disk, RealDisk
from everlog.store.copy import copy_store as copying
from everlog.store.copy.copy_store import CopyReport, copy_store
from everlog.store.object.object_disk import ObjectDisk
from tests.contract.log_contract import NOW, Drafts
from tests.contract.test_bucket_logs import ROOT, memory_bucket

NAMES = ("sam", "ann", "bob")


def now() -> int:
    return NOW


class Killed(BaseException):
    """kill -9 at this point."""


class Place:
    """A place for a store: a folder, or a bucket."""

    def __init__(self, root: Path, disk: Callable[[], Disk]) -> None:
        self.root = root
        self.disk = disk

    def store(self) -> FileStore:
        return FileStore(self.root, now, disk=self.disk())

    def made(self) -> FileStore:
        """Return a new store with sealed records, open ones, a fork and an agent without records."""
        store = FileStore.create(self.root, now, "tests", shards=2, disk=self.disk())
        drafts = Drafts()
        for name in NAMES:
            store.register(name, shared=name == "bob")
            log = store.open(name, "writer")
            log.append(name, 0, drafts.some(3))
            if name != "ann":
                log.seal()
                log.append(name, 3, drafts.some(2))
            log.close()
        store.fork("sam", 4, "fork", event_id=drafts.some(1)[0].event_id)
        store.register("silent")
        return store

    def copy_of(self, source: FileStore) -> CopyReport:
        return copy_store(source, self.root, now, self.disk())


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Place]:
    bucket, other = memory_bucket(), memory_bucket()
    return {
        "folder": Place(tmp_path / "store", RealDisk),
        "bucket": Place(ROOT, lambda: ObjectDisk(bucket, ROOT)),
        "other": Place(Path("/other"), lambda: ObjectDisk(other, Path("/other"))),
    }


def content(store: FileStore) -> dict[str, list[Record]]:
    return {name: list(store.reader(name).read(name)) for name in store.agents()}


WAYS = [("folder", "bucket"), ("bucket", "folder"), ("bucket", "other")]


@pytest.mark.parametrize(("start", "end"), WAYS)
def test_a_copy_has_all_records_and_can_be_used(places: dict[str, Place], start: str, end: str) -> None:
    """A copy has the same agents, records and chains, and its agents continue there without a take-over."""
    source = places[start].made()
    report = places[end].copy_of(source)
    copy, later = places[end].store(), Drafts(NOW + 1_000_000)
    assert content(copy) == content(source)
    assert (report.agents, report.records) == (4, sum(map(len, content(source).values())) - 4)
    for name in (*NAMES, "fork", "silent"):
        assert copy.reader(name).head(name) == source.reader(name).head(name)
        log = copy.open(name, "user of the copy")
        seq = log.head(name).seq
        log.append(name, seq, later.some(1))
        log.close()
        assert len(list(copy.reader(name).read(name))) == seq + 1


def _dying(disk: Disk, calls: int) -> Disk:
    """Return the disk as a process sees it that is killed at a call which writes."""
    left = calls

    class Dying:
        def __getattr__(self, name: str) -> object:
            known = getattr(disk, name)
            if name not in ("create", "link", "make_dirs", "remove"):
                return known

            def call(*args: object) -> object:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Killed
                return known(*args)

            return call

    return Dying()  # type: ignore[return-value]


@pytest.mark.parametrize(("start", "end"), WAYS[:2])
def test_a_copy_that_is_killed_anywhere_is_continued(places: dict[str, Place], start: str, end: str) -> None:
    """A copy that is killed again and again, each time a few writes later, is no store until the same copy has finished
    it, and is then equal; what was copied before is not copied again.
    """
    source, place = places[start].made(), places[end]
    kept, calls = 0, 0
    while True:
        calls += 2
        try:
            report = copy_store(source, place.root, now, _dying(place.disk(), calls))
        except Killed:
            if not place.disk().exists(place.root / "everlog.json"):
                with pytest.raises((StoreError, UsageError), match=r"no store in|copy of a store"):
                    place.store()
            continue
        kept = report.kept
        break
    assert calls > 10
    assert kept > 3
    assert content(place.store()) == content(source)


def test_a_copy_of_a_store_in_use_has_what_was_stored_when_it_began(
    places: dict[str, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that are appended, sealed and registered while a store is copied do not harm the copy: it has the records
    of one position.
    """
    source = places["folder"].made()
    before = content(source)
    take = copying.take_positions

    def busy(store: FileStore) -> object:
        taken = take(store)
        if source.latest("late") not in source.agents():
            source.register("late")
            log = source.open("ann", "writer")
            log.append("ann", 3, Drafts(NOW + 2_000_000).some(1))
            log.seal()
            log.close()
        return taken

    monkeypatch.setattr(copying, "take_positions", busy)
    places["bucket"].copy_of(source)
    copied = content(places["bucket"].store())
    assert copied["sam"] == before["sam"]
    assert copied["ann"][:3] == before["ann"]


def test_a_copy_refuses_a_place_that_is_taken(places: dict[str, Place]) -> None:
    """A copy replaces nothing: a place with a store, or with a copy of another store that was begun, is refused."""
    source = places["folder"].made()
    places["bucket"].copy_of(source)
    with pytest.raises(BadInput, match="is not empty"):
        places["bucket"].copy_of(source)
    with pytest.raises(BadInput, match="the store itself"):
        copy_store(source, source.root / "inside", now)


@pytest.mark.parametrize("name", ["keys.json", "notes.txt", "webhooks/a.json"])
def test_a_copy_removes_nothing_of_others(places: dict[str, Place], name: str) -> None:
    """A place that is not empty is refused, whatever lies there, and keeps it."""
    source, place = places["bucket"].made(), places["folder"]
    path = place.root / name
    path.parent.mkdir(parents=True)
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match=f"is not empty: it holds {name.partition('/')[0]}. Nothing was changed"):
        place.copy_of(source)
    assert [path.read_text(encoding="utf-8"), len(list(place.root.iterdir()))] == ["mine", 1]


@pytest.mark.parametrize(("start", "end"), WAYS[:2])
def test_a_copy_that_agents_use_is_not_copied_again(
    places: dict[str, Place], start: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that was killed when only its mark was left is a store. What was written into it stays, and the same
    command only removes the mark.
    """
    source, place = places[start].made(), places[end]

    def killed(disk: Disk, root: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(copying, "_end", killed)
        place.copy_of(source)
    log = place.store().open("sam", "user of the copy")
    log.append("sam", 5, Drafts(NOW + 1_000_000).some(1))
    log.close()
    assert place.copy_of(source).was_finished
    assert not place.disk().exists(place.root / "copying.json")
    assert len(list(place.store().reader("sam").read("sam"))) == 6


def test_a_damaged_source_is_not_copied(places: dict[str, Place]) -> None:
    """A source with a changed byte in a sealed file is refused, and the place of the copy is no store."""
    source = places["folder"].made()
    path = next(path for path in sorted(source.root.rglob("*.parquet")))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptLog, match="SHA-256"):
        places["bucket"].copy_of(source)
    with pytest.raises(UsageError, match="copy of a store"):
        places["bucket"].store()
