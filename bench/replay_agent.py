"""Measure going back in an agent's history: every request that it ever sent, rendered again and compared; any moment
viewed (`bench.as_of`) and forked (`bench.forks`), in a history of 100,000 events.

Run as `python -m bench.replay_agent`. docs/explanation/benchmarks.md explains the keys of its figures, and
`tests/bench` checks them.

One agent talks until its model was called a thousand times: it answers, edits its memory, stores and searches, and has
its oldest messages summarized whenever its window is full. Its log is sealed. Then all of it is verified, as `everlog
verify` does: open and read the log, compute its chain, render and hash every request again, process every reply again.
The floor is the work that cannot be avoided: hashing as many bytes as were sent.
"""

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256

import msgspec

from bench import as_of, forks
from bench.as_of import store_in
from bench.support.harness import Figure, Line, Noise, among, line, median, noise, options, show, timed, workspace
from bench.support.script import InstantModel, words
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.replay.rebuild_check import ReplayReport, verify
from everlog.events import UserMessage
from everlog.projections import DERIVER
from everlog.store import FileStore

KEYS = ("verify_s", *forks.KEYS, *as_of.KEYS)
GOALS = ("<= 2, all equal", *forks.GOALS, *as_of.GOALS)
AGENT = "sam"
MESSAGE_WORDS = 20
FACT_WORDS = 5
BUSY_EVERY = 5
"""One of so many replies does more than answer: it edits, stores or searches, and the next one answers."""


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    calls: int = 1000
    """Smallest number of model calls in the agent's history."""
    window: int = 8000
    """Context window in tokens."""
    runs: int = 9
    long: as_of.Plan = as_of.Plan()
    """Plan of the agent whose past is viewed and which is forked."""


QUICK = Plan(runs=3, long=as_of.QUICK)
"""The same agents, with fewer measurements."""


class Worker(InstantModel):
    """Model that answers at once; now and then it edits its memory, stores something or searches before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self._busy = 0

    def _body(self, request: bytes) -> dict[str, object]:
        self.asked += 1
        return super()._body(request)

    def _said(self) -> dict[str, object]:
        self._busy += 1
        if self._busy % BUSY_EVERY:
            return super()._said()
        call = {"id": f"call_{self._busy}", "type": "function", "function": self._memory_call()}
        return {"role": "assistant", "content": words(self._chance, MESSAGE_WORDS), "tool_calls": [call]}

    def _memory_call(self) -> dict[str, str]:
        """Return a function and its arguments; each requests a heartbeat, in which the answer is given."""
        fact = words(self._chance, FACT_WORDS)
        name, arguments = self._chance.choice(
            [
                ("core_memory_append", {"name": "human", "content": fact}),
                ("core_memory_append", {"name": "persona", "content": fact}),
                ("archival_memory_insert", {"content": fact}),
                ("conversation_search", {"query": fact.split()[0]}),
            ]
        )
        return {"name": name, "arguments": json.dumps({**arguments, "request_heartbeat": True})}


class Verified(msgspec.Struct, frozen=True):
    """Results of verifying an agent several times."""

    seconds: list[float]
    hashing: list[float]
    """Seconds of the floor, measured in turns with `seconds`."""
    report: ReplayReport
    kinds: dict[str, int]
    """Number of records of each type in the log."""

    @property
    def equal(self) -> float:
        """Fraction of requests that were the same to the byte."""
        return len(self.report.calls.equal) / self.report.calls.calls


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    verified: Verified
    looked: as_of.Seen
    forked: forks.Seen


async def grow(store: FileStore, plan: Plan) -> None:
    """Create an agent whose model was called so often; seal its log."""
    worker, chance = Worker(), random.Random(7)
    system = LocalSystem(store, models=lambda _: worker)
    async with system.agent(AGENT, Settings(model="instant", window=plan.window), command="bench") as agent:
        while worker.asked < plan.calls:
            await agent.receive(UserMessage(text=words(chance, MESSAGE_WORDS)))
            await agent.run()
    log = store.open(AGENT, "bench")
    log.seal(DERIVER)
    log.close()


def verified(store: FileStore, plan: Plan) -> Verified:
    """Verify the agent, after one round that warms the caches. Raises RuntimeError if anything differs."""
    reports: list[ReplayReport] = []
    kinds = Counter(record.type for record in store.reader(AGENT).read(AGENT))

    def check() -> None:
        system = LocalSystem(store)
        view = system.view(AGENT)
        reports.append(verify(view, system.tools))
        view.close()

    seconds, hashing = [], []
    check()
    floor = hashed(store)
    for _ in range(plan.runs):
        seconds.append(timed(check) / 1000)
        hashing.append(timed(floor) / 1000)
    for report in reports:
        if report.faults or report.notes:
            raise RuntimeError(f"rendered requests differ from the sent ones: {[*report.faults, *report.notes][:3]}")
    return Verified(seconds, hashing, reports[0], dict(kinds))


def hashed(store: FileStore) -> Callable[[], object]:
    """Return the floor: a function that computes the SHA-256 of as many bytes as each request had."""
    view = LocalSystem(store).view(AGENT)
    sizes = [row["context_bytes"] for row in view.rows("model_calls")]
    view.close()
    body = memoryview(bytes(max(sizes)))
    return lambda: [sha256(body[:size]).digest() for size in sizes]


def measure(plan: Plan) -> Seen:
    """Grow the agent and verify it, on the current folder's file system."""
    with workspace() as folder:
        before = noise(folder)
        store = store_in(folder / "store")
        asyncio.run(grow(store, plan))
        found = verified(store, plan)
        past = store_in(folder / "long")
        looked = as_of.looked(past, plan.long, before, as_of.grow(past, plan.long))
        return Seen(before, found, looked, forks.forked(past, plan.long, before))


def figures(seen: Seen) -> list[Figure]:
    """Return the figures, in the order of `KEYS`."""
    verify_s = Figure(KEYS[0], median(seen.verified.seconds), "s", median(seen.verified.hashing))
    return [verify_s, *forks.figures(seen.forked), *as_of.figures(seen.looked)]


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table: the figures with their goals, then details."""
    log = seen.verified
    runs = {KEYS[0]: among(log.seconds)}
    rows = [line(figure, goal, runs.get(figure.key, "")) for figure, goal in zip(found, GOALS, strict=True)]
    told = ", ".join(f"{kind} {count:,}" for kind, count in sorted(log.kinds.items(), key=lambda item: -item[1]))
    return [
        *rows,
        Line("requests equal", f"{log.equal:.0%} of {log.report.calls.calls:,}", "", "100%"),
        Line("a call", f"{median(log.seconds) / log.report.calls.calls * 1e6:,.0f} us"),
        *forks.times(seen.forked),
        *as_of.times(seen.looked),
        Line("the agent", f"{sum(log.kinds.values()):,} records", "", "", told),
    ]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen)
    show("replay_agent", seen.noise, found, lines(seen, found))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("replay_agent", "What it takes to verify an agent of a thousand model calls.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())
