"""Simulated hosts, supervisors and timers: crashes and callers in the order that a seed draws."""

import pytest

from everlog.actors.replay.rebuild_check import rebuild, verify
from tests.support import virtual_time
from tests.support.agents import fast_stand_ins
from tests.support.cluster.sim_broken_guards import BREAKS, fails
from tests.support.cluster.sim_world import AGENTS, World, simulate
from tests.support.seeds import seeds, split

pytestmark = pytest.mark.usefixtures("simulated_worlds")

CHUNK = 40
SEEDS = 5000
WORLDS = 16
"""Worlds whose content is checked: processes die in most of them, and each kind of event occurs in some."""
NEARBY = 30
"""Further seeds that are tried when a code change has altered the world of the recorded seed."""


@pytest.mark.parametrize("seed", seeds(8, label="hosts", below=SEEDS))
def test_no_seed_breaks_a_promise(seed: int) -> None:
    """After any crashes no input is lost or processed twice, each caller gets its turn, and heartbeats are those
    due.
    """
    simulate(seed, collect=seed % 4 == 0)


@pytest.mark.long
@pytest.mark.hosts
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_of_many_breaks_a_promise(first: int) -> None:
    """The promises hold in all of five thousand worlds."""
    for seed in range(first, first + CHUNK):
        simulate(seed, collect=True)


def simulate_real(seed: int) -> World:
    """Simulate a world whose agents have real projections and turns, and check that each agent verifies and
    rebuilds.
    """
    world = simulate(seed, real=True, collect=True)
    for agent_id in AGENTS:
        view = world.system().view(agent_id)
        try:
            for report in (verify(view, world.system().tools), rebuild(view)):
                assert not report.faults, report.faults
            mine = sorted(fast_stand_ins.timers(world.log(agent_id)), key=lambda timer: timer["timer"])
            theirs = sorted(view.rows("timers"), key=lambda row: row["timer"])
            assert [{name: row[name] for name in mine[0]} for row in theirs] == mine if mine else not theirs
        finally:
            view.close()
    return world


@pytest.mark.parametrize("seed", seeds(1, label="whole agents", below=100))
def test_no_seed_breaks_a_promise_of_whole_agents(seed: int) -> None:
    """With real projections every log verifies and rebuilds, and the SQL for timers gives the same timers as the Python
    code.
    """
    simulate_real(seed)


@pytest.mark.long
@pytest.mark.hosts
@pytest.mark.parametrize("seed", range(100))
def test_no_seed_of_many_breaks_a_promise_of_whole_agents(seed: int) -> None:
    """The promises hold in a hundred worlds with real projections."""
    simulate_real(seed)


def test_the_simulated_worlds_cover_all_cases() -> None:
    """Processes die in most worlds; callers, timers, unloads, refusals and hand-overs occur in some."""
    worlds = [simulate(seed) for seed in range(WORLDS)]
    kinds = {record.type for world in worlds for name in AGENTS for record in world.log(name)}
    assert kinds >= {"heartbeat", "heartbeats_paused", "timer_set", "timer_cancelled", "model_failed"}
    notes = {words for world in worlds for note in world.cluster.notes for words in note.split()}
    assert notes >= {"died;", "row;", "room"}
    assert sum(client.runtime.losses > 0 for world in worlds for client in world.clients) > WORLDS / 2
    assert any(world.cluster.handed_over for world in worlds)
    assert any(client.told_of_losses for world in worlds for client in world.clients)


def test_a_seed_reproduces() -> None:
    """The same seed gives the same logs, to the microsecond."""
    first, again = simulate(5), simulate(5)
    assert [first.log(name) for name in AGENTS] == [again.log(name) for name in AGENTS]


@pytest.mark.parametrize("guard", split([*BREAKS], 2, label="guards of hosts", part="hosts"))
def test_a_seed_detects_a_missing_guard(guard: str) -> None:
    """A world with all guards passes, and the same world without one guard fails."""
    seed = BREAKS[guard][0]
    if fails(seed) or not fails(seed, guard):
        assert any(fails(other, guard) and not fails(other) for other in range(seed, seed + NEARBY)), (
            f"search again: python -m tests.support.cluster.sim_broken_guards {guard!r}"
        )


def test_virtual_time_raises_if_no_event_can_happen() -> None:
    """A test that waits for an event that cannot happen raises an error and does not hang."""
    import asyncio

    with pytest.raises(virtual_time.Stuck):
        virtual_time.run(lambda: asyncio.Event().wait())
