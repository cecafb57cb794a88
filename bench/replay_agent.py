"""What it takes to go back in an agent's life: every request that it ever sent made again and compared; any moment
looked at (`bench.as_of`), and forked (`bench.forks`), in a life of 100,000 events.

One agent talks until its model was called a thousand times: it answers, edits its memory, keeps and looks up, and has
its oldest messages summarized whenever its window is full. Its log is sealed. Then all of it is verified, as `everlog
verify` does it: the log opened and read, its chain computed, every request made again and hashed, every reply worked
off again. The floor is what no way around is left of: as many bytes hashed as were sent.
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
"""Of so many replies one is more than an answer: it edits, keeps or looks up, and the next one answers."""


class Plan(msgspec.Struct, frozen=True):
    """How much is measured. The claim is about the default."""

    calls: int = 1000
    """Calls of the model in the agent's life, at least."""
    window: int = 8000
    """Tokens."""
    runs: int = 9
    long: as_of.Plan = as_of.Plan()
    """The agent whose past is looked at, and that is forked."""


QUICK = Plan(runs=3, long=as_of.QUICK)
"""The same agents, looked at less often."""


class Worker(InstantModel):
    """Answers at once; now and then it edits its memory, keeps something or looks it up before it does."""

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
        call = {"id": f"call_{self._busy}", "type": "function", "function": self._deed()}
        return {"role": "assistant", "content": words(self._chance, MESSAGE_WORDS), "tool_calls": [call]}

    def _deed(self) -> dict[str, str]:
        """A function and its arguments; each asks for a heartbeat, in which the answer is given."""
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
    """An agent that was verified, several times."""

    seconds: list[float]
    hashing: list[float]
    """Seconds of the floor, in turns with them."""
    report: ReplayReport
    kinds: dict[str, int]
    """How many records of each kind its log has."""

    @property
    def equal(self) -> float:
        """The share of requests that were the same to the byte."""
        return len(self.report.calls.equal) / self.report.calls.calls


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    verified: Verified
    looked: as_of.Seen
    forked: forks.Seen


async def grow(store: FileStore, plan: Plan) -> None:
    """An agent whose model was called so often; its log is sealed."""
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
    """The agent verified, after one round that warms the caches; it is an error if anything is not the same."""
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
            raise RuntimeError(f"what was sent is not what would be sent: {[*report.faults, *report.notes][:3]}")
    return Verified(seconds, hashing, reports[0], dict(kinds))


def hashed(store: FileStore) -> Callable[[], object]:
    """The floor: the sha256 of as many bytes as each request had."""
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
    """The figures, in the order of `KEYS`."""
    verify_s = Figure(KEYS[0], median(seen.verified.seconds), "s", median(seen.verified.hashing))
    return [verify_s, *forks.figures(seen.forked), *as_of.figures(seen.looked)]


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """The table: the figures beside their goals, then what helps to read them."""
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
