"""Erasing records that forks share, and a crash at each step: the repeated command completes, and other agents lose
nothing.
"""

from io import BytesIO
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from everlog.actors.agent.erase_agent import erase
from everlog.events import BadInput, Record, uuid7
from everlog.projections import DERIVER
from everlog.store import FileStore, check, check_moves
from tests.contract.draft_builders import NOW, Drafts
from tests.store.conftest import now
from tests.store.streams.test_move_service import CHANGES
from tests.support.seeds import pick
from tests.support.store.faulty_disk import Crash, FaultyDisk

ROOT = Path("/sim")
SECRET = "XylophoneQuagmire"
NAMES = ("sam", "tom", "ann", "max")


class Ids:
    """Event ids in order, without repetition."""

    numbers = count(10_000)

    def new(self, at: int) -> str:
        return uuid7(at, next(self.numbers))


class Clock:
    """A clock that stands still."""

    def now(self) -> int:
        return NOW


def say(store: FileStore, name: str, drafts: Drafts, *texts: str, seal: bool = False) -> None:
    log = store.open(name, "test")
    for text in texts:
        log.append(name, store.reader(name, log).head(name).seq, [drafts.one(text)])
    if seal:
        log.seal(DERIVER)
    log.close()


def made(disk: FaultyDisk) -> FileStore:
    """Return a store in which Sam said the secret. Tom was forked from Sam after that and moved, Ann was forked from
    Tom, and Max was forked from Sam before it.
    """
    store = FileStore.create(ROOT, now, "sim", shards=1, disk=disk)
    drafts = Drafts()
    store.register("sam")
    say(store, "sam", drafts, "hello", f"it is {SECRET}", f"yes, {SECRET}", seal=True)
    for parent, at, name in (("sam", 3, "tom"), ("tom", 4, "ann"), ("sam", 1, "max")):
        store.fork(parent, at, name, event_id=uuid7(NOW, 1000 + len(name + parent) + at))
    say(store, "tom", drafts, "I am Tom", seal=True)
    log = store.open("tom", "test")
    store.begin_move(log, "tom", "shard-000")
    log.close()
    say(store, "tom", drafts, "I am here", seal=True)
    say(store, "ann", drafts, "I am Ann", seal=True)
    say(store, "max", drafts, "I am Max")
    say(store, "sam", drafts, "goodbye")
    return store


def erased(store: FileStore) -> None:
    erase(store, {"sam": [(2, 3)]}, clock=Clock(), ids=Ids(), open_log=lambda name: store.open(name, "test"))


def holding(disk: FaultyDisk) -> list[str]:
    """Return the names of the files that hold the secret. Parquet files are decoded first, because they are
    compressed.
    """
    found = []
    for path, file in disk.files.items():
        content = bytes(file.content)
        if path.suffix in (".parquet", ".state"):
            content += repr(pq.read_table(BytesIO(content)).to_pylist()).encode()
        if SECRET.encode() in content:
            found.append(path.name)
    return found


def said(store: FileStore) -> dict[str, list[str | None]]:
    """Return the status that each agent reports."""
    return {name: [record.text for record in own(store, name) if record.type == "user_message"] for name in NAMES}


def own(store: FileStore, name: str) -> list[Record]:
    return list(store.reader(name).read(name))


EXPECTED = {
    "sam": ["hello", None, None, "goodbye"],
    "tom": ["hello", None, None, "I am Tom", "I am here"],
    "ann": ["hello", None, None, "I am Ann"],
    "max": ["hello", "I am Max"],
}


def assert_erased(store: FileStore, disk: FaultyDisk) -> None:
    assert holding(disk) == []
    assert said(store) == EXPECTED
    for name in NAMES:
        records = own(store, name)
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        assert store.reader(name).head(name).seq == len(records)
    assert check_moves(store) == []
    for partition in store.partitions():
        assert check(store.partition(partition), deep=True, derive=DERIVER).ok
    with pytest.raises(BadInput, match="those of 'sam'"):
        erase(store, {"tom": [(1, 4)]}, clock=Clock(), ids=Ids(), open_log=lambda name: store.open(name, "test"))


def test_forks_of_one_log_are_erased_together() -> None:
    """Two forks and their parent share one shard: its log is opened once."""
    disk = FaultyDisk()
    store = made(disk)
    for name in ("ann", "sam"):
        log = store.open(name, "test")
        store.begin_move(log, name, "shard-000")
        log.close()
        store.open(name, "test").close()
    assert holding(disk)
    erased(store)
    assert_erased(store, disk)


def crashed(count: int | None) -> None:
    """Crash at `count` steps of an erasure, or at each step if `count` is None, and erase again."""
    whole = FaultyDisk()
    made(whole)
    start = len(whole.log)
    assert len(holding(whole)) > 3  # frames, a sealed file, and states of forks
    erased(FileStore(ROOT, now, disk=whole))
    assert_erased(FileStore(ROOT, now, disk=whole), whole)
    changes = [step for step in range(start, len(whole.log)) if whole.log[step][0] in CHANGES]
    assert len(changes) > 50
    for step in changes if count is None else pick(changes, count, label="steps of an erasure"):
        crashing = FaultyDisk()
        made(crashing)
        crashing.crash_at = step
        with pytest.raises(Crash):
            erased(FileStore(ROOT, now, disk=crashing))
        for disk in (crashing.power_loss(), crashing.killed()):
            store = FileStore(ROOT, now, disk=disk)
            for name, texts in said(store).items():
                assert [text for text in texts if text and SECRET not in text] == [t for t in EXPECTED[name] if t]
            erased(store)
            assert_erased(store, disk)


def test_an_erasure_that_was_interrupted_is_finished_by_the_same_call() -> None:
    """After a crash or a power loss at one step, a repeated erasure removes the secret from every file and keeps all
    else.
    """
    crashed(1)


@pytest.mark.long
@pytest.mark.storage
def test_an_erasure_that_was_interrupted_anywhere_is_finished_by_the_same_call() -> None:
    """The repeated erasure completes after a crash at any change of the disk."""
    crashed(None)
