"""Helpers for tests of exports, which copy an agent from one store into another."""

from pathlib import Path

from everlog.store import ExportHeader, FileStore, RestoreReport, Store, check, check_moves, export
from tests.contract.draft_builders import NOW
from tests.store.sealed.test_seal_pass import Counting
from tests.store.streams.test_fork_reader import assert_whole


def save(store: Store, name: str, path: Path, **more: object) -> ExportHeader:
    return export(store, name, path, store_id="sim", made_at=NOW, **more)  # type: ignore[arg-type]


def through(store: Store, name: str, other: Store, tmp_path: Path) -> RestoreReport:
    """Export an agent from one store and restore it in another."""
    path = tmp_path / f"{name}.everlog"
    save(store, name, path, replace=True)
    return other.restore(path, Counting())


def assert_same(store: Store, other: Store, name: str) -> None:
    """Check that every record of an agent is equal in both stores, except for its commit number, and the chain at every
    seq.
    """
    mine, theirs = store.reader(name), other.reader(name)
    assert_whole(theirs, name)
    fields = ("agent_id", "seq", "event_id", "recorded_at", "said_at", "type", "turn", "step", "cause", "version",
              "text", "payload")  # fmt: skip
    for a, b in zip(mine.read(name), theirs.read(name), strict=True):
        assert [getattr(a, field) for field in fields] == [getattr(b, field) for field in fields]
    head = mine.head(name)
    assert (theirs.head(name).seq, theirs.head(name).chain) == (head.seq, head.chain)


def assert_fine(store: Store) -> None:
    """Check that no check of the files finds anything."""
    if isinstance(store, FileStore):
        for partition in store.partitions():
            report = check(store.partition(partition), deep=True, derive=Counting())
            assert report.ok, report.errors
        assert check_moves(store) == []
