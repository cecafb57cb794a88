"""`bench.listing` computes its figures as it states, and the fleets that it makes are valid."""

from pathlib import Path

import pytest

from bench import listing
from bench.support import harness, large_fleet
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.replay.verify_agents import VerificationPlan, verify_many
from everlog.projections import Projections


def test_figures_are_medians_of_the_largest_fleet() -> None:
    """One slow run moves no figure; smaller fleets are in the table only."""
    used = {
        (size, command): [listing.Used(cpu * size, 10 * size) for cpu in (0.1, 0.2, 9.0)]
        for size in (10, 100)
        for command in (*listing.COMMANDS, listing.FLOOR)
    }
    seen = listing.Seen(harness.Noise(1, 1, 1, 1), used)
    found = listing.figures(seen)
    assert tuple(figure.key for figure in found) == listing.KEYS
    assert [(figure.value, figure.floor) for figure in found[:2]] == [(20, 20), (1000, 1000)]
    assert sum("10 agents" in row.name for row in listing.lines(seen, found)) == len(listing.COMMANDS)


def test_a_process_that_fails_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        listing.process("-c", "import sys; sys.exit(3)")


def test_every_agent_of_a_large_fleet_verifies(tmp_path: Path) -> None:
    """Each agent has the conversation under its own name and ids, some of it in an open file, and no fault."""
    store = large_fleet.make(tmp_path / "store", 12)
    system = LocalSystem(store)
    names = system.agents()
    with Projections() as projections:
        (found,) = verify_many(store, names, projections, VerificationPlan(system.tools))
    assert names == [*(f"fleet-{number:05}" for number in range(1, 13)), large_fleet.TEMPLATE]
    assert sorted(found.reports) == names and not found.alone
    calls = {report.checked for report in found.reports.values()}
    assert len(calls) == 1 and calls.pop() > 4
    assert not any(report.faults or report.notes for report in found.reports.values())
    ids = [record.event_id for name in names for record in store.reader(name).read(name)]
    assert len(ids) == len(set(ids))
