"""Measure an acknowledged commit: against a bare sync, in groups, in a log of a million records, against SQLite.

Run as `python -m bench.append`; docs/explanation/benchmarks.md explains its keys. All are measured in turns, one by
one, so that a busy minute affects all: an append to a log on the disk, a write and sync of as many bytes to a bare
file, a commit of the same row to SQLite (WAL, synchronous FULL).
"""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.support.harness import (
    BareFile,
    Figure,
    Line,
    Noise,
    among,
    line,
    median,
    noise,
    options,
    quantile,
    ratios,
    show,
    timed,
    together,
    workspace,
)
from bench.support.peers import Rows
from bench.support.script import words
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import Draft, UserMessage, draft, uuid7
from everlog.store import Append, FileLog, FileStore, RealDisk
from everlog.store.base.disk import Bytes, RealFile

KEYS = ("single_extra_us", "group_vs_floor", "growth", "single_vs_sqlite", "group_vs_sqlite")
MESSAGE_WORDS = 26
"""Number of words in a message: about 150 bytes."""
US = 1000
FLOORS = ("log", "bare", "sqlite")


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    runs: int = 5
    singles: int = 400
    """Number of single commits in a run."""
    agents: int = 64
    groups: int = 80
    """Number of groups in a run, each with one commit of each agent."""
    young: int = 1_000
    old: int = 1_000_000
    """Number of records in each of the two logs that are compared."""
    compared: int = 300
    """Number of single commits to each of the two in a run."""


QUICK = Plan(runs=2)


class Run(msgspec.Struct, frozen=True):
    """Milliseconds of each single commit and of each group; groups are not measured with SQLite."""

    single: dict[str, list[float]]
    group: dict[str, list[float]]


class Age(msgspec.Struct, frozen=True):
    """Seconds of each single commit to one log, without its sync."""

    wall: list[float]
    cpu: list[float]


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    runs: list[Run]
    ages: list[dict[str, Age]]
    threads: float
    """Records a second of 64 threads, each appending one commit after the other."""
    callers: float
    """Records a second of two callers of groups: one caller's group gathers while the other's is synced."""
    bytes: tuple[int, int]
    """Bytes of a frame with one commit, and of a frame with a group."""


class SyncedFile:
    """An open file that adds up the time of its syncs."""

    def __init__(self, file: RealFile) -> None:
        self._file = file
        self.wall_s = 0.0
        self.cpu_s = 0.0

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        self._file.write(parts, offset)

    def sync(self) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        self._file.sync()
        self.wall_s += time.perf_counter() - wall
        self.cpu_s += time.thread_time() - cpu

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class SyncedDisk(RealDisk):
    """The real disk; `newest` is the file that was created last."""

    newest: SyncedFile

    def create(self, path: Path) -> SyncedFile:  # type: ignore[override]
        self.newest = SyncedFile(super().create(path))
        return self.newest


class Speaker:
    """Source of user messages of about 150 bytes, each with an id of its own."""

    def __init__(self, seed: int) -> None:
        self._clock, self._ids = RealClock(), RealIds()
        self._texts = [words(random.Random(seed * 1000 + number), MESSAGE_WORDS) for number in range(200)]
        self._said = 0

    def say(self) -> Draft:
        """Return the next message."""
        at = self._clock.now()
        self._said += 1
        event = UserMessage(text=self._texts[self._said % len(self._texts)])
        return draft(event, event_id=self._ids.new(at), recorded_at=at, turn=self._said, step=0)


@contextmanager
def shard(folder: Path, disk: RealDisk | None = None) -> Iterator[FileLog]:
    """Open a new log for many agents."""
    clock = RealClock()
    store = FileStore.create(folder, clock.now, RealIds().new(clock.now()), shards=1, disk=disk)
    log = store.open_partition("shard-0", "bench.append")
    try:
        yield log
    finally:
        log.close()


