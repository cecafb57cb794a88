"""The contract suite, run against the logs that everlog ships."""

from pathlib import Path

import pytest

from store import FileStore, MemoryStore, Store
from tests.contract.log_contract import NOW, LogContract


class TestMemoryLog(LogContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestFileLog(LogContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FileStore.create(tmp_path / "store", lambda: NOW, "contract")


class TestFileLogInSmallSegments(LogContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FileStore.create(tmp_path / "store", lambda: NOW, "contract", segment_bytes_max=1)
