"""Measure the archive: hybrid search among many agents' memories, following inserts, and rebuilding.

docs/explanation/benchmarks.md explains the keys of the figures, and `tests/bench` checks them.

Two stores, one with a tenth of the rows of the other (`--quick`: a third), hold agents with 10,000 memories of about
150 bytes each. Vectors of 256 numbers come from a stand-in, so that the archive is measured and not a model. Each
search has six words that some memory contains, and is for an agent whose rows are cached already.
"""

import random
import sys
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import lancedb
import msgspec
import numpy as np

from bench.support.harness import Figure, Line, Noise, among, line, median, noise, options, quantile, show, workspace
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import ArchivalInserted, Draft, draft
from everlog.store import Append, ArchiveQuery, FileLog, FileStore
from everlog.store.archive import Archive
from everlog.store.archive.archive_table import table_of
from everlog.store.archive.row_fold import ArchiveRow, digest_of

KEYS = ("hybrid_ms_p50", "inserts_per_s", "lag_s", "rebuild_per_s", "growth")
DIMENSION = 256
WORDS = 5_000
TEXT_WORDS = 24
QUERY_WORDS = 6
TICK = 64
"""Number of inserts that share a sync, as in a tick of a host."""
END = 2**62


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claims are about the default."""

    own: int = 10_000
    """Number of memories of each agent."""
    few: int = 10
    """Number of agents in the small store, which is rebuilt."""
    many: int = 100
    """Number of agents in the large store."""
    searches: int = 200
    burst: int = 10_000
    rebuilds: int = 2


QUICK = Plan(few=1, many=3, searches=60, burst=2_000, rebuilds=1)


class StandIn:
    """Embedder that looks vectors up in a pool of 4,096, by the hash of the text."""

    name = "stand-in"
    dimension = DIMENSION

    def __init__(self) -> None:
        pool = np.random.default_rng(1).standard_normal((4096, DIMENSION), dtype=np.float32)
        self._pool = pool / np.linalg.norm(pool, axis=1, keepdims=True)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return self._pool[[zlib.crc32(text.encode()) % len(self._pool) for text in texts]]


class Speech:
    """Source of texts whose words are distributed as in a language: a few frequent, most of them rare."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        weights = [1 / (rank + 1) for rank in range(WORDS)]
        self._words = chance.choices([f"word{rank}" for rank in range(WORDS)], weights, k=200_000)
        self._chance = chance

    def some(self, count: int) -> str:
        start = self._chance.randrange(len(self._words) - count)
        return " ".join(self._words[start : start + count])


