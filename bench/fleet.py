"""Measure thousands of agents on Ray: messages a second, memory, activation time, and throughput of the gateway.

Run as `python -m bench.fleet`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench`
checks them.

Two shards run on this machine, one host process each; this process is the driver, and its cost is part of the figures.
Agents use the offline model in the host's process, except for the gateway figure. The start of Ray is not counted.
"""

import argparse
import asyncio
import cProfile
import os
import pstats
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.replay import pairs, talk_of
from bench.support import endpoint, fleet_history, fleet_rig
from bench.support.harness import (
    ROOT,
    Figure,
    Line,
    Noise,
    among,
    last_line,
    line,
    median,
    noise,
    options,
    quantile,
    show,
    workspace,
)
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.actors.ports.real_clock import RealClock, monotonic_us
from everlog.interfaces.fleet import fleet_command
from everlog.interfaces.fleet import load_generator as load
from everlog.store import FileStore

KEYS = (
    "messages_per_s", "kb_per_agent", "mib_10k", "activation_ms_p50", "activation_ms_p99", "activation_growth",
    "gateway_messages_per_s", "real_messages_per_s", "real_cpu_ms", "real_kb_per_agent",
)  # fmt: skip
GOALS = (3000, 48, 1024, 8, 25, 2, 800, 500, 3.5, 96)
AT_LEAST = ("messages_per_s", "gateway_messages_per_s", "real_messages_per_s")
"""Figures with a lower limit; the others have an upper limit."""
SHARDS = 2
FIRST = 6
"""Number of agents that are activated before the measured ones, so that the hosts have read sealed files before."""


PLAIN = (
    "Good morning!", "How are you?", "Thank you, that is kind.", "That sounds good.", "Yes, of course.",
    "It rained all day here.", "Today was a long day.", "Let us talk about it later.", "That made me laugh.",
)  # fmt: skip
"""Messages that the offline model answers in one step, without any function but `send_message`."""


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    agents: int = 1000
    messages: int = 5
    """Number of messages that each agent gets in a round."""
    rounds: int = 3
    worded: int = 5
    """Number of messages of real text that each agent gets, once."""
    few: int = 50
    """Number of agents at the first reading of the hosts' memory. They do everything once (plain and real words, and
    enough of both that each host seals its log), so that one-time allocations are not counted. Before they did,
    `kb_per_agent` changed with where packages were imported: what the first seal imports was 25 MB in each host.
    """
    registered: int = 10_000
    cold: int = 100
    """Number of agents to activate with a history of `events`."""
    events: int = 1000
    old: int = 5
    """Number of agents to activate with a history of `events_old`."""
    events_old: int = 100_000
    gateway_agents: int = 200
    gateway_messages: int = 10


QUICK = Plan(messages=3, rounds=1, worded=1, cold=40, old=1, gateway_messages=4)


