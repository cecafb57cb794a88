"""Histories of prompts: private, bounded, and removed whole by an erasure."""

from pathlib import Path

import pytest

from everlog.store.stores import typed_history
from everlog.store.stores.typed_history import forget_typed, keep_typed, typed_before, typed_path


def test_entries_come_back_in_order_with_their_line_breaks(tmp_path: Path) -> None:
    """Entries are read again, oldest first; the file and its folder are private."""
    path = typed_path(tmp_path, "sam")
    assert typed_before(path) == []
    keep_typed(path, "hello")
    keep_typed(path, "two\n  lines, ünïcode")
    assert typed_before(path) == ["hello", "two\n  lines, ünïcode"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_full_history_keeps_its_newest_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file never stays above its limit; the oldest entries go first."""
    monkeypatch.setattr(typed_history, "TYPED_BYTES_MAX", 200)
    path = typed_path(tmp_path, "sam")
    for number in range(100):
        keep_typed(path, f"entry {number}")
        assert path.stat().st_size <= 200
    found = typed_before(path)
    assert found[-1] == "entry 99"
    assert found == [f"entry {number}" for number in range(100 - len(found), 100)]


def test_an_entry_that_is_too_long_or_no_text_is_not_kept(tmp_path: Path) -> None:
    """A pasted file and half of a character are left out, and disturb nothing."""
    path = typed_path(tmp_path, "sam")
    keep_typed(path, "x" * typed_history.ENTRY_BYTES_MAX)
    keep_typed(path, "\ud800")
    assert not path.exists()


def test_a_damaged_line_costs_itself_only(tmp_path: Path) -> None:
    """Lines that cannot be read are left out."""
    path = typed_path(tmp_path, "sam")
    keep_typed(path, "before")
    with path.open("ab") as file:
        file.write(b'"torn\n\xff\xfe\n[1]\n')
    keep_typed(path, "after")
    assert typed_before(path) == ["before", "after"]


def test_forgetting_removes_the_named_histories_and_that_of_queries(tmp_path: Path) -> None:
    """Another agent's history stays; forgetting twice, or in a store without histories, is no error."""
    forget_typed(tmp_path, ["sam"])
    for name in ("sam", "ann", None):
        keep_typed(typed_path(tmp_path, name), "words")
    forget_typed(tmp_path, ["sam"])
    forget_typed(tmp_path, ["sam"])
    assert [typed_path(tmp_path, name).exists() for name in ("sam", "ann", None)] == [False, True, False]
