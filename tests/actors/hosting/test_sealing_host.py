"""Packages that a host of many agents loads when it seals its log and activates agents from it."""

import subprocess
import sys
from pathlib import Path

SEALED_TWICE = """
import sys
from pathlib import Path
from everlog.events import AgentCreated, UserMessage, draft
from everlog.projections import DERIVER, HEAD, Projections, activate_many
from everlog.store import FileStore
from everlog.testing import CountingIds

ids, names = CountingIds(), ["ann", "ben"]
store = FileStore.create(Path(sys.argv[1]), lambda: 1, "store", shards=1)
store.register_many(names, shared=True)
log = store.open_partition(store.partition_of("ann"), "test")
for seq, event in enumerate([AgentCreated(persona="I am Sam."), UserMessage(text="Hi"), UserMessage(text="Bye")]):
    for name in names:
        log.append(name, seq, [draft(event, event_id=ids.new(1), recorded_at=1, turn=seq, step=0)])
    if seq < 2:
        log.seal(DERIVER)
with Projections() as projections:
    activate_many(projections, log, names)
    assert [row["head"] for row in projections.batch("standing", [(name, HEAD) for name in names])] == [3, 3]
    projections.rest()
log.close()
print("pandas" in sys.modules)
"""
"""A log that is sealed with states, and again with states that continue those, and agents that are read from both."""


def test_sealing_and_activating_do_not_load_pandas(tmp_path: Path) -> None:
    """Arrow imports pandas, if it is installed, when it first gets a Python value: 25 MB in each host, and half a
    second while its agents wait. Sealing and activating give it none.
    """
    command = [sys.executable, "-c", SEALED_TWICE, str(tmp_path / "store")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "False\n"
