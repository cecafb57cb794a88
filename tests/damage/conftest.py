"""The store that all tests of damage share."""

from pathlib import Path

import pytest

from tests.support.store.whole_store import make


@pytest.fixture(scope="package")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with every kind of file. It must not be changed: tests damage copies."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "texts").mkdir()
    make(folder / "store", folder / "texts")
    return folder / "store"