class Bench:
    """A log, a bare file and a SQLite database, measured in turns."""

    def __init__(self, folder: Path, log: FileLog, seed: int) -> None:
        self.log = log
        self.bare = BareFile(folder / f"bare-{seed}")
        self.rows = Rows(folder / f"rows-{seed}.db")
        self.speaker = Speaker(seed)
        self.seq = 0

    def frame_bytes(self, agents: int) -> int:
        """Return the bytes of the frame that a group of so many agents takes."""
        before = self.log.unsealed_bytes
        self.log.append_group(self._group("frame", agents))
        return self.log.unsealed_bytes - before

    def single(self, count: int, size: int) -> dict[str, list[float]]:
        """Measure `count` commits of one event: log, bare file (`size` bytes) and SQLite, in rotating order."""
        times: dict[str, list[float]] = {name: [] for name in FLOORS}
        for number in range(count):
            said, seq = self.speaker.say(), number
            works: dict[str, Callable[[], object]] = {
                "log": lambda said=said, seq=seq: self.log.append("sam", seq, [said]),
                "bare": lambda: self.bare.append(size),
                "sqlite": lambda said=said, seq=seq: self.rows.append("sam", seq, said),
            }
            for turn in range(len(FLOORS)):
                name = FLOORS[(number + turn) % len(FLOORS)]
                times[name].append(timed(works[name]))
        return times

    def group(self, count: int, agents: int, size: int) -> dict[str, list[float]]:
        """Measure `count` groups, each with the log and, as one write and one sync of `size` bytes, with the bare
        file.
        """
        times: dict[str, list[float]] = {"log": [], "bare": []}
        for _ in range(count):
            appends = self._group("agent", agents)
            times["log"].append(timed(lambda appends=appends: self.log.append_group(appends)))
            times["bare"].append(timed(lambda: self.bare.append(size)))
        return times

    def _group(self, name: str, agents: int) -> list[Append]:
        names = [f"{name}-{number}" for number in range(agents)]
        return [Append(agent, self.log.head(agent).seq, [self.speaker.say()]) for agent in names]

    def close(self) -> None:
        self.bare.close()
        self.rows.close()


def run(folder: Path, plan: Plan, seed: int, sizes: tuple[int, int]) -> Run:
    """Measure one new log, bare file and database."""
    with shard(folder / f"run-{seed}") as log:
        bench = Bench(folder, log, seed)
        single = bench.single(plan.singles, sizes[0])
        group = bench.group(plan.groups, plan.agents, sizes[1])
        bench.close()
    return Run(single, group)


def sizes_of(folder: Path, plan: Plan) -> tuple[int, int]:
    """Return the bytes of a frame with one commit, and with a group: the sizes that the bare file writes."""
    with shard(folder / "sizes") as log:
        bench = Bench(folder, log, 0)
        sizes = bench.frame_bytes(1), bench.frame_bytes(plan.agents)
        bench.close()
    return sizes


def grow(log: FileLog, records: int) -> None:
    """Append `records` records to the agent `sam`, in commits of 500 and groups of 10,000."""
    at = RealClock().now()
    said = draft(UserMessage(text=words(random.Random(0), 10)), event_id="", recorded_at=at, turn=1, step=0)
    chance = random.Random(1)
    ids = iter(lambda: uuid7(at, chance.getrandbits(74)), "")
    seq = 0
    while seq < records:
        appends = []
        while seq < records and len(appends) < 20:
            drafts = [msgspec.structs.replace(said, event_id=next(ids)) for _ in range(min(500, records - seq))]
            appends.append(Append("sam", seq, drafts))
            seq += len(drafts)
        log.append_group(appends)


def ages(folder: Path, plan: Plan) -> list[dict[str, Age]]:
    """Measure single commits to a young log, to a second young log (for the noise) and to an old log, in turns."""
    sizes = {"young": plan.young, "again": plan.young, "old": plan.old}
    disks = {name: SyncedDisk() for name in sizes}
    speaker = Speaker(0)
    with shard(folder / "young", disks["young"]) as young, shard(folder / "again", disks["again"]) as again, \
            shard(folder / "old", disks["old"]) as old:  # fmt: skip
        logs = {"young": young, "again": again, "old": old}
        for name, log in logs.items():
            grow(log, sizes[name])
        found = []
        for _ in range(plan.runs):
            measured = {name: Age([], []) for name in logs}
            for number in range(plan.compared):
                names = [*logs][number % 3 :] + [*logs][: number % 3]
                for name in names:
                    _unsynced(logs[name], disks[name].newest, speaker.say(), measured[name])
            found.append(measured)
    return found


def _unsynced(log: FileLog, file: SyncedFile, said: Draft, age: Age) -> None:
    seq = log.head("sam").seq
    synced_wall, synced_cpu = file.wall_s, file.cpu_s
    wall, cpu = time.perf_counter(), time.thread_time()
    log.append("sam", seq, [said])
    age.cpu.append(time.thread_time() - cpu - (file.cpu_s - synced_cpu))
    age.wall.append(time.perf_counter() - wall - (file.wall_s - synced_wall))


