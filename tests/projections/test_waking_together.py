"""Agents that are activated together: the same rows as one by one, from one read of each part of a file."""

from pathlib import Path

from everlog.projections import DERIVER, Projections, activate, activate_many
from everlog.store import FileLog
from tests.contract.log_contract import Drafts
from tests.store.log.test_shared_reads import NAMES, WeighingDisk, group, shared


def sealed(root: Path, disk: WeighingDisk) -> FileLog:
    """Return a log whose agents have a state each, of which all but one have later records; "zoe" has no state."""
    log, drafts = shared(root, disk), Drafts()
    group(log, NAMES[:3], drafts)
    log.seal(DERIVER)
    group(log, NAMES[1:], drafts)
    return log


def rows(engine: Projections) -> list[dict[str, object]]:
    """Return all rows of an engine."""
    return engine.query("SELECT * FROM records ORDER BY agent_id, seq")


def test_agents_that_wake_together_have_the_rows_of_agents_that_wake_alone(tmp_path: Path) -> None:
    """With and without a state, and with and without records after it."""
    log = sealed(tmp_path, WeighingDisk())
    with Projections() as one_by_one, Projections() as together:
        for name in NAMES:
            activate(one_by_one, log, name)
        activate_many(together, log, NAMES)
        assert rows(together) == rows(one_by_one)
        assert len(rows(together)) == 12
        for name in NAMES:
            assert together.rows("waking", name) == one_by_one.rows("waking", name)
    log.close()


def test_agents_that_wake_together_read_their_states_once(tmp_path: Path) -> None:
    """Three agents whose states are in one part of a file read it once, as one agent alone does."""
    disk = WeighingDisk()
    log = sealed(tmp_path, disk)

    def reads(names: list[str]) -> int:
        disk.reads.clear()
        with Projections() as engine:
            activate_many(engine, log, names)
        return len([name for name in disk.reads if name.endswith(".state")])

    reads(NAMES)  # the footer is read once
    assert reads(NAMES[:3]) == reads(NAMES[:1]) == 1
    log.close()


def test_a_history_that_is_asked_for_is_that_of_the_agent(tmp_path: Path) -> None:
    """A question about the past of one agent reads the records before its state, and those of no other agent."""
    log = sealed(tmp_path, WeighingDisk())
    with Projections() as alone, Projections() as together:
        activate(alone, log, "sam")
        activate_many(together, log, NAMES)
        assert together.rows("recall_memory", "sam", 1) == alone.rows("recall_memory", "sam", 1) != []
    log.close()
