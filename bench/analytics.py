"""Measure four questions to the logs of a whole fleet: time to answer, against SQLite, and the effect on writers.

Run as `python -m bench.analytics`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench`
checks them. Both systems must get the same rows and give the same answers.

The logs are written directly as sealed files, by the store's own writer (`fleetlog`). A time is that of a whole call of
`fleet_sql`: take the position, create the views, answer the question. SQLite has the same rows in a table whose primary
key is (agent, seq). It is asked the same questions in turns with everlog, each written as is usual for SQLite.
"""

import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import msgspec
import pyarrow.parquet as pq

from bench.support.fleetlog import PHRASE, Fleet, make
from bench.support.harness import Figure, Line, Noise, among, line, median, noise, options, show, workspace
from everlog.actors.memory.fleet_sql import fleet_sql
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import UserMessage, draft
from everlog.store import Append, FileLog, FileStore

KEYS = ("sql_s_max", "sql_vs_sqlite_min", "writers_ratio")
GOALS = ("< 1 (quick: < 0.2)", ">= 10", ">= 0.9")
WRITERS = 1000
AT_ONCE = 250
"""Number of agents whose commits share a frame."""
MESSAGE = "The harbour was quiet this morning, and we sailed out before the others had had their coffee."


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    agents: int = 10_000
    events: int = 1000
    """Number of events of each agent."""
    runs: int = 5
    pairs: int = 7
    """Number of stretches of writing, without questions and as many with."""
    stretch_s: float = 2.0


QUICK = Plan(events=100, pairs=4, stretch_s=0.8)


class Question(msgspec.Struct, frozen=True):
    """One question, as SQL over everlog's views and as SQL for SQLite."""

    ours: str
    theirs: str


TOKENS = """
SELECT agent_id, recorded_at / 86400000000, sum(json_extract(payload, '$.usage.total')) FROM records
WHERE type = 'model_reply' GROUP BY 1, 2
"""
FAILING = """
SELECT json_extract(payload, '$.name'), 'failed', count(*) FROM records
WHERE type = 'function_result' AND json_extract(payload, '$.ok') = 0 GROUP BY 1, 2
"""
PRESSED = """
WITH calls AS (SELECT agent_id, max(seq) AS seq FROM records WHERE type = 'model_reply' AND turn > 0 GROUP BY 1),
configs AS (SELECT agent_id, max(seq) AS seq FROM records WHERE type = 'agent_configured' GROUP BY 1)
SELECT r.agent_id, json_extract(r.payload, '$.usage.total') AS tokens FROM calls c
JOIN records r ON r.agent_id = c.agent_id AND r.seq = c.seq
JOIN configs g ON g.agent_id = c.agent_id JOIN records s ON s.agent_id = g.agent_id AND s.seq = g.seq
WHERE tokens >= 0.75 * json_extract(s.payload, '$.window')
"""
PHRASE_COUNT_SQL = f"""
SELECT count(*) FROM records WHERE type IN ('user_message', 'message_sent') AND instr(text, '{PHRASE}') > 0
"""
QUESTIONS = {
    "tokens by agent and day": Question(
        "SELECT agent_id, day, sum(tokens) FROM model_calls GROUP BY ALL",
        TOKENS,
    ),
    "failing functions by kind": Question(
        "SELECT name, kind, count(*) FROM failures WHERE what = 'function' GROUP BY ALL",
        FAILING,
    ),
    "agents under pressure now": Question(
        "SELECT agent_id, tokens FROM pressure WHERE used >= fraction",
        PRESSED,
    ),
    "full-text count of a phrase": Question(
        f"SELECT count(*) FROM messages WHERE contains(text, '{PHRASE}')",
        PHRASE_COUNT_SQL,
    ),
}


class Asked(msgspec.Struct, frozen=True):
    """Seconds of each run of one question."""

    ours: list[float]
    cpu: list[float]
    """CPU seconds of the runs in `ours`, of all threads of the process."""
    sqlite: list[float]


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    made_s: float
    records: int
    store_bytes: int
    sqlite_bytes: int
    asked: dict[str, Asked]
    raw: list[float]
    """Seconds that DuckDB alone needs to read the payloads of the same files and count their bytes."""
    alone: list[float]
    """Records a second, in each stretch of writing."""
    meanwhile: list[float]


