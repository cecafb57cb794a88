"""Checks of forks by `log check`: the fork's log, the register and the parent agree on its fork point."""

import shutil
from pathlib import Path

import pytest

from everlog.events import uuid7
from everlog.store import FileStore, check_forks, check_moves, partition_of
from tests.contract.draft_builders import NOW, Drafts
from tests.store.conftest import now


def say(store: FileStore, name: str, *texts: str) -> None:
    store.register(name)
    log = store.open(name, "test")
    drafts = Drafts(NOW + len(name))
    for text in texts:
        log.append(name, store.reader(name, log).head(name).seq, [drafts.one(text)])
    log.close()


def family(root: Path, words: str = "abc", parent: str = "sam", at: int = 3) -> FileStore:
    """Make Sam and Ann with some messages, Tom as a fork of one of them, and Max as a fork of Tom."""
    store = FileStore.create(root, now, "sim", shards=2)
    say(store, "sam", *words)
    say(store, "ann", *words)
    store.fork(parent, at, "tom", event_id=uuid7(NOW, 77))
    say(store, "tom", "x", "y")
    store.fork("tom", 5, "max", event_id=uuid7(NOW, 78))
    return store


def go(store: FileStore, name: str, to: str) -> None:
    log = store.open(name, "test")
    store.begin_move(log, name, to)
    log.close()
    store.open(name, "test").close()


def test_intact_forks_pass_wherever_they_and_their_parents_moved(tmp_path: Path) -> None:
    """No error is reported, also if a parent had moved before the fork point, or the fork point is in the middle of a
    move.
    """
    store = family(tmp_path)
    assert check_forks(store) == []
    go(store, "sam", "shard-000")
    say(store, "sam", "d")
    for at in range(1, 7):
        name = f"fork {at}"
        store.fork("sam", at, name, event_id=uuid7(NOW, 100 + at))
        assert check_forks(store) == check_moves(store) == []
        go(store, name, "shard-001")
        go(store, name, partition_of(name))
    go(store, "max", "shard-001")
    say(store, "max", "z")
    assert check_forks(store) == check_moves(store) == []


@pytest.mark.parametrize(
    ("name", "other", "said"),
    [
        ("sam", {"words": "ab", "parent": "ann", "at": 2}, "which ends at seq 2: records are missing"),
        ("sam", {"words": "abd"}, "the chain of 'sam' at seq 3 is not what it was"),
        ("tom", {"parent": "ann"}, "the chain of 'sam' at seq 3 is not what it was"),
        ("tom", {"at": 2}, "the register has a fork of 'sam' at seq 3, but the log does not"),
    ],
)
def test_a_fork_that_disagrees_with_its_parent_is_reported(
    tmp_path: Path, name: str, other: dict[str, object], said: str
) -> None:
    """After a log is replaced by one from another backup, the error names the fork, and the records on which the two
    disagree.
    """
    store = family(tmp_path / "one")
    family(tmp_path / "other", **other)  # type: ignore[arg-type]
    place = store.partition(partition_of(name)).path
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "other" / "log" / partition_of(name), place)
    found = check_forks(store)
    assert [error for error in found if said in error and error.startswith("'tom'")]
    assert check_forks(store, ["tom"]) == [error for error in found if error.startswith("'tom'")]
    assert check_forks(store, ["ann"]) == []


def test_a_parent_whose_log_is_missing_is_reported(tmp_path: Path) -> None:
    store = family(tmp_path)
    shutil.rmtree(store.partition(partition_of("sam")).path)
    (tom, max_) = check_forks(store)[::-1]
    assert "'tom', a fork of 'sam'" in tom and "is missing" in tom
    assert "'max', a fork of 'tom'" in max_ and "is missing" in max_
