"""Measure pages of the console for an agent with a long life, and for a large fleet.

Run as `python -m bench.console`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench`
checks them.

One `everlog serve` in a process of its own for each store. The agent has 100,000 events, an eighth of them edits of
one memory block. A page is asked for in turns with the others, and with a page that reads no log: the floor. The list
of agents is asked of each of a few servers once, because later answers are kept.

`--browser` measures the same pages in a real browser instead: paints, bytes, frames of a drag, and the CPU of the
server while a page is open.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench import as_of
from bench.serve import Connection, Server
from bench.support import console_in_browser, large_fleet
from bench.support.harness import Figure, Line, Noise, among, line, median, noise, options, show, workspace
from bench.support.script import InstantModel, words

KEYS = ("now_ms", "moment_ms", "block_ms", "outline_first_ms", "agents_first_ms")
GOALS = ("< 300", "< 350", "", "", "< 400")
LABEL = "human"
FACTS_MAX = 20
"""Facts in the block; then each new one takes the place of the oldest but the first, which stays for good."""
PAGE = f"/console/a/{as_of.AGENT}"
FLOOR = "/console/preferences"


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    life: as_of.Plan = as_of.Plan()
    looks: int = 7
    """Number of times that each server is asked for each page of the agent."""
    agents: int = 10_000
    starts: int = 3
    """Number of servers over each store."""


QUICK = Plan(life=as_of.Plan(events=30_000), looks=4, agents=1000, starts=2)


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    wall: dict[str, list[float]]
    """Milliseconds until the whole page was there, by key; of the floors, by the key of the figure."""
    cpu: dict[str, list[float]]
    """Milliseconds of CPU of the server, by key."""


class Rememberer(InstantModel):
    """Answers at once, and notes a fact in two replies of three."""

    def __init__(self) -> None:
        super().__init__(7)
        self._facts: list[str] = []
        self._replies = 0

    def _said(self) -> dict[str, object]:
        message = super()._said()
        self._replies += 1
        if self._replies % 3:
            calls = message["tool_calls"]
            assert isinstance(calls, list)
            calls.insert(0, self._noted())
        return message

    def _noted(self) -> dict[str, object]:
        fact = words(self._chance, 12)
        if len(self._facts) < FACTS_MAX:
            name, given = "core_memory_append", {"content": fact}
        else:
            name, given = "core_memory_replace", {"old_content": self._facts.pop(1), "new_content": fact}
        self._facts.append(fact)
        number = f"call_{self._chance.getrandbits(64):016x}"
        arguments = json.dumps({"label": LABEL, **given})
        return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


async def look(server: Server, pages: Sequence[tuple[str, str]], seen: Seen) -> Sequence[bytes]:
    """Ask for pages, one after the other, and return them. `pages`: key and path of each."""
    connection = await Connection.open(server.port)
    found = []
    for key, path in pages:
        cpu, begun = server.cpu_s(), time.perf_counter()
        connection.ask("GET", path, below="")
        found.append(await connection.answer())
        seen.wall.setdefault(key, []).append((time.perf_counter() - begun) * 1000)
        seen.cpu.setdefault(key, []).append((server.cpu_s() - cpu) * 1000)
    connection.writer.close()
    return found


def pages_of(edits: Sequence[int], looks: int, seed: int) -> Sequence[tuple[str, str]]:
    """Return the pages of the agent in turns, each key with a path. A moment is that of an edit: its page compares the
    block with the one before the turn.
    """
    chance = random.Random(seed)
    found = []
    for _ in range(looks):
        found += [
            ("floor", FLOOR), ("now_ms", PAGE), ("moment_ms", f"{PAGE}?as_of={chance.choice(edits)}"),
            ("block_ms", f"{PAGE}/memory/{LABEL}"),
        ]  # fmt: skip
    return found


def measure(plan: Plan) -> Seen:
    """Make both stores, and ask a few servers for the pages of each."""
    with workspace() as folder:
        seen = Seen(noise(folder), {}, {})
        as_of.grow(as_of.store_in(folder / "life"), plan.life, Rememberer)
        large_fleet.make(folder / "fleet", plan.agents)
        for number in range(plan.starts):
            with Server(folder / "life") as server:
                asyncio.run(look_at_life(server, plan.looks, number, seen))
            with Server(folder / "fleet") as server:
                pages = [("", FLOOR), ("agents_floor", FLOOR), ("agents_first_ms", "/console/agents"),
                         ("agents_again_ms", "/console/agents")]  # fmt: skip
                asyncio.run(look(server, pages, seen))
    return seen


async def look_at_life(server: Server, looks: int, seed: int, seen: Seen) -> None:
    """Ask for the pages of the agent, after each was asked for once: what is imported late is no part of a figure."""
    warm = Seen(seen.noise, {}, {})
    await look(server, [("", FLOOR)], warm)
    (outline,) = await look(server, [("outline_first_ms", f"{PAGE}/life.json")], seen)
    edits = msgspec.json.decode(outline)["edit"]
    middle = edits[len(edits) // 4 : -len(edits) // 4]
    await look(server, pages_of(middle, 1, seed), warm)
    await look(server, pages_of(middle, looks, seed), seen)


def figures(seen: Seen) -> list[Figure]:
    """Return the figures, in the order of KEYS."""
    floors = {key: "agents_floor" if key == "agents_first_ms" else "floor" for key in KEYS}
    return [Figure(key, median(seen.wall[key]), "ms", median(seen.wall[floors[key]])) for key in KEYS]


def lines(seen: Seen, found: Sequence[Figure], plan: Plan) -> list[Line]:
    """Return the table: the figures with their goals, and below them the CPU time of the server."""
    rows = [line(one, goal, among(seen.wall[one.key]) + " ms") for one, goal in zip(found, GOALS, strict=True)]
    for key in (*KEYS, "agents_again_ms"):
        rows.append(Line(f"  CPU, {key.removesuffix('_ms')}", f"{median(seen.cpu[key]):.0f} ms"))
    return [*rows, Line("  events; agents", f"{plan.life.events:,}; {plan.agents:,}")]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen)
    show("console", seen.noise, found, lines(seen, found, plan))


async def look_in_browser(folder: Path, plan: Plan, seen: console_in_browser.Measured) -> None:
    """Open the pages of both stores in a real browser."""
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=console_in_browser.browser_program())
        try:
            with Server(folder / "life") as server:
                (outline,) = await look(server, [("", f"{PAGE}/life.json")], Seen(noise(folder), {}, {}))
                edits = msgspec.json.decode(outline)["edit"]
                middle = edits[len(edits) // 4 : -len(edits) // 4]
                await console_in_browser.look_at_life(browser, server, plan.looks, middle, seen)
            for _ in range(plan.starts):
                with Server(folder / "fleet") as server:
                    await console_in_browser.look_at_fleet(browser, server, seen)
        finally:
            await browser.close()


def report_in_browser(plan: Plan) -> None:
    """Measure what `plan` asks for in a real browser, and print it."""
    seen = console_in_browser.Measured()
    with workspace() as folder:
        found = noise(folder)
        as_of.grow(as_of.store_in(folder / "life"), plan.life, Rememberer)
        large_fleet.make(folder / "fleet", plan.agents)
        asyncio.run(look_in_browser(folder, plan, seen))
    scale = Line("  events; agents", f"{plan.life.events:,}; {plan.agents:,}")
    show("console", found, (), [*console_in_browser.lines(seen), scale])


def _browser_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--browser", action="store_true", help="measure in a real browser (the extra `browser`)")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    about = "Pages of the console: an agent with a long life, and a large fleet."
    args = options("console", about, argv, _browser_option)
    plan = QUICK if args.quick else Plan()
    (report_in_browser if args.browser else report)(plan)
    return 0


if __name__ == "__main__":
    sys.exit(main())