def load(store: FileStore, path: Path) -> sqlite3.Connection:
    """Load the same rows into SQLite, in the order of its primary key."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = OFF")
    db.execute("PRAGMA synchronous = OFF")
    db.execute(
        "CREATE TABLE records (agent_id TEXT, seq INTEGER, commit_ INTEGER, event_id BLOB, recorded_at INTEGER, "
        "said_at INTEGER, type TEXT, turn INTEGER, step INTEGER, cause BLOB, version INTEGER, text TEXT, payload TEXT, "
        "PRIMARY KEY (agent_id, seq)) WITHOUT ROWID"
    )
    db.execute("BEGIN")
    with duckdb.connect(config={"threads": 2}) as reader:
        answer = reader.execute(
            "SELECT agent_id, seq, commit, event_id::VARCHAR, epoch_us(recorded_at), epoch_us(said_at), type, turn, "
            f"step, cause::VARCHAR, version, text, payload FROM read_parquet({_files(store)}) ORDER BY agent_id, seq"
        )
        while rows := answer.fetchmany(50_000):
            db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    db.execute("COMMIT")
    return db


def _files(store: FileStore) -> list[str]:
    return [str(path) for path in sorted(store.root.glob("log/*/*.parquet"))]


def _raw(files: list[str]) -> None:
    with duckdb.connect() as db:
        db.execute(f"SELECT sum(strlen(payload)) FROM read_parquet({files})").fetchall()


def questions(store: FileStore, db: sqlite3.Connection, runs: int) -> tuple[dict[str, Asked], list[float]]:
    """Ask every question in turns, after one round that warms the caches. Raises RuntimeError if the two answers
    differ.
    """
    found = {name: Asked([], [], []) for name in QUESTIONS}
    raw: list[float] = []
    files = _files(store)
    for run in range(runs + 1):
        raw += [_seconds(lambda: _raw(files))][: run > 0]
        for name, question in QUESTIONS.items():
            seconds, cpu, answer = _asked(store, question.ours)
            if run:
                found[name].ours.append(seconds)
                found[name].cpu.append(cpu)
            if run in (1, runs):  # SQLite is slow here, and varies little
                begun = time.perf_counter()
                rows = db.execute(question.theirs).fetchall()
                found[name].sqlite.append(time.perf_counter() - begun)
                if sorted(answer) != sorted(row[-1] for row in rows):
                    raise RuntimeError(f"{name}: the two answers differ")
    return found, raw


def _asked(store: FileStore, query: str) -> tuple[float, float, list[int]]:
    """Return wall and CPU seconds of one answer, and its last column, which is a number in every question."""
    wall, cpu = time.perf_counter(), time.process_time()
    table = fleet_sql(store, query)
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    return *seconds, table.column(-1).to_pylist()


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


class Writers:
    """A thousand agents that write to a shared log, with hundreds of commits in a sync."""

    def __init__(self, store: FileStore) -> None:
        self._clock, self._ids = RealClock(), RealIds()
        self._names = [f"writer-{number:04}" for number in range(WRITERS)]
        store.register_many(self._names, shared=True)
        self._seqs = dict.fromkeys(self._names, 0)
        self.log: FileLog = store.open_partition(store.partitions()[0], "bench.analytics")
        self._next = 0

    def write(self, seconds: float) -> float:
        """Write for `seconds` seconds; return the records a second."""
        begun, count = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            self._group()
            count += AT_ONCE
        return count / (time.perf_counter() - begun)

    def _group(self) -> None:
        now = self._clock.now()
        appends = []
        for name in self._names[self._next : self._next + AT_ONCE]:
            said = draft(
                UserMessage(text=MESSAGE),
                event_id=self._ids.new(now),
                recorded_at=now,
                turn=self._seqs[name] + 1,
                step=0,
            )
            appends.append(Append(name, self._seqs[name], [said]))
            self._seqs[name] += 1
        self.log.append_group(appends)
        self._next = (self._next + AT_ONCE) % WRITERS


def ask_forever(root: str) -> None:
    """Ask every question again and again, as `everlog sql` would, with low priority."""
    os.nice(10)
    store = FileStore(Path(root), RealClock().now)
    print("asking", flush=True)
    while True:
        for question in QUESTIONS.values():
            fleet_sql(store, question.ours)
            print("answered", flush=True)


@contextmanager
def asking(store: FileStore) -> Iterator[subprocess.Popen[str]]:
    """Run a process that asks questions, stopped until it gets SIGCONT; it prints a line after each answer.

    Raises RuntimeError if the process died while the block ran.
    """
    code = f"from bench.analytics import ask_forever; ask_forever({str(store.root)!r})"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGSTOP)
        yield child
        died = child.poll()
        if died is not None:
            raise RuntimeError(f"the process that asks questions ended with {died}")
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def writing(store: FileStore, plan: Plan) -> tuple[list[float], list[float]]:
    """Return the rates of writers without questions, and while questions are asked, measured in turns."""
    writers = Writers(store)
    alone, meanwhile = [], []
    try:
        with asking(store) as child:
            child.send_signal(signal.SIGCONT)
            assert child.stdout is not None
            child.stdout.readline()  # it has answered once, and continues
            child.send_signal(signal.SIGSTOP)
            writers.write(plan.stretch_s / 2)
            for number in range(plan.pairs):
                for asks in (False, True) if number % 2 else (True, False):
                    child.send_signal(signal.SIGCONT if asks else signal.SIGSTOP)
                    (meanwhile if asks else alone).append(writers.write(plan.stretch_s))
                    child.send_signal(signal.SIGSTOP)
    finally:
        writers.log.close()
    return alone, meanwhile


def measure(plan: Plan) -> Seen:
    """Create the fleet, ask, and write meanwhile, on the current folder's file system."""
    with workspace() as folder:
        before = noise(folder)
        (folder / "store").mkdir()
        begun = time.perf_counter()
        store = make(folder / "store", Fleet(plan.agents, plan.events))
        made_s = time.perf_counter() - begun
        files = [Path(name) for name in _files(store)]
        db = load(store, folder / "sqlite")
        try:
            asked, raw = questions(store, db, plan.runs)
        finally:
            db.close()
        alone, meanwhile = writing(store, plan)
        return Seen(
            noise=before,
            made_s=made_s,
            records=sum(pq.read_metadata(path).num_rows for path in files),
            store_bytes=sum(path.stat().st_size for path in files),
            sqlite_bytes=(folder / "sqlite").stat().st_size,
            asked=asked,
            raw=raw,
            alone=alone,
            meanwhile=meanwhile,
        )


