"""Give all tests of a group to one process of a run with several processes.

`--dist loadgroup` of pytest-xdist 3.8 tells the groups by changed ids, which pytest 9.2 does not heed: each test goes
to any process, and what a group shares is made in each (pytest-dev/pytest-xdist#1386). So each process writes the
groups of its tests into a file, and the scheduler reads it.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

PLACE = "everlog_groups"
"""Key of a process's input: the path of the file with its groups."""
MARK = "xdist_group"


def tell(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Write the group of each test that has one, if the tests run in several processes."""
    place = getattr(config, "workerinput", {}).get(PLACE)
    if place is not None:
        groups = {item.nodeid: mark.args[0] for item in items if (mark := item.get_closest_marker(MARK))}
        Path(place).write_text(json.dumps(groups))


def ask(node: Any) -> None:
    """Name the file into which a process is to write its groups."""
    with tempfile.NamedTemporaryFile(prefix="everlog-groups-", suffix=".json", delete=False) as file:
        node.workerinput[PLACE] = file.name


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler of the groups; None if another one was asked for."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        """Scheduler of tests of which each is alone, or in the group that its process has told."""

        def __init__(self) -> None:
            super().__init__(config, log)
            self._groups: dict[str, str] = {}

        def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
            place = Path(node.workerinput[PLACE])
            self._groups |= json.loads(place.read_text() or "{}")  # empty: the process could not collect its tests
            place.unlink()
            super().add_node_collection(node, collection)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            mine, scope = self.assigned_work[node], self._split_scope(self.registered_collections[node][item_index])
            if all(mine[scope].values()):
                del mine[scope]  # each later test would count what was finished, a millisecond in a whole suite

        def _split_scope(self, nodeid: str) -> str:
            return self._groups.get(nodeid, nodeid)

    return GroupScheduling()
