"""Measure the gateway, a Ray actor, against the plain openai client on one server; and how much of a request is
repeated.

Run as `python -m bench.gateway`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench`
checks them.

An agent's host calls the gateway, which calls the endpoint; the floor is the openai client in the host's own process.
Both send the same bytes to the same server, which answers at once in a process of its own, so that only the path is
measured. They are measured in turns, run by run. The requests are those of a real conversation if the data is
available.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench import prefixes
from bench.support import endpoint
from bench.support.harness import Figure, Line, Noise, among, line, median, noise, options, ratios, show, workspace
from everlog.actors.cluster.ray_address import prepare
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.store import FileStore

KEYS = ("gateway_ratio_1", "gateway_ratio_64", "gateway_ratio_512", "prefix_stability")
RATIO_MAX, STABILITY_MIN = 1.5, 0.9
MODEL = "instant"
PATIENCE_S = 120
"""Timeout of the plain client, in seconds: with 512 calls at once its default of 5 s for a connection is too short."""


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    at_once: tuple[int, ...] = (1, 64, 512)
    runs: int = 7
    rounds: int = 4
    """Number of consecutive calls of each concurrent caller in a run; ten times as many for a single caller."""
    turns: int = 200
    """Number of turns in the conversation whose requests are compared."""


QUICK = Plan(at_once=(1, 64), runs=3)


class Pair(msgspec.Struct):
    """Milliseconds a call in each run: through the gateway, and with the plain client."""

    ours: list[float] = []
    plain: list[float] = []


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    pairs: dict[tuple[int, bool], Pair]
    """Results by the number of concurrent calls; the second part of the key is True if the reply is streamed."""
    talk: prefixes.Talk


Ask = Callable[[str], Awaitable[object]]
"""Function that makes one call on behalf of the agent of that name."""


async def measure(plan: Plan, data: str | None) -> Seen:
    """Run the conversation first, whose last request is then sent over and over."""
    talk = await prefixes.talk(plan.turns, data)
    with workspace() as folder, endpoint.serving() as port:
        quiet = noise(folder)
        pairs = await _pairs(plan, folder, f"http://127.0.0.1:{port}/v1", talk.request)
    return Seen(quiet, pairs, talk)


async def _pairs(plan: Plan, folder: Path, url: str, request: bytes) -> dict[tuple[int, bool], Pair]:
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    os.environ.setdefault("OPENAI_API_KEY", "none")
    os.environ["EVERLOG_GATEWAY_ASKS_MAX"] = str(max(plan.at_once))
    clock, ids = RealClock(), RealIds()
    store = FileStore.create(folder / "store", clock.now, ids.new(clock.now()))
    prepare(store.root, "")
    from everlog.actors.cluster import ray_api
    from everlog.actors.cluster.gateway_client import GatewayClient

    root = str(store.root.resolve())
    ray_api.connect(root, "")
    try:
        return await _in_turns(plan, GatewayClient(root), url, request)
    finally:
        ray_api.disconnect()


async def _in_turns(plan: Plan, asker: Any, url: str, request: bytes) -> dict[tuple[int, bool], Pair]:
    import openai

    client = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, timeout=PATIENCE_S)
    body: dict[str, Any] = {**msgspec.json.decode(request), "model": MODEL}
    pairs: dict[tuple[int, bool], Pair] = {}
    try:
        for at_once in plan.at_once:
            for stream in (False, True):
                asked = {**body, "stream": True} if stream else body
                sent = msgspec.json.encode(asked)
                ways: tuple[Ask, Ask] = (_ours(asker, url, sent, stream=stream), _plain(client, asked, stream=stream))
                pair = pairs[at_once, stream] = Pair()
                rounds = plan.rounds * (10 if at_once == 1 else 1)
                for way in ways:
                    await _run(way, at_once, 1)  # opens connections, and does late imports
                for run in range(plan.runs):
                    for way, times in ((ways[0], pair.ours), (ways[1], pair.plain))[:: 1 if run % 2 else -1]:
                        times.append(await _run(way, at_once, rounds))
    finally:
        await client.close()
    return pairs


def _ours(asker: Any, url: str, request: bytes, *, stream: bool) -> Ask:
    async def ask(agent_id: str) -> object:
        heard: list[object] = []
        return await asker.ask(MODEL, url, request, agent_id, on_delta=heard.append if stream else None)

    return ask


def _plain(client: Any, body: dict[str, Any], *, stream: bool) -> Ask:
    async def ask(_: str) -> object:
        answer = await client.chat.completions.create(**body)
        return [piece async for piece in answer] if stream else answer

    return ask


async def _run(ask: Ask, at_once: int, rounds: int) -> float:
    """Return the milliseconds a call."""

    async def one(agent_id: str) -> None:
        for _ in range(rounds):
            await ask(agent_id)

    begun = time.perf_counter()
    await asyncio.gather(*(one(f"agent-{number}") for number in range(at_once)))
    return (time.perf_counter() - begun) * 1000 / (rounds * at_once)


def _ratios(pair: Pair) -> list[float]:
    return ratios(pair.ours, pair.plain)


def figures(seen: Seen) -> list[Figure]:
    """Return the figures. For each number of concurrent calls the worse of streamed and not streamed counts."""
    found = []
    for at_once in dict.fromkeys(at_once for at_once, _ in seen.pairs):
        worst = max(median(_ratios(pair)) for (number, _), pair in seen.pairs.items() if number == at_once)
        found.append(Figure(f"gateway_ratio_{at_once}", worst, "x", 1.0))
    return [*found, Figure(KEYS[3], seen.talk.stability, "of the bytes", 1.0)]


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table."""
    rows = []
    for figure in found[:-1]:
        rows.append(line(figure, f"<= {RATIO_MAX}"))
        for (at_once, stream), pair in seen.pairs.items():
            if figure.key == f"gateway_ratio_{at_once}":
                name = f"  {'streamed' if stream else 'whole'}, {at_once} at once, a call"
                times = f"{median(pair.ours):.3g} ms"
                rows.append(Line(name, times, f"{median(pair.plain):.3g} ms", "", among(_ratios(pair))))
    talk = seen.talk
    return [
        *rows,
        line(found[-1], f">= {STABILITY_MIN}", among(talk.by_step)),
        Line("  after an edit of memory", f"{talk.edited:.3g}", "", "", f"{talk.edits} of {len(talk.by_step)} steps"),
        Line("  requests of", f"{talk.source}, {talk.steps} calls, {talk.summaries} summaries"),
    ]


def report(plan: Plan, data: str | None = None) -> None:
    """Measure what `plan` asks for and print it."""
    seen = asyncio.run(measure(plan, data))
    found = figures(seen)
    show("gateway", seen.noise, found, lines(seen, found))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options(
        "gateway", "A call through the gateway against the plain openai client, and how stable requests are.", argv,
        lambda parser: parser.add_argument("--data", help="folder with the data sets (EVERLOG_DATA)"),
    )  # fmt: skip
    report(QUICK if args.quick else Plan(), args.data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
