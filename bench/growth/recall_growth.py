"""Measure a search of recall memory in agents of 500, 5,000 and 50,000 messages: CPU, memory, and the first search.

Run as `python -m bench.growth.recall_growth`; docs/explanation/benchmarks.md explains the keys of its figures. The
floor of a search is one in the smallest agent.

Each agent has a store and a process of its own, in which another agent was searched before, so that libraries and the
embedder are loaded. Vectors of all messages are kept before the measurement: those of an agent are made once in its
life.
"""

import asyncio
import random
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from bench.support.harness import ROOT, Figure, Line, Noise, median, noise, options, show, workspace
from bench.support.script import WORDS
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.api import open_system
from everlog.actors.archive.archive_index import local_archive
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.real_clock import RealClock
from everlog.events import MessageSent, Record, UserMessage, draft, place, uuid7
from everlog.projections import HEAD, Projections, activate_many
from everlog.store import FileStore

SIZES, QUICK_SIZES = (500, 5_000, 50_000), (50, 500)
"""Numbers of messages of the agents, ascending."""
SEARCHES = 40
MESSAGE_WORDS, QUERY_WORDS = 24, 5
RARE = 0.2
"""Part of the words that come from a vocabulary of thousands, as names and things do."""
START, PAUSE = datetime(2016, 1, 1, tzinfo=UTC), timedelta(minutes=20)
SMALL, LARGE, SMALL_MESSAGES = "small", "large", 10
IMPORTED_AT_ONCE = 1_000
WINDOW = 100_000_000
"""Tokens of the agents' windows: nothing is summarized, so that only searches are measured."""
EMBEDDING_S = 600
"""Seconds within which the vectors of all messages must be made."""
KEYS = ("search_ms", "search_new_ms", "first_ms", "memory_mb")
GOALS = {"search_ms": "40", "first_ms": "1500"}
"""Goals of the largest agent."""


class Growth(msgspec.Struct, frozen=True):
    """Costs of searches in an agent of one size."""

    search_ms: float
    """Median CPU milliseconds of a page of results."""
    search_new_ms: float
    """Median CPU milliseconds of a page when two messages have come since the last."""
    first_ms: float
    """CPU milliseconds of the first page after the agent was loaded."""
    memory_mb: float
    """Megabytes by which the process grew in that first search."""


def sentence(chance: random.Random, count: int) -> str:
    """Return words, of which some are rare."""
    return " ".join(
        chance.choice(WORDS) + (chance.choice(WORDS) if chance.random() < RARE else "") for _ in range(count)
    )


def said(seed: int, count: int, first: int = 0) -> list[ImportedMessage]:
    """Return messages of user and agent in turn, each the same whatever the others are."""
    found = []
    for number in range(first, first + count):
        text = sentence(random.Random(f"{seed} {number}"), MESSAGE_WORDS)
        event = MessageSent(text=text, imported=True) if number % 2 else UserMessage(text=text, imported=True)
        found.append(ImportedMessage(event, START + number * PAUSE))
    return found


async def prepare(root: Path, messages: int) -> None:
    """Make a store with an agent of that size and a small one, and the vectors of both."""
    async with open_system(root, runtime="local", timers=False) as system:
        for seed, (name, count) in enumerate(((SMALL, SMALL_MESSAGES), (LARGE, messages))):
            agent = await system.agent(name, Settings(model="offline", window=WINDOW))
            for first in range(0, count, IMPORTED_AT_ONCE):
                await agent.import_messages(said(seed, min(IMPORTED_AT_ONCE, count - first), first))
            await agent.unload()
    store = FileStore(root, RealClock().now)
    archive = local_archive(store, note=print)
    try:
        with Projections() as engine:
            activate_many(engine, store.reader(LARGE), [LARGE])
            searcher = AgentSearcher(engine, LARGE, HEAD, "UTC", archive=archive)
            for _ in range(EMBEDDING_S):  # a search does not wait for so many vectors
                if (await searcher.recall("boat", 0)).by_meaning:
                    break
                await asyncio.sleep(1)
    finally:
        await archive.close()


