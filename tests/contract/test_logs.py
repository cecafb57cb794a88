"""The contract of the log, run against the implementations that everlog ships."""

from pathlib import Path

import pytest

from everlog.events import GENESIS
from everlog.store import FileStore, Head, MemoryStore, Store
from everlog.store.partition.open_segment import OpenSegment
from tests.contract.log_contract import NOW, Drafts, LogContract

BEFORE = Drafts(NOW - 1_000_000)


class TestMemoryLog(LogContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()

    def stand_at(self, store: Store, agent_id: str, seq: int, commit: int) -> None:
        """Set the counters of a new log in memory, and append once."""
        assert isinstance(store, MemoryStore)
        log = store.open(agent_id, "forge")
        ledger = log._shared.ledger
        ledger.heads[agent_id], ledger.commits = Head(seq - 1, GENESIS), commit - 1
        log.append(agent_id, seq - 1, BEFORE.some(1))
        log.close()


class FileContract(LogContract):
    """The contract for logs in files, whose counters are set by a file with a high commit number."""

    def stand_at(self, store: Store, agent_id: str, seq: int, commit: int) -> None:
        """Write a file with that commit, append once, and close the log, so that the manifest has the position of the
        stream.
        """
        assert isinstance(store, FileStore)
        log = store.open(agent_id, "forge")
        log._ledger.heads[agent_id], log._ledger.commits = Head(seq - 1, GENESIS), commit - 1
        log._file.close()
        log._file = OpenSegment.begin(log._where, commit, log.epoch)
        log._publish([log._file.entry])
        log.append(agent_id, seq - 1, BEFORE.some(1))
        log._roll()
        log.close()


class TestFileLog(FileContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FileStore.create(tmp_path / "store", lambda: NOW, "contract")


class TestFileLogInSmallSegments(FileContract):
    LONG = ("test_p9_text_and_payload_of_any_size", "test_p9_a_commit_of_just_the_limit")
    """Tests of one large commit, which is in one file whatever the size of a segment is."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FileStore.create(tmp_path / "store", lambda: NOW, "contract", segment_bytes_max=1)
