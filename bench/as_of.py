"""Measure viewing any moment of a long history against viewing its end.

Run as `python -m bench.as_of`; `bench.forks` and `bench.replay_agent` measure with the same agent.

One agent has 100,000 events in sealed files: it talks through an instant model until its context has been summarized a
few times, and then these turns are repeated. A look is what `everlog context` does except printing: open the store, and
compute the context and its request with a fresh view.
"""

import asyncio
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from bench.support.harness import Figure, Line, Noise, among, line, median, noise, options, show, timed, workspace
from bench.support.script import InstantModel, words
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import Draft, Record, UserMessage
from everlog.projections import DERIVER
from everlog.store import FileStore
from everlog.store.base.store_constants import MARK_RECORDS

KEYS = ("as_of_ratio", "chain_ms")
GOALS = ("<= 3", "< 15")
AGENT = "sam"
COMMIT_RECORDS = 20_000
WORDS = bytes(500)
"""About as many bytes as a record has."""
_SEQS = ("covers_from", "covers_to", "kept_from", "summary_seq")


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    events: int = 100_000
    turns: int = 240
    """Number of turns that the agent really runs, before they are repeated."""
    window: int = 8000
    """Context window in tokens."""
    looks: int = 60
    """Number of looks at the head, and as many at random moments."""


QUICK = Plan(looks=20)


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured, in wall milliseconds."""

    noise: Noise
    head: list[float]
    past: list[float]
    chain: list[float]
    hashing: list[float]
    """Floor of a chain value: as many hashes as are between two chain checkpoints, at the median."""
    seal_s: float
    bytes: int


async def talk(store: FileStore, plan: Plan, model: Callable[[], InstantModel]) -> list[Record]:
    """Return the records of an agent that talks long enough to be summarized a few times."""
    chance = random.Random(3)
    system = LocalSystem(store, models=lambda _: model())
    settings = Settings(model="instant", window=plan.window)
    async with system.agent("template", settings, command="bench.as_of") as agent:
        for _ in range(plan.turns):
            await agent.receive(UserMessage(text=words(chance, 20)))
            await agent.run()
    return list(store.reader("template").read("template"))


def again(records: Sequence[Record], events: int) -> Iterator[Record]:
    """Yield a history of `events` records: those between the first and the last summary are repeated, with later seqs
    and turns.
    """
    summaries = [place for place, record in enumerate(records) if record.type == "summary"]
    first, last = summaries[0], summaries[-1]
    length, turns = last - first, records[last].turn - records[first].turn
    for number in range(events):
        times = max(0, (number - first) // length)
        yield _later(records[number - times * length], times * length, times * turns)


def _later(record: Record, by: int, turns: int) -> Record:
    """Return a record, repeated so many records and turns later."""
    payload = record.payload
    if by and record.type in ("summary", "summary_expanded"):
        fields = json.loads(payload)
        payload = json.dumps({key: value + by if key in _SEQS else value for key, value in fields.items()})
    return msgspec.structs.replace(record, payload=payload, turn=record.turn + turns if record.turn else 0)


def grow(store: FileStore, plan: Plan, model: Callable[[], InstantModel] = InstantModel) -> float:
    """Create the agent with all its events, sealed. `model` makes its model. Return the CPU seconds of sealing."""
    records = asyncio.run(talk(store, plan, model))
    store.register(AGENT)
    log = store.open(AGENT, "bench.as_of")
    ids, now = RealIds(), RealClock().now()
    drafts = (
        Draft(
            **{field: getattr(record, field) for field in Draft.__struct_fields__}
            | {"event_id": ids.new(now + number), "recorded_at": now + number, "cause": None}
        )
        for number, record in enumerate(again(records, plan.events))
    )
    seq = 0
    while some := list(itertools.islice(drafts, COMMIT_RECORDS)):
        log.append(AGENT, seq, some)
        seq += len(some)
    begun = time.process_time()
    log.seal(DERIVER)
    cpu_s = time.process_time() - begun
    log.close()
    return cpu_s


def look(root: Path, as_of: int | None) -> int:
    """Do what `everlog context --as-of` does before it prints; return the bytes of the request."""
    system = LocalSystem(FileStore(root, RealClock().now))
    view = system.view(AGENT, as_of=as_of)
    try:
        return len(view.request())
    finally:
        view.close()


def measure(plan: Plan) -> Seen:
    """Grow the agent, then look at its end and at a random moment in turns."""
    with workspace() as folder:
        before = noise(folder)
        store = store_in(folder / "store")
        seal_s = grow(store, plan)
        return looked(store, plan, before, seal_s)


def store_in(folder: Path) -> FileStore:
    """Create an empty store."""
    clock = RealClock()
    return FileStore.create(folder, clock.now, RealIds().new(clock.now()))


def looked(store: FileStore, plan: Plan, before: Noise, seal_s: float) -> Seen:
    """Look at the end of the grown agent and at a random moment, in turns."""
    root, chance = store.root, random.Random(5)
    moments = [chance.randint(plan.events // 100, plan.events) for _ in range(plan.looks)]
    look(root, None)
    look(root, moments[0])
    head, past, chain, hashing = [], [], [], []
    for moment in moments:
        head.append(timed(lambda: look(root, None)))
        past.append(timed(lambda moment=moment: look(root, moment)))  # type: ignore[misc]
        chain.append(timed(lambda moment=moment: _chain(root, moment)))  # type: ignore[misc]
        hashing.append(timed(lambda: [sha256(WORDS).digest() for _ in range(MARK_RECORDS // 2)]))
    files = (root / "log" / store.partition_of(AGENT)).iterdir()
    return Seen(before, head, past, chain, hashing, seal_s, sum(path.stat().st_size for path in files))


def _chain(root: Path, seq: int) -> bytes:
    return FileStore(root, RealClock().now).reader(AGENT).chain(AGENT, seq)


def figures(seen: Seen) -> list[Figure]:
    """Return the ratio of the medians, and the median for a chain value."""
    return [
        Figure(KEYS[0], median(seen.past) / median(seen.head), "ratio", 1.0),
        Figure(KEYS[1], median(seen.chain), "ms", median(seen.hashing)),
    ]


def lines(seen: Seen, found: Sequence[Figure], plan: Plan) -> list[Line]:
    """Return the table: the figures with their goals, then details."""
    return [
        *(line(figure, goal) for figure, goal in zip(found, GOALS, strict=True)),
        *times(seen),
        Line("events", f"{plan.events:,}"),
        Line("sealing", f"{seen.seal_s:.2f} s of CPU"),
        Line("bytes an event", f"{seen.bytes / plan.events:.1f}"),
    ]


def times(seen: Seen) -> list[Line]:
    """Return the rows of the measured times."""
    kinds = {"look at the head": seen.head, "look at a moment": seen.past, "chain at a seq": seen.chain}
    return [Line(name, f"{median(each):.1f} ms", "", "", among(each) + " ms") for name, each in kinds.items()]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen)
    show("as_of", seen.noise, found, lines(seen, found, plan))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("as_of", "How much longer viewing any moment of a long history takes than viewing its end.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())