async def search_costs(root: Path, searches: int) -> Growth:
    """Search in the small agent, then in the large one. Return the costs of the second."""
    store = FileStore(root, RealClock().now)
    archive = local_archive(store, note=print)
    try:
        with Projections() as engine:
            activate_many(engine, store.reader(SMALL), [SMALL])
            await _search(AgentSearcher(engine, SMALL, HEAD, "UTC", archive=archive), random.Random(0))
            activate_many(engine, store.reader(LARGE), [LARGE])
            engine.query("SELECT count(*) FROM records WHERE agent_id = ?", [LARGE], [LARGE])  # reads all records
            return await _costs(engine, AgentSearcher(engine, LARGE, HEAD, "UTC", archive=archive), searches)
    finally:
        await archive.close()


async def _costs(engine: Projections, searcher: AgentSearcher, searches: int) -> Growth:
    chance = random.Random(1)
    before = _memory_mb()
    first = await _search(searcher, chance)
    grown = _memory_mb() - before
    known = [await _search(searcher, chance) for _ in range(searches)]
    new = []
    head = engine.query("SELECT max(seq) AS head FROM records WHERE agent_id = ?", [LARGE], [LARGE])[0]["head"]
    for number in range(searches // 4):
        seqs = (head + 2 * number + 1, head + 2 * number + 2)
        engine.add([_record(seq, one) for seq, one in zip(seqs, said(2, 2, 2 * number), strict=True)])
        new.append(await _search(searcher, chance))
    return Growth(median(known or [0]), median(new or [0]), first, grown)


def _record(seq: int, message: ImportedMessage) -> Record:
    time_us = 2**40 * 1_000 + seq
    made = draft(message.event, event_id=uuid7(time_us, seq), recorded_at=time_us, turn=0, step=0)
    return place(made, LARGE, seq, seq)


async def _search(searcher: AgentSearcher, chance: random.Random) -> float:
    """Return the CPU milliseconds of a page of results of an agent's search."""
    query = sentence(chance, QUERY_WORDS)
    begun = time.process_time()
    page = await searcher.recall(query, 0)
    taken = (time.process_time() - begun) * 1000
    if not page.by_meaning:
        raise RuntimeError("a search compared words alone, so that its cost says nothing")
    return taken


def _memory_mb() -> float:
    """Return the megabytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize() / 1e6


def measure(folder: Path, sizes: Sequence[int], searches: int) -> dict[int, Growth]:
    """Return the costs by number of messages, each measured in a process of its own."""
    found = {}
    for size in sizes:
        root = folder / f"{size}"
        _in_process("prepare", root, size)
        found[size] = msgspec.json.decode(_in_process("search", root, searches), type=Growth)
    return found


def _in_process(work: str, root: Path, count: int) -> bytes:
    """Run a part of the measurement in a process of its own. Return its last line."""
    command = [sys.executable, "-m", "bench.growth.recall_growth", work, str(root), str(count)]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return run.stdout.splitlines()[-1] if run.stdout else b""


def figures(found: Mapping[int, Growth]) -> list[Figure]:
    """Return the claimed figures of the largest agent. The floors are those of the smallest."""
    least, most = found[min(found)], found[max(found)]
    units = {key: "MB" if key == "memory_mb" else "ms" for key in KEYS}
    return [Figure(key, getattr(most, key), units[key], getattr(least, key)) for key in KEYS]


def lines(found: Mapping[int, Growth]) -> list[Line]:
    """Return the table: a row for each figure and size."""
    most = max(found)
    return [
        Line(key, f"{getattr(one, key):.3g}", "", GOALS.get(key, "") if size == most else "", f"{size:,} messages")
        for key in KEYS
        for size, one in sorted(found.items())
    ]


def report(sizes: Sequence[int], searches: int) -> None:
    """Measure agents of these sizes and print the figures."""
    with workspace() as folder:
        before: Noise = noise(folder)
        found = measure(folder, sizes, searches)
    show("recall_growth", before, figures(found), lines(found))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print, or run one part of the measurement."""
    given = sys.argv[1:] if argv is None else list(argv)
    if given[:1] == ["prepare"]:
        asyncio.run(prepare(Path(given[1]), int(given[2])))
    elif given[:1] == ["search"]:
        costs = asyncio.run(search_costs(Path(given[1]), int(given[2])))
        print(msgspec.json.encode(costs).decode())
    else:
        args = options("recall_growth", "What a search costs in an agent of years.", given)
        report(QUICK_SIZES if args.quick else SIZES, SEARCHES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
