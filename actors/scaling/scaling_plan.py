"""Decide from the load of the shards whether their number changes, or a hot agent moves. Pure.

The load of a shard is the processor time of its process: a shard has one event loop, so it can use about one processor,
and an agent that waits for a model needs none. Messages that wait are no reason to change anything: most of them wait
for a model, and more shards would not answer sooner.

Under constant load the number only grows or only shrinks: what was split is joined only if the joined load is below
SHRINK_LOAD, less than half of GROW_LOAD. And an agent is moved because of its load once.

Used by `ShardScaler`.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import msgspec

from everlog.events import BadInput
from everlog.events.times import MICROSECONDS
from everlog.store import SHARDS_MAX, shard_name

VARIABLE = "EVERLOG_SHARDS"
"""Environment variable of the cluster's head with the range, such as 2:16."""
LOOK_S = 10
"""Seconds between two measurements."""
GROW_LOAD, GROW_S = 0.7, 120
"""Processors that a shard must use, and seconds for which it must, before the number of shards is doubled."""
SHRINK_LOAD, SHRINK_S = 0.3, 600
"""Processors that joined shards may use at most, and seconds for which that must hold, before the number is halved."""
HOT_S = 60
"""Seconds for which one agent must make most of the work of a busy shard before it is moved. Each change begins the
measurement again, so no more than one agent is moved in this time.
"""
HOT_GAIN = 0.8
"""The busier of the two shards must have at most this part of the load that the busy one had before the move."""
COOL_S = 300
"""Seconds after a change of the number, by this module or by a person, in which the number is not changed again."""


class ShardsRange(msgspec.Struct, frozen=True):
    """Numbers of shards that a store may be given, both inclusive."""

    least: int
    most: int

    def nearest(self, number: int) -> int:
        """Return the number of the range that is nearest to `number`."""
        return max(self.least, min(self.most, number))


class ShardLoad(msgspec.Struct, frozen=True):
    """Load of one shard, in processors."""

    work: float
    agent: str = ""
    """Agent that makes the most of it."""
    agent_work: float = 0.0

    @property
    def overloaded(self) -> bool:
        """True if the shard uses most of what one process can use."""
        return self.work > GROW_LOAD

    @property
    def is_hot(self) -> bool:
        """True if one agent makes most of the load of a busy shard."""
        return self.overloaded and self.agent_work > self.work / 2

    @property
    def to_split(self) -> bool:
        """True if the shard stays busy without its busiest agent, or is busy by many agents: more shards help."""
        return self.overloaded and (not self.is_hot or self.work - self.agent_work > GROW_LOAD)


class LoadSample(msgspec.Struct, frozen=True):
    """Load of all shards at one moment. A shard without a process has none, and is not in `loads`."""

    at: int
    """Microseconds UTC."""
    loads: Mapping[str, ShardLoad]


class Resize(msgspec.Struct, frozen=True):
    """Change of the number of shards."""

    number: int
    why: str


class HotMove(msgspec.Struct, frozen=True):
    """Move of an agent to another shard."""

    agent_id: str
    to: str
    why: str


def range_from(text: str) -> ShardsRange | None:
    """Return the range of a text such as 2:16; None for an empty one. Raises BadInput."""
    if not text.strip():
        return None
    found = re.fullmatch(r"\s*([0-9]{1,4}):([0-9]{1,4})\s*", text)
    if found and 1 <= int(found[1]) <= int(found[2]) <= SHARDS_MAX:
        return ShardsRange(int(found[1]), int(found[2]))
    raise BadInput(
        f"{text!r} is no range of numbers of shards: expected the least and the most, from 1 to {SHARDS_MAX}, such as "
        f"2:16 (the option --shards-by-load of `everlog up`, or the variable {VARIABLE} of the head)."
    )


def hot_agents(samples: Sequence[LoadSample], now: int) -> set[str]:
    """Return the agents that `plan` may want to move."""
    return set(_hot(_within(samples, HOT_S, now)).values())