def threads(folder: Path, plan: Plan) -> float:
    """Return the records a second of one thread for each agent, each appending one commit after the other."""
    each = max(1, plan.groups // 4)
    said = [[Speaker(number).say() for _ in range(each)] for number in range(plan.agents)]
    with shard(folder / "threads") as log:

        def speak(number: int) -> None:
            for seq, message in enumerate(said[number]):
                log.append(f"agent-{number}", seq, [message])

        return plan.agents * each / together(speak, plan.agents)


def callers(folder: Path, plan: Plan) -> float:
    """Return the records a second of two callers, each with groups of that many agents."""
    speaker = Speaker(1)

    def group(caller: int, seq: int) -> list[Append]:
        return [Append(f"agent-{caller}-{number}", seq, [speaker.say()]) for number in range(plan.agents)]

    groups = [[group(caller, seq) for seq in range(plan.groups)] for caller in range(2)]
    with shard(folder / "callers") as log:

        def speak(number: int) -> None:
            for appends in groups[number]:
                log.append_group(appends)

        return 2 * plan.agents * plan.groups / together(speak, 2)


def measure(plan: Plan) -> Seen:
    """Measure everything, on the current folder's file system."""
    with workspace() as folder:
        before = noise(folder)
        sizes = sizes_of(folder, plan)
        runs = [run(folder, plan, seed, sizes) for seed in range(1, plan.runs + 1)]
        rates = threads(folder, plan), callers(folder, plan)
        return Seen(before, runs, ages(folder, plan), *rates, sizes)


def extras(seen: Seen) -> list[float]:
    """Return the microseconds of a single commit above the bare file, by run."""
    return [(median(run.single["log"]) - median(run.single["bare"])) * US for run in seen.runs]


def over(above: Sequence[Sequence[float]], below: Sequence[Sequence[float]]) -> list[float]:
    """Return median over median, by run."""
    return ratios([median(values) for values in above], [median(values) for values in below])


def growths(seen: Seen, name: str) -> list[float]:
    """Return the cost of a commit over the young log's, by run: the worse of wall and CPU time, without the sync."""
    wall = over([age[name].wall for age in seen.ages], [age["young"].wall for age in seen.ages])
    cpu = over([age[name].cpu for age in seen.ages], [age["young"].cpu for age in seen.ages])
    return [max(pair) for pair in zip(wall, cpu, strict=True)]


def series(seen: Seen, plan: Plan) -> dict[str, tuple[list[float], list[float]]]:
    """Return the runs of each figure, and those of its floor."""
    single = {name: [run.single[name] for run in seen.runs] for name in FLOORS}
    group = {name: [run.group[name] for run in seen.runs] for name in ("log", "bare")}
    bare_us = [median(values) * US for values in single["bare"]]
    by_row = {name: [ratio * plan.agents for ratio in over(single["sqlite"], group[name])] for name in group}
    found = (
        (extras(seen), bare_us),
        (over(group["bare"], group["log"]), [1.0]),
        (growths(seen, "old"), growths(seen, "again")),
        (over(single["sqlite"], single["log"]), over(single["sqlite"], single["bare"])),
        (by_row["log"], by_row["bare"]),
    )
    return dict(zip(KEYS, found, strict=True))


def figures(seen: Seen, plan: Plan) -> list[Figure]:
    """Return the five figures: medians of the runs."""
    found = series(seen, plan)
    return [
        Figure(key, median(runs), "us" if key.endswith("_us") else "ratio", median(floors))
        for key, (runs, floors) in found.items()
    ]


GOALS = ("<= 120 (150 accepted)", ">= 0.7", "<= 1.1", ">= 1.0", ">= 10")


def lines(seen: Seen, found: Sequence[Figure], plan: Plan) -> list[Line]:
    """Return the table: the figures with their goals, then details."""
    runs = [values for values, _ in series(seen, plan).values()]
    singles = [value for run in seen.runs for value in run.single["log"]]
    logs, bares = ([value for run in seen.runs for value in run.group[name]] for name in ("log", "bare"))
    rate, bare_rate = (plan.agents / median(times) * 1000 for times in (logs, bares))
    rows = [line(*given, among(values)) for *given, values in zip(found, GOALS, runs, strict=True)]
    single_us, p99_us = median(singles) * US, quantile(singles, 0.99) * US
    cpu_us = median([median(age["young"].cpu) for age in seen.ages]) * 1_000_000
    return [
        *rows,
        Line("single commit", f"{single_us:,.0f} us", "", "", f"p99 {p99_us:,.0f}; frames of {seen.bytes[0]:,} bytes"),
        Line(
            f"groups of {plan.agents}", f"{rate:,.0f}/s", f"{bare_rate:,.0f}", "", f"frames of {seen.bytes[1]:,} bytes"
        ),
        Line("two callers of groups", f"{seen.callers:,.0f}/s", f"{bare_rate:,.0f}", "", "one gathers, one syncs"),
        Line(f"{plan.agents} threads", f"{seen.threads:,.0f}/s", f"{bare_rate:,.0f}", "", "one commit after the other"),
        Line(
            "CPU of a commit", f"{cpu_us:,.0f} us", "", "", f"without its sync; records: {plan.young:,}, {plan.old:,}"
        ),
    ]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen, plan)
    show("append", seen.noise, found, lines(seen, found, plan))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("append", "What an acknowledged commit costs above a bare write and sync.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())