class Seen(msgspec.Struct):
    """Everything that was measured."""

    data: str
    """Source of the texts."""
    noise: Noise
    rounds: list[fleet_rig.Round] = []
    """Rounds with `PLAIN`: the work with which the peers were measured, one model call and its answer."""
    worded: fleet_rig.Round | None = None
    """Round with real text, in which agents search and edit their memory."""
    few_bytes: int = 0
    """Memory of the hosts at rest with few agents; `all_bytes` is that with all of them."""
    all_bytes: int = 0
    worded_bytes: int = 0
    """Memory of the hosts with all agents after the real text, at rest."""
    log_bytes: int = 0
    """Bytes of frames of the agents that make the difference."""
    empty_mib: float = 0
    full_mib: float = 0
    cold_ms: list[float] = []
    old_ms: list[float] = []
    warm_ms: list[float] = []
    """Milliseconds to open agents that are in memory already."""
    gateway: fleet_rig.Round | None = None
    bare_per_s: float = 0
    """Bare requests a second over one connection, one after the other."""
    check: load.LoadCheck | None = None
    took_s: dict[str, float] = {}
    """Seconds of each part of the benchmark."""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure the time of a part."""
        begun = time.perf_counter()
        yield
        self.took_s[name] = time.perf_counter() - begun


def words(data: str | None) -> tuple[str, list[str]]:
    """Return the source of the texts, and the texts: LoCoMo if the data set is available, else those that everlog
    ships.
    """
    folder = Path(data or os.environ.get("EVERLOG_DATA") or ROOT.parent / "shared" / "data") / "locomo" / "dev"
    found = [said for said, _ in talk_of(folder)]
    return ("LoCoMo", found) if found else ("everyday words", fleet_command.lines(None))


async def measure(plan: Plan, data: str | None) -> Seen:
    """Measure everything in one cluster."""
    source, lines = words(data)
    with workspace() as folder, endpoint.serving() as port:
        seen = Seen(source, noise(folder))
        root = folder / "store"
        with seen.part("histories"):
            await _histories(root, plan)
        begun = time.perf_counter()
        async with fleet_rig.cluster(root, f"http://127.0.0.1:{port}/v1") as system:
            seen.took_s["Ray"] = time.perf_counter() - begun
            seen.empty_mib = fleet_rig.actors_mib()
            names = await _many(system, plan, lines, seen)
            with seen.part("waking"):
                await _wake(system, plan, seen)
            with seen.part("gateway"):
                await _ask(system, plan, lines, seen)
            seen.bare_per_s = endpoint.bare_per_s(port, 500)
            ids = [event_id for told in (*seen.rounds, seen.worded) if told for event_id in told.tally.acknowledged]
            seen.check = load.check(system.store, names, ids)
    return seen


async def _histories(root: Path, plan: Plan) -> None:
    """Create the agents that are activated later."""
    template = await fleet_history.template(root, pairs(500)[1], SHARDS)
    ages = dict.fromkeys([*_names("first", FIRST), *_names("cold", plan.cold)], plan.events)
    ages |= dict.fromkeys(_names("old", plan.old), plan.events_old)
    fleet_history.grow(FileStore(root, RealClock().now), template, ages)


async def _wake(system: AgentSystem, plan: Plan, seen: Seen) -> None:
    """Activate agents that are not in memory, one after the other; then open the same agents while they are in
    memory.
    """
    cold, old = _names("cold", plan.cold), _names("old", plan.old)
    for name in _names("first", FIRST):
        await fleet_rig.opened_ms(system, name)
    seen.cold_ms = [await fleet_rig.opened_ms(system, name) for name in cold]
    seen.old_ms = [await fleet_rig.opened_ms(system, name) for name in old]
    seen.warm_ms = [await fleet_rig.opened_ms(system, name) for name in cold]


async def _ask(system: AgentSystem, plan: Plan, lines: Sequence[str], seen: Seen) -> None:
    """Measure agents whose model is behind the gateway, after one round that opens the connections."""
    names = _names("gate", plan.gateway_agents)
    await fleet_rig.make(system, names, "instant")
    await fleet_rig.talk(system, names, lines, 1)
    seen.gateway = await fleet_rig.talk(system, names, lines, plan.gateway_messages)


async def _many(system: AgentSystem, plan: Plan, lines: Sequence[str], seen: Seen) -> list[str]:
    """Measure few agents, then all of them, then many idle ones: rates and memory."""
    names = _names("fleet", plan.agents)
    few, rest = names[: plan.few], names[plan.few :]
    with seen.part("few"):
        await fleet_rig.make(system, few)
        await fleet_rig.warm(system, few, PLAIN, lines)
        seen.few_bytes = await fleet_rig.rested_bytes(system)
    before = load.store_bytes(system.store, names)
    with seen.part("making"):
        await fleet_rig.make(system, rest)
    with seen.part("plain talk"):
        for _ in range(plan.rounds):
            seen.rounds.append(await fleet_rig.talk(system, names, PLAIN, plan.messages))
    with seen.part("rest"):
        seen.all_bytes = await fleet_rig.rested_bytes(system)
    seen.log_bytes = load.store_bytes(system.store, names) - before
    with seen.part("real words"):
        seen.worded = await fleet_rig.talk(system, names, lines, plan.worded)
    with seen.part("rest after it"):
        seen.worded_bytes = await fleet_rig.rested_bytes(system)
    with seen.part("registering"):
        there = len(system.store.agents())
        system.store.register_many(_names("other", max(0, plan.registered - there)), shared=True)
    seen.full_mib = fleet_rig.actors_mib()
    return names


def _names(what: str, count: int) -> list[str]:
    return [f"{what}-{number:05}" for number in range(1, count + 1)]


def figures(seen: Seen, plan: Plan) -> list[Figure]:
    """Return the figures.

    Floors: two bare syncs for each message; the agents' bytes in the log; actors without agents; the same command to an
    agent in memory; bare requests. Of the real text: the same work with short messages, or memory after these.
    """
    assert seen.gateway is not None
    assert seen.worded is not None
    made = plan.agents - plan.few
    plain = median([told.tally.per_s for told in seen.rounds]), median([told.all_ms for told in seen.rounds])
    kb = [(used - seen.few_bytes) / made / 1000 for used in (seen.all_bytes, seen.worded_bytes)]
    warm = median(seen.warm_ms)
    values = (
        (plain[0], "messages/s", 500 / seen.noise.fdatasync_ms),
        (kb[0], "kB", max(seen.log_bytes, 1) / made / 1000),
        (seen.full_mib, "MiB", seen.empty_mib),
        (median(seen.cold_ms), "ms", warm),
        (quantile(seen.cold_ms, 0.99), "ms", warm),
        (median(seen.old_ms) / median(seen.cold_ms), "ratio", 1.0),
        (seen.gateway.tally.per_s, "messages/s", seen.bare_per_s),
        (seen.worded.tally.per_s, "messages/s", plain[0]),
        (seen.worded.all_ms, "ms", plain[1]),
        (kb[1], "kB", max(kb[0], 1.0)),
    )
    return [Figure(key, *value) for key, value in zip(KEYS, values, strict=True)]


def goal(key: str, value: float) -> str:
    """Return the goal of a figure, and if it is met."""
    wanted = GOALS[KEYS.index(key)]
    met = value >= wanted if key in AT_LEAST else value <= wanted
    return f"{'>=' if key in AT_LEAST else '<='} {wanted:,}: {'met' if met else 'MISSED'}"


PEERS = {
    "messages_per_s": "peers: OpenAI Agents SDK 80, MemGPT 71, LangGraph 54, Letta 3.3",
    "kb_per_agent": "peers: LangGraph 64, MemGPT 407, OpenAI Agents SDK 874",
    "activation_ms_p50": "Dapr: 1.6, without history",
    "activation_ms_p99": "Dapr: 4.9, without history",
}
"""Results of other systems for the same work, measured on such a machine."""


def lines_of(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table: the figures with their goals, then details."""
    assert seen.gateway is not None
    assert seen.worded is not None
    assert seen.check is not None
    tallies = [told.tally for told in seen.rounds]
    words = seen.worded.tally
    runs = {"messages_per_s": among([tally.per_s for tally in tallies], 0), "activation_ms_p50": among(seen.cold_ms)}
    runs["activation_growth"] = among(seen.old_ms)
    percents = [100 * getattr(words, what) / words.answered for what in ("searched", "acted")]
    latency = fleet_command.latencies([taken for tally in tallies for taken in tally.latencies_us])
    cpu = " + ".join(f"{median([getattr(r, who) for r in seen.rounds]):.2f}" for who in ("hosts_ms", "driver_ms"))
    memory = ", ".join(f"{used / 2**20:,.0f}" for used in (seen.few_bytes, seen.all_bytes, seen.worded_bytes))
    return [
        *(line(figure, goal(figure.key, figure.value), runs.get(figure.key, "")) for figure in found),
        Line("latency", ", ".join(f"{part} {ms:,.0f} ms" for part, ms in latency.items())),
        Line("CPU a message", f"{cpu} ms", "", "", "hosts + driver"),
        Line("real text", seen.data),
        Line("turns of it", f"{percents[0]:.0f} % searched memory, {percents[1]:.0f} % called a function"),
        Line("CPU of it", f"{seen.worded.hosts_ms:.2f} + {seen.worded.driver_ms:.2f} ms", "", "", "a message"),
        Line(
            "CPU by the gateway", f"{seen.gateway.hosts_ms:.2f} + {seen.gateway.driver_ms:.2f} ms", "", "", "a message"
        ),
        Line("memory of the hosts", f"{memory} MiB", "", "", "at rest: few agents, all, all after real text"),
        Line("lost", f"{seen.check.lost} of {seen.check.acknowledged:,}", "", "", f"doubled: {seen.check.doubled}"),
        Line("took", ", ".join(f"{part} {seconds:.1f} s" for part, seconds in seen.took_s.items())),
        *(Line(key, others) for key, others in PEERS.items()),
    ]