def plan(
    samples: Sequence[LoadSample],
    number: int,
    within: ShardsRange,
    targets: Mapping[str, Collection[str]],
    now: int,
    *,
    resized_at: int | None = None,
) -> Resize | HotMove | None:
    """Return the change that the load calls for; None if there is none.

    `samples`: since the last change, the oldest first. `number` of shards now. `targets`: shards that each hot agent
    may move to. `resized_at`: time of the last change of the number. Times are in microseconds UTC.
    """
    cool = resized_at is None or now - resized_at >= COOL_S * MICROSECONDS
    if cool:
        if number != within.nearest(number):
            return Resize(within.nearest(number), f"the range is {within.least} to {within.most}")
        if resize := _growth(samples, number, within, now) or _shrinkage(samples, number, within, now):
            return resize
    return _hot_move(_within(samples, HOT_S, now), number, targets)


def _within(samples: Sequence[LoadSample], seconds: int, now: int) -> Sequence[LoadSample]:
    """Return the samples of the last `seconds`; none if they do not tell enough about that time."""
    begin = now - seconds * MICROSECONDS
    if not samples or samples[0].at > begin:
        return ()
    found = [sample for sample in samples if sample.at >= begin]
    return found if len(found) * LOOK_S * 2 >= seconds else ()


def _growth(samples: Sequence[LoadSample], number: int, within: ShardsRange, now: int) -> Resize | None:
    found = _within(samples, GROW_S, now)
    to = within.nearest(number * 2)
    if to == number or not found:
        return None
    for shard in map(shard_name, range(number)):
        loads = [sample.loads.get(shard) for sample in found]
        if all(load is not None and load.to_split for load in loads):
            return Resize(to, f"{shard} used more than {GROW_LOAD} of a processor for {GROW_S} s")
    return None


def _shrinkage(samples: Sequence[LoadSample], number: int, within: ShardsRange, now: int) -> Resize | None:
    found = _within(samples, SHRINK_S, now)
    to = within.nearest(number // 2)
    if to == number or not found or any(_joined(sample, number, to) > SHRINK_LOAD for sample in found):
        return None
    return Resize(to, f"{to} shards would have used no more than {SHRINK_LOAD} of a processor each for {SHRINK_S} s")


def _joined(sample: LoadSample, number: int, to: int) -> float:
    """Return the most that one shard can use after the number was changed from `number` to `to`."""
    joined: defaultdict[int, float] = defaultdict(float)
    for shard in range(number):
        load = sample.loads.get(shard_name(shard))
        # If `to` divides `number`, all agents of a shard go to the same one; otherwise all of them may come together.
        joined[shard % to if number % to == 0 else 0] += load.work if load is not None else 0
    return max(joined.values())


def _hot(found: Sequence[LoadSample]) -> dict[str, str]:
    """Return the hot agent of each shard that had the same one in all samples."""
    if not found:
        return {}
    last = found[-1].loads
    return {
        shard: load.agent
        for shard, load in last.items()
        if all(
            (then := sample.loads.get(shard)) is not None and then.is_hot and then.agent == load.agent
            for sample in found
        )
    }


def _hot_move(found: Sequence[LoadSample], number: int, targets: Mapping[str, Collection[str]]) -> HotMove | None:
    shards = [shard_name(shard) for shard in range(number)]
    for shard, agent_id in sorted(_hot(found).items()):
        may = [other for other in shards if other != shard and other in targets.get(agent_id, ())]
        if not may or shard not in shards:
            continue
        to = min(may, key=lambda other: _mean(found, other))
        work = sum(sample.loads[shard].agent_work for sample in found) / len(found)
        before = _mean(found, shard)
        if max(before - work, _mean(found, to) + work) <= HOT_GAIN * before:
            return HotMove(agent_id, to, f"it made most of the work of {shard} for {HOT_S} s")
    return None


def _mean(found: Sequence[LoadSample], shard: str) -> float:
    """Return the mean load of a shard."""
    loads = (sample.loads.get(shard) for sample in found)
    return sum(load.work for load in loads if load is not None) / len(found)
