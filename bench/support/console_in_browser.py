"""Measure the console in a real browser: what a person waits for, and what the server does for a page that is open.

Used by `bench.console --browser`. Needs the extra `browser` and Chromium. Each page is opened in a context of its own,
so that nothing is in the browser's cache.
"""

import asyncio
import itertools
import os
import shutil
from collections.abc import Sequence
from typing import Any

from bench import as_of
from bench.serve import Server
from bench.support.harness import Line, among, median

AGENT_PAGE = f"/console/a/{as_of.AGENT}"
MOVES = 240
"""Positions of the pointer in one drag."""
IDLE_S = 30
"""Seconds for which a page is open while nothing happens."""
IDLE = "server CPU, no page open"
VIEW = {"width": 1280, "height": 900}

_PAINT = """() => new Promise((done) => {
  const seen = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  const look = () => (seen() === undefined ? setTimeout(look, 5) : done(seen()));
  look();
})"""
_WATCH = """() => {
  const slider = document.getElementById("slider");
  window.seen = { frames: [], moved: 0, shown: 0 };
  const frame = (at) => { window.seen.frames.push(at); requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  let value = slider.value;
  slider.addEventListener("input", () => {
    if (slider.value === value) return;
    value = slider.value;
    window.seen.moved = performance.now();
    window.seen.shown = 0;
  });
  new MutationObserver((changes) => {
    const fresh = changes.some((one) => [...one.addedNodes].some((node) => node.id === "moment"));
    if (fresh) requestAnimationFrame(() => { window.seen.shown = performance.now(); });
  }).observe(document.getElementById("main"), { childList: true, subtree: true });
}"""
_SHOWN = "() => window.seen.shown > window.seen.moved"


class Measured:
    """Everything that was measured, by what it is."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}

    def add(self, name: str, value: float) -> None:
        self.values.setdefault(name, []).append(value)


async def look_at_life(browser: Any, server: Server, looks: int, edits: Sequence[int], seen: Measured) -> None:
    """Open pages of the agent, drag its slider, and leave a page open. `edits`: seqs in the middle of the life."""
    address = f"http://127.0.0.1:{server.port}"
    await _painted(browser, f"{address}{AGENT_PAGE}", Measured(), "")  # what is imported late is no part of a figure
    for look in range(looks):
        seq = edits[look * len(edits) // looks]
        await _painted(browser, f"{address}{AGENT_PAGE}", seen, "agent's page, first paint")
        await _painted(browser, f"{address}{AGENT_PAGE}?as_of={seq}", seen, "moment in the middle, first paint")
    for _ in range(looks):
        await _dragged(browser, f"{address}{AGENT_PAGE}", seen)
    await _spent(server, seen, IDLE)
    for name, path in (("agent's page", AGENT_PAGE), ("chat", f"{AGENT_PAGE}/chat")):
        await _left_open(browser, server, f"{address}{path}", seen, f"server CPU, open {name}")


async def look_at_fleet(browser: Any, server: Server, seen: Measured) -> None:
    """Open the list of agents for the first time, and once more, and leave it open."""
    address = f"http://127.0.0.1:{server.port}/console/agents"
    await _painted(browser, address.replace("agents", "preferences"), Measured(), "")
    await _painted(browser, address, seen, "list of agents, first paint, first time")
    await _painted(browser, address, seen, "list of agents, first paint, later")
    await _left_open(browser, server, address, seen, "server CPU, open list of agents")


async def _painted(browser: Any, address: str, seen: Measured, name: str) -> None:
    """Open a page with nothing in the cache, and keep the time until something is painted and the bytes it took."""
    context = await browser.new_context(viewport=VIEW)
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    await session.send("Network.enable")
    kinds: dict[str, str] = {}
    sizes: dict[str, float] = {}
    session.on("Network.responseReceived", lambda one: kinds.update({one["requestId"]: one["type"]}))
    session.on("Network.loadingFinished", lambda one: sizes.update({one["requestId"]: one["encodedDataLength"]}))
    await page.goto(address)
    seen.add(name, await page.evaluate(_PAINT))
    await asyncio.sleep(0.5)  # what scripts ask for after the first paint belongs to the first load
    seen.add(f"{name}: bytes", sum(sizes.values()) / 1000)
    code = sum(size for one, size in sizes.items() if kinds.get(one) in {"Script", "Stylesheet"})
    seen.add(f"{name}: bytes of script and style", code / 1000)
    await context.close()


async def _dragged(browser: Any, address: str, seen: Measured) -> None:
    """Drag the slider from its end to its middle, and keep frames a second and the time from rest to the page."""
    context = await browser.new_context(viewport=VIEW)
    page = await context.new_page()
    await page.goto(address)
    box = await page.locator("#slider").bounding_box()
    middle = box["y"] + box["height"] / 2
    await page.mouse.move(box["x"] + box["width"] - 8, middle)
    await page.mouse.down()
    await page.evaluate(_WATCH)
    for step in range(MOVES):
        await page.mouse.move(box["x"] + box["width"] * (1 - step / MOVES / 2) - 8, middle)
    frames = await page.evaluate("() => window.seen.frames")
    await page.mouse.up()
    await page.wait_for_function(_SHOWN)
    took = await page.evaluate("() => window.seen.shown - window.seen.moved")
    gaps = sorted(after - before for before, after in itertools.pairwise(frames))
    seen.add("drag, frames/s", (len(frames) - 1) * 1000 / (frames[-1] - frames[0]))
    seen.add("drag, 95th percentile of a frame", gaps[len(gaps) * 95 // 100])
    seen.add("from rest to the page", took)
    await context.close()


async def _left_open(browser: Any, server: Server, address: str, seen: Measured, name: str) -> None:
    """Keep the CPU of the server while a page is open and nothing happens."""
    context = await browser.new_context(viewport=VIEW)
    page = await context.new_page()
    await page.goto(address)
    await asyncio.sleep(3)
    await _spent(server, seen, name)
    await context.close()


async def _spent(server: Server, seen: Measured, name: str) -> None:
    """Keep the CPU of the server over some time, in percent of a core."""
    before = server.cpu_s()
    await asyncio.sleep(IDLE_S)
    seen.add(name, (server.cpu_s() - before) / IDLE_S * 100)


def browser_program() -> str:
    """Return the path of Chromium. Raises SystemExit without one."""
    found = os.environ.get("EVERLOG_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        raise SystemExit("no browser: apt-get install chromium && pip install -e '.[browser]'")
    return found


_ROWS = (
    ("agent's page, first paint", "ms", "< 300"),
    ("agent's page, first paint: bytes", "kB", "< 130"),
    ("agent's page, first paint: bytes of script and style", "kB", "< 60"),
    ("moment in the middle, first paint", "ms", "< 350"),
    ("drag, frames/s", "/s", "> 50"),
    ("drag, 95th percentile of a frame", "ms", ""),
    ("from rest to the page", "ms", "< 200"),
    ("list of agents, first paint, first time", "ms", "< 400"),
    ("list of agents, first paint, later", "ms", "< 400"),
    (IDLE, "%", ""),
    ("server CPU, open agent's page", "%", "< 0.2 more"),
    ("server CPU, open chat", "%", "< 0.2 more"),
    ("server CPU, open list of agents", "%", ""),
)


def lines(seen: Measured) -> list[Line]:
    """Return the table."""
    return [
        Line(name, f"{median(seen.values[name]):.3g} {unit}", "", goal, among(seen.values[name]))
        for name, unit, goal in _ROWS
        if name in seen.values
    ]
