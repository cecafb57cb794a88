"""Many sealed files under a low limit of open files, in a process of its own with a lowered limit."""

import subprocess
import sys
from pathlib import Path

import pytest

from everlog.projections import DERIVER
from everlog.store import FileStore
from tests.store.check.test_snapshot import clock, say

AGENTS = 20
CODE = """
import resource, sys
from pathlib import Path
from everlog.actors.memory.fleet_sql import fleet_sql
from everlog.events import StoreError
from everlog.store import FileStore
store = FileStore(Path(sys.argv[1]), lambda: 1)
fleet_sql(FileStore(Path(sys.argv[2]), lambda: 1), "SELECT 1")  # whatever is opened once
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]), int(sys.argv[4])))
try:
    print(fleet_sql(store, "SELECT count(DISTINCT agent_id) AS n, sum(length(text)) AS l FROM records").to_pylist())
except StoreError as error:
    print("StoreError:", error)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with twenty agents, each with a sealed file, and an empty store."""
    folder = tmp_path_factory.mktemp("many")
    FileStore.create(folder / "empty", clock.now, "s")
    store = FileStore.create(folder / "store", clock.now, "s")
    for number in range(AGENTS):
        name = f"agent-{number}"
        store.register(name)
        log = store.open(name, "test")
        say(log, name)
        log.seal(DERIVER)
        log.close()
    return folder


def asked(folder: Path, soft: int, hard: int) -> list[str]:
    """Run the query in a process with these limits. Return its output."""
    words = [sys.executable, "-c", CODE, str(folder / "store"), str(folder / "empty"), str(soft), str(hard)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_limit_of_open_files_is_raised_where_more_is_needed(many: Path) -> None:
    """If the soft limit is too low for the files and the hard limit is not, the query is answered."""
    answer, hard = asked(many, 32, 512)
    assert answer == str([{"n": AGENTS, "l": sum(len(f"agent-{number} 1") for number in range(AGENTS))}])
    assert hard == "512"


@pytest.mark.parametrize("limit", [24, 40, 2 * AGENTS + 63])
def test_too_low_a_limit_is_reported_with_the_number_that_is_needed(many: Path, limit: int) -> None:
    """If the limit cannot be raised, the error names the needed limit, and how to set it."""
    answer, _ = asked(many, limit, limit)
    assert answer.startswith("StoreError: ")
    assert f"`ulimit -n {2 * AGENTS + 64}`" in answer


def test_a_limit_of_what_is_said_to_be_needed_is_enough(many: Path) -> None:
    """With exactly the limit that the error names, the query is answered."""
    answer, _ = asked(many, 2 * AGENTS + 64, 2 * AGENTS + 64)
    assert answer.startswith(f"[{{'n': {AGENTS}")