def report(plan: Plan, *, data: str | None = None, json: bool = False) -> None:
    """Measure what `plan` asks for and print it."""
    seen = asyncio.run(measure(plan, data))
    found = figures(seen, plan)
    if json:
        print(last_line("fleet", seen.noise, found), flush=True)
    else:
        show("fleet", seen.noise, found, lines_of(seen, found))


def profile(agents: int, messages: int, data: str | None, out: str) -> None:
    """Profile one shard in this process, without Ray; print functions by own time and by cumulative time."""
    profiler = cProfile.Profile()
    tally = asyncio.run(_profiled(agents, messages, words(data)[1], profiler))
    stats = pstats.Stats(profiler)
    if out:
        stats.dump_stats(out)
    for order in ("tottime", "cumulative"):
        stats.sort_stats(order).print_stats(40)
    print(f"{tally.answered:,} messages, {tally.searched:,} with a search, {tally.per_s:,.0f}/s under the profiler")


async def _profiled(agents: int, messages: int, lines: Sequence[str], profiler: cProfile.Profile) -> load.LoadTally:
    names = _names("fleet", agents)
    with workspace() as folder:
        async with open_system(folder / "store", runtime="local", placement="shared", shards=1) as system:
            await load.make(system, names, Settings(), at_once=agents)
            run = load.LoadRun(system, names, lines, messages, at_once=agents, now=monotonic_us)
            profiler.enable()
            tally = await run.run()
            profiler.disable()
            return tally


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the last line only")
    parser.add_argument("--data", metavar="DIR", help="folder with locomo/dev (EVERLOG_DATA)")
    parser.add_argument("--profile", metavar="FILE", nargs="?", const="", help="profile one shard in this process")
    parser.add_argument("--agents", type=int, default=1000, help="with --profile (1000)")
    parser.add_argument("--messages", type=int, default=3, help="with --profile (3)")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("fleet", "What thousands of agents cost on Ray.", argv, _more)
    if args.profile is not None:
        profile(args.agents, args.messages, args.data, args.profile)
    else:
        report(QUICK if args.quick else Plan(), data=args.data, json=args.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
