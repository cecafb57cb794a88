"""Kinds of worlds: the mixture of `trouble_mix`, and some worlds for cases that the mixture rarely reaches."""

from collections.abc import Callable

from tests.sim.bit_rot import rot
from tests.sim.bucket.bucket_world import in_bucket, late_in_bucket, meeting_in_bucket
from tests.sim.sim_store_world import World
from tests.sim.simulation import simulate
from tests.sim.trouble_mix import Habits


def beginning(seed: int) -> World:
    """Let many processes make a store at once, and let the power fail meanwhile."""

    def crowded(habits: Habits) -> Habits:
        return habits._replace(calls=100, live_max=5, switch=0.5, stop=0.03, kill=0, power_loss=0.005, fault=0, storm=0)

    return simulate(seed, crowded, "beginning")


def sealing(seed: int) -> World:
    """Let one owner after another seal and erase, until the power fails."""

    def hasty(habits: Habits) -> Habits:
        return habits._replace(seals=True, live_max=1, readers=0, switch=0.05, kill=0.001, stop=0, power_loss=0.002)

    return simulate(seed, hasty, "sealing")


def meeting(seed: int) -> World:
    """Stop owners at every step, fence them, and resume them, without other troubles."""

    def stopping(habits: Habits) -> Habits:
        quiet = habits.calm()._replace(segment_bytes_max=1, live_max=4, switch=0.1, stop=0.05, ending="take over")
        return quiet._replace(take_over=0.8, readers=0.2, kill=0.004)

    return simulate(seed, stopping, "meeting")


SCENARIOS: dict[str, Callable[[int], World]] = {
    "run": simulate, "rot": rot, "beginning": beginning, "sealing": sealing, "meeting": meeting, "bucket": in_bucket,
    "bucket-meeting": meeting_in_bucket, "bucket-late": late_in_bucket,
}  # fmt: skip
"""The scenarios by name; each raises `Failed`."""
