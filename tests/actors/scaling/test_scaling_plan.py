"""Laws of the decision: how many shards the load needs, and where a hot agent goes."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import strategies as st

from everlog.actors.scaling.scaling_plan import (
    COOL_S,
    GROW_LOAD,
    GROW_S,
    HOT_S,
    LOOK_S,
    SHRINK_LOAD,
    SHRINK_S,
    HotMove,
    LoadSample,
    Resize,
    ShardLoad,
    ShardsRange,
    hot_agents,
    plan,
    range_from,
)
from everlog.events import BadInput
from everlog.events.times import MICROSECONDS
from everlog.store import SHARDS_MAX, shard_name, shard_of
from tests.support.law import law

STEP_US = LOOK_S * MICROSECONDS
HOURS = 2
SEEDS = st.integers(0, 10**9)


class Town:
    """Agents with some load each, in shards that follow it. Each shard uses at most one processor."""

    def __init__(self, work: Mapping[str, float], number: int, within: ShardsRange) -> None:
        self.work = dict(work)
        self.within = within
        self.number = number
        self.numbers = [number]
        self.moved: dict[str, str] = {}
        self.moves: list[tuple[int, str, str]] = []
        self.samples: list[LoadSample] = []
        self.now = 0
        self.resized_at: int | None = None

    def homes(self, agent: str) -> set[str]:
        return {shard_of(agent, number) for number in self.numbers}

    def place(self, agent: str) -> str:
        """Return the shard of an agent, as the mover leaves it."""
        there = self.moved.get(agent, "")
        in_place = there and int(there[-3:]) < self.number and there not in self.homes(agent)
        return there if in_place else shard_of(agent, self.number)

    def loads(self) -> dict[str, ShardLoad]:
        agents: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for agent, work in self.work.items():
            agents[self.place(agent)][agent] = work  # type: ignore[assignment]
        found = {}
        for shard, works in agents.items():
            total = sum(works.values())
            used = min(total, 1.0)
            ((agent, most),) = works.most_common(1)
            found[shard] = ShardLoad(used, agent, used * most / total if total else 0)
        return found

    def targets(self, agent: str) -> set[str]:
        free = set(map(shard_name, range(self.number))) - self.homes(agent)
        return set() if agent in self.moved else free

    def step(self) -> Resize | HotMove | None:
        """Let one measurement pass, and carry out what follows."""
        self.now += STEP_US
        self.samples.append(LoadSample(self.now, self.loads()))
        del self.samples[: -SHRINK_S // LOOK_S - 1]
        targets = {agent: self.targets(agent) for agent in hot_agents(self.samples, self.now)}
        change = plan(self.samples, self.number, self.within, targets, self.now, resized_at=self.resized_at)
        match change:
            case Resize(number):
                assert number != self.number
                assert self.within.least <= number <= self.within.most
                self.number, self.resized_at = number, self.now
                self.numbers.append(number)
            case HotMove(agent, to):
                assert to in targets[agent]
                self.moves.append((self.now, agent, to))
                self.moved[agent] = to
        if change is not None:
            self.samples.clear()
        return change

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds / LOOK_S)):
            self.step()


def town_of(seed: int) -> Town:
    """Return a town with agents, loads and a range that a seed draws; some agents are hot."""
    chance = random.Random(seed)
    least = chance.randint(1, 6)
    within = ShardsRange(least, chance.randint(least, 40))
    scale = chance.choice([0.001, 0.02, 0.3])
    work = {f"agent {number}": chance.random() * scale for number in range(chance.randint(1, 60))}
    for agent in chance.sample(sorted(work), min(len(work), chance.randint(0, 4))):
        work[agent] = chance.random()
    return Town(work, chance.randint(1, 50), within)


@law(SEEDS, few=5, many=500)
def test_under_constant_load_the_number_goes_in_one_direction_and_settles(seed: int) -> None:
    """With loads that do not change, the number never grows after it shrank or shrinks after it grew, each agent moves
    at most once, and after some hours nothing changes any more.
    """
    town = town_of(seed)
    town.run(HOURS * 3600)
    inside = town.numbers[1:] if town.numbers[0] != town.within.nearest(town.numbers[0]) else town.numbers
    assert inside in (sorted(inside), sorted(inside, reverse=True)), town.numbers
    assert len(inside) == len(set(inside))
    assert len({agent for _, agent, _ in town.moves}) == len(town.moves)
    before = len(town.numbers), len(town.moves)
    town.run(HOURS * 3600)
    assert (len(town.numbers), len(town.moves)) == before


@law(SEEDS, few=5, many=500)
def test_under_any_load_the_limits_hold(seed: int) -> None:
    """The number stays in its range once it is there, however the loads change; two changes of it are at least COOL_S
    apart, and two moves at least HOT_S.
    """
    town, chance = town_of(seed), random.Random(seed)
    resized: list[int] = []
    for step in range(600):
        if step % 50 == 0:
            factor = chance.choice([0, 0.1, 1, 5])
            town.work = {agent: chance.random() ** 3 * factor for agent in town.work}
        if isinstance(town.step(), Resize):
            resized.append(town.now)
    assert all(town.within.least <= number <= town.within.most for number in town.numbers[1:])
    assert all(after - before >= COOL_S * MICROSECONDS for before, after in pairwise(resized))
    times = [at for at, *_ in town.moves]
    assert all(after - before >= HOT_S * MICROSECONDS for before, after in pairwise(times))


def test_the_number_doubles_under_load_and_halves_without() -> None:
    """Many agents that keep two shards busy get four shards, and two again when they rest."""
    town = Town({f"agent {number}": 0.02 for number in range(80)}, 2, ShardsRange(2, 16))
    town.run(GROW_S + 2 * LOOK_S)
    assert town.numbers == [2, 4]
    town.work = dict.fromkeys(town.work, 0.0)
    town.run(SHRINK_S - LOOK_S)
    assert town.numbers == [2, 4]
    town.run(3 * LOOK_S)
    assert town.numbers == [2, 4, 2]


def test_a_peak_that_is_shorter_than_its_time_changes_nothing() -> None:
    """A shard that is busy for less than GROW_S, again and again, is not split."""
    town = Town({f"agent {number}": 0.02 for number in range(80)}, 2, ShardsRange(2, 16))
    busy = dict(town.work)
    for _ in range(10):
        town.work = busy
        town.run(GROW_S - LOOK_S)
        town.work = dict.fromkeys(busy, 0.005)
        town.run(LOOK_S)
    assert town.numbers == [2]


def test_a_hot_agent_moves_to_the_least_busy_shard_and_stays() -> None:
    """An agent that makes most of the work of a busy shard goes to the idlest of the others, once; the number stays."""
    names = [f"agent {number}" for number in range(400)]
    of = {shard: [name for name in names if shard_of(name, 4) == shard] for shard in map(shard_name, range(4))}
    work = {of["shard-000"][0]: 0.5, of["shard-000"][1]: 0.35, of["shard-001"][0]: 0.3, of["shard-002"][0]: 0.1,
            of["shard-003"][0]: 0.2}  # fmt: skip
    town = Town(work, 4, ShardsRange(4, 4))
    town.run(3600)
    assert [(agent, to) for _, agent, to in town.moves] == [(of["shard-000"][0], "shard-002")]


def test_an_agent_that_fills_a_shard_alone_is_left_there() -> None:
    """Neither a move nor more shards help an agent that uses a whole processor, so nothing is changed for it."""
    town = Town({"alone": 1.0}, 2, ShardsRange(2, 16))
    town.run(HOURS * 3600)
    assert (town.numbers, town.moves) == ([2], [])


def test_an_agent_that_must_stay_is_not_moved() -> None:
    """A hot agent without a target stays, and no shard is split for it."""
    town = Town({"hot": 0.6, **{f"cold {number}": 0.01 for number in range(40)}}, 2, ShardsRange(2, 8))
    town.moved["hot"] = shard_of("hot", 2)  # a person put it there
    town.run(HOURS * 3600)
    assert (town.numbers, town.moves) == ([2], [])


def test_too_few_measurements_decide_nothing() -> None:
    """If most measurements of the time are missing, because hosts did not answer, nothing is changed."""
    loads = {shard_name(shard): ShardLoad(1.0) for shard in range(2)}
    ends = [LoadSample(at * MICROSECONDS, loads) for at in (0, GROW_S)]
    assert plan(ends, 2, ShardsRange(2, 4), {}, GROW_S * MICROSECONDS) is None
    assert plan([], 2, ShardsRange(2, 4), {}, 0) is None


def test_the_limits_of_growing_and_shrinking_leave_a_gap() -> None:
    """Half of a load that splits a shard is more than what joins two."""
    assert SHRINK_LOAD * 2 < GROW_LOAD


def test_a_range_is_two_numbers() -> None:
    """A range is read from text, none from an empty one, and anything else is refused with an example."""
    assert range_from("2:16") == ShardsRange(2, 16)
    assert range_from(" 1:999 ") == ShardsRange(1, SHARDS_MAX)
    assert range_from("") is None
    for wrong in ("4", "0:4", "8:2", "1:1000", "2-16", "a:b", "-1:3", "1:2:3", "²:4"):
        with pytest.raises(BadInput, match="such as 2:16"):
            range_from(wrong)