def figures(seen: Seen) -> list[Figure]:
    """Return the figures of `KEYS`."""
    slowest = max(median(one.ours) for one in seen.asked.values())
    least = min(median(one.sqlite) / median(one.ours) for one in seen.asked.values())
    pairs = [with_ / without for with_, without in zip(seen.meanwhile, seen.alone, strict=True)]
    values = ((slowest, "s", median(seen.raw)), (least, "x", 1.0), (median(pairs), "x", 1.0))
    return [Figure(key, *value) for key, value in zip(KEYS, values, strict=True)]


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table: the figures, then each question."""
    pairs = [with_ / without for with_, without in zip(seen.meanwhile, seen.alone, strict=True)]
    runs = ("", "", among(pairs))
    rows = [line(figure, goal, run) for figure, goal, run in zip(found, GOALS, runs, strict=True)]
    for name, one in seen.asked.items():
        said = f"{median(one.ours):.3f} s, CPU {median(one.cpu):.2f} s"
        against = f"SQLite {median(one.sqlite):.2f} s"
        rows.append(Line(name, said, against, f"{median(one.sqlite) / median(one.ours):.1f}x", among(one.ours, 3)))
    rate = f"{statistics.median(seen.alone):,.0f} records/s alone"
    size = f"{seen.store_bytes / 1e6:,.0f} MB; SQLite {seen.sqlite_bytes / 1e6:,.0f} MB"
    rows += [
        Line("writers", rate, "", "", f"{statistics.median(seen.meanwhile):,.0f} meanwhile"),
        Line("records", f"{seen.records:,}", size, "", f"made in {seen.made_s:.0f} s"),
    ]
    return rows


def report(plan: Plan) -> None:
    """Measure and print."""
    seen = measure(plan)
    found = figures(seen)
    show("analytics", seen.noise, found, lines(seen, found))


def main() -> None:
    """Run the command."""
    about = "How long questions to the logs of a whole fleet take, against SQLite, and how much they slow down writers."
    report(QUICK if options("analytics", about).quick else Plan())


if __name__ == "__main__":
    main()