class Place:
    """A store whose agents have 10,000 memories each, and its archive."""

    def __init__(self, folder: Path, agents: int, own: int) -> None:
        clock, self._ids = RealClock(), RealIds()
        self.now = clock.now
        self.store = FileStore.create(folder, clock.now, self._ids.new(clock.now()), shards=1)
        self.names = [f"agent-{number:04d}" for number in range(agents)]
        self.store.register_many(self.names, shared=True)
        self.log: FileLog = self.store.open_partition("shard-000", "bench.archive")
        self.archive = Archive(self.store, StandIn())
        self.speech = Speech(7)
        self.texts: list[str] = []
        self._own = own

    def fill(self) -> None:
        """Append the memories of every agent, in commits of fifty."""
        for start in range(0, self._own, 50):
            appends = [Append(name, start, [self.memory() for _ in range(50)]) for name in self.names]
            self.log.append_group(appends)
        self.log.seal()

    def memory(self, text: str = "") -> Draft:
        text = text or self.speech.some(TEXT_WORDS)
        if len(self.texts) < self._own:
            self.texts.append(text)
        at = self.now()
        return draft(ArchivalInserted(text=text), event_id=self._ids.new(at), recorded_at=at, turn=1, step=1)

    def search(self, name: str) -> float:
        """Return the milliseconds of one search."""
        query = self.speech.some(QUERY_WORDS)
        begun = time.perf_counter()
        found = self.archive.search(ArchiveQuery(query=query, agent_id=name, as_of=END, as_of_time=END))
        assert found.total
        return (time.perf_counter() - begun) * 1000

    def searches(self, count: int) -> list[float]:
        """Return the milliseconds of `count` searches, of agents whose rows are cached already."""
        names = self.names[:: max(1, len(self.names) // 5)]
        for name in names:
            self.search(name)
        return [self.search(names[number % len(names)]) for number in range(count)]

    def cold(self) -> list[float]:
        """Return the milliseconds of the first search of agents whose rows are not cached."""
        self.archive.close()
        return [self.search(name) for name in self.names[:5]]

    def close(self) -> None:
        self.archive.close()
        self.log.close()


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    small: list[float]
    large: list[float]
    cold: list[float]
    search_cpu: float
    """CPU milliseconds of a search, including a few first searches."""
    rebuild_cpu: float
    """Rows rebuilt in a second of CPU."""
    dot: list[float]
    """Milliseconds of the bare comparison of 10,000 vectors."""
    inserts: float
    bare_inserts: float
    """Rate of the same appends, a second, while the archive does not follow."""
    lag: float
    rebuilds: list[float]
    bare_rows: float
    """Ready-made rows that LanceDB alone writes in a second."""


@contextmanager
def place(folder: Path, agents: int, own: int) -> Iterator[Place]:
    found = Place(folder, agents, own)
    try:
        found.fill()
        yield found
    finally:
        found.close()


def burst(place: Place, count: int, *, follow: bool) -> tuple[float, float]:
    """Return the memories acknowledged a second while the index follows, and the seconds that it needs after the
    last.
    """
    heads = {name: place.log.head(name).seq for name in place.names}
    chance = random.Random(3)
    stop = threading.Event()

    def following() -> None:
        while not stop.is_set():
            place.archive.follow(["shard-000"])

    thread = threading.Thread(target=following)
    if follow:
        thread.start()
    begun = time.perf_counter()
    for _ in range(count // TICK):
        appends = []
        for _ in range(TICK):
            name = chance.choice(place.names)
            appends.append(Append(name, heads[name], [place.memory(chance.choice(place.texts))]))
            heads[name] += 1
        place.log.append_group(appends)
    acknowledged = time.perf_counter()
    if follow:
        stop.set()
        thread.join()
        place.archive.follow(["shard-000"])
    return count // TICK * TICK / (acknowledged - begun), time.perf_counter() - acknowledged


def rebuilds(place: Place, count: int) -> tuple[list[float], float]:
    """Return the rows rebuilt a second from the log, with all vectors cached; and the rows a second of CPU."""
    place.archive.rebuild()  # embeds all texts
    rates = []
    cpu = time.process_time()
    for _ in range(count):
        begun = time.perf_counter()
        rows = place.archive.rebuild().rows
        rates.append(rows / (time.perf_counter() - begun))
    return rates, count * rows / (time.process_time() - cpu)


def bare_rows(folder: Path, count: int) -> float:
    """Return the ready-made rows that LanceDB alone writes a second."""
    speech, vectors = Speech(9), np.zeros((count, DIMENSION), np.float16)
    rows = []
    for number in range(count):
        text = speech.some(TEXT_WORDS)
        rows.append(
            ArchiveRow(memory_id=str(number), kind="memory", memory=str(number), agent_id="sam", seq=number, text=text,
                created_at=0, seq_from=number, from_at=0, digest=digest_of(text))
        )  # fmt: skip
    table = table_of(rows, vectors, [bytes(4 * TEXT_WORDS)] * count)
    bare = lancedb.connect(str(folder)).create_table("bare", schema=table.schema)
    begun = time.perf_counter()
    for _ in range(5):
        bare.add(table)
    return 5 * count / (time.perf_counter() - begun)


def dots(count: int, own: int) -> list[float]:
    """Return the milliseconds of comparing one agent's vectors with one vector, and nothing else."""
    vectors = np.random.default_rng(2).standard_normal((own, DIMENSION), dtype=np.float32)
    times = []
    for number in range(count):
        begun = time.perf_counter()
        np.einsum("ij,j->i", vectors, vectors[number % own])
        times.append((time.perf_counter() - begun) * 1000)
    return times


def measure(folder: Path, plan: Plan) -> Seen:
    with place(folder / "small", plan.few, plan.own) as small:
        rates, cpu_rate = rebuilds(small, plan.rebuilds)
        few = small.searches(plan.searches)
    with place(folder / "large", plan.many, plan.own) as large:
        large.archive.rebuild()
        cpu = time.process_time()
        many = large.searches(plan.searches)
        cpu = (time.process_time() - cpu) * 1000 / plan.searches
        cold = large.cold()
        bare, _ = burst(large, plan.burst, follow=False)
        large.archive.follow()
        inserts, lag = burst(large, plan.burst, follow=True)
        assert not large.archive.follow().commits
    return Seen(
        noise=noise(folder), small=few, large=many, cold=cold, dot=dots(plan.searches, plan.own), inserts=inserts,
        bare_inserts=bare, lag=lag, rebuilds=rates, bare_rows=bare_rows(folder / "bare", plan.own), search_cpu=cpu,
        rebuild_cpu=cpu_rate,
    )  # fmt: skip


def report(plan: Plan) -> None:
    """Measure and print."""
    with workspace() as folder:
        seen = measure(folder, plan)
    rows = plan.many * plan.own
    figures = [
        Figure("hybrid_ms_p50", median(seen.large), "ms", median(seen.dot)),
        Figure("inserts_per_s", seen.inserts, "/s", seen.bare_inserts),
        Figure("lag_s", seen.lag, "s", plan.burst / seen.bare_rows),
        Figure("rebuild_per_s", median(seen.rebuilds), "rows/s", seen.bare_rows),
        Figure("growth", median(seen.large) / median(seen.small), "x", 1.0),
    ]
    lines = [
        line(figures[0], "<= 15 ms", f"p95 {quantile(seen.large, 0.95):.1f}, {among(seen.large, 1)}"),
        line(figures[1], ">= 1,000/s", f"a burst of {plan.burst:,}, while the index follows"),
        line(figures[2], "", "after the last of the burst"),
        line(figures[3], ">= 20,000/s", among(seen.rebuilds, 0)),
        line(figures[4], "", f"{rows:,} rows against {plan.few * plan.own:,}"),
        Line("first search of an agent", f"{median(seen.cold):.0f} ms", runs=among(seen.cold, 0)),
        Line("CPU of a search", f"{seen.search_cpu:.1f} ms", runs="first searches of five agents included"),
        Line("rows rebuilt in a CPU second", f"{seen.rebuild_cpu:,.0f}"),
        Line("rows in the table", f"{rows:,}", runs="" if plan == Plan() else "the claim is about 1,000,000"),
    ]
    show("archive", seen.noise, figures, lines)


def main(argv: Sequence[str] | None = None) -> None:
    plan = QUICK if options("archive", __doc__ or "", argv).quick else Plan()
    report(plan)


if __name__ == "__main__":
    main(sys.argv[1:])
