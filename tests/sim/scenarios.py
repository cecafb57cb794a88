"""Kinds of worlds: the mixture that `habits` makes, and some that look where a mixture seldom does."""

from collections.abc import Callable

from tests.sim.bit_rot import rot
from tests.sim.sim_store_world import World
from tests.sim.simulation import simulate
from tests.sim.trouble_mix import Habits


def beginning(seed: int) -> World:
    """Many processes make a store at once, and the power goes while they do."""

    def crowded(habits: Habits) -> Habits:
        return habits._replace(calls=100, live_max=5, switch=0.5, stop=0.03, kill=0, power_loss=0.005, fault=0, storm=0)

    return simulate(seed, crowded, "beginning")


def sealing(seed: int) -> World:
    """One owner after the other seals and erases, until the power goes."""

    def hasty(habits: Habits) -> Habits:
        return habits._replace(seals=True, live_max=1, readers=0, switch=0.05, kill=0.001, stop=0, power_loss=0.002)

    return simulate(seed, hasty, "sealing")


def meeting(seed: int) -> World:
    """Owners are stopped at every step, fenced, and resumed; there is no other trouble."""

    def stopping(habits: Habits) -> Habits:
        quiet = habits.calm()._replace(segment_bytes_max=1, live_max=4, switch=0.1, stop=0.05, ending="take over")
        return quiet._replace(take_over=0.8, readers=0.2, kill=0.004)

    return simulate(seed, stopping, "meeting")


SCENARIOS: dict[str, Callable[[int], World]] = {
    "run": simulate, "rot": rot, "beginning": beginning, "sealing": sealing, "meeting": meeting,
}  # fmt: skip
"""By name; each raises `Failed`."""
