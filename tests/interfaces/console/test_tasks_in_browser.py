"""Twelve tasks of a person, each with the clicks that it takes from the list of agents, and pictures on the way.

EVERLOG_PICTURES names a folder that keeps the pictures, and `tasks.txt` with clicks and seconds.
"""

import asyncio
import os
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from tests.support.http.real_browser import browser_page, browser_path
from tests.support.http.served_store import served
from tests.support.http.told_story import story_model, told

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

BLANK_BYTES = 8000
"""Size of a picture of an empty page, bytes."""


class Walk:
    """A person in the console who counts clicks, and keeps pictures."""

    def __init__(self, page: Any, address: str, folder: Path) -> None:
        self.page = page
        self.address = address
        self.folder = folder
        self.done: list[tuple[str, int, float]] = []
        self.clicks = 0
        self._began = 0.0
        self._task = ""

    async def begin(self, task: str) -> None:
        """Go to the list of agents."""
        await self.page.goto(f"{self.address}/console/agents")
        self._task, self.clicks, self._began = task, 0, perf_counter()

    async def click(self, name: str, *, role: str = "link", last: bool = False) -> None:
        """Click on the first or the last element of a name."""
        found = self.page.get_by_role(role, name=name)
        await (found.last if last else found.first).click()
        self.clicks += 1

    async def sees(self, *words: str, within: str = "main") -> None:
        """Wait for words on the page, and end the task."""
        from playwright.async_api import expect

        for one in words:
            await expect(self.page.locator(within)).to_contain_text(one, timeout=20_000)
        self.done.append((self._task, self.clicks, perf_counter() - self._began))

    async def picture(self, name: str) -> None:
        """Keep a picture of the window. Fails if it is blank."""
        await self.page.wait_for_load_state("networkidle")
        path = self.folder / f"{name}.png"
        await self.page.screenshot(path=path)
        assert path.stat().st_size > BLANK_BYTES, name


async def _look(walk: Walk) -> None:
    """Do the tasks that only read."""
    await walk.begin("When did sam learn that the dog died, and who said so?")
    await walk.click("sam")
    await walk.picture("overview")
    await walk.click("Memory")
    await walk.click("human")
    await walk.click("His dog Rex died in March.")
    await walk.sees("in turn 2", "Rex died in March. He was fourteen")
    await walk.picture("blame")
    await walk.begin("Why did sam speak of Lisbon and of Rex?")
    await walk.click("sam")
    await walk.click("Where this comes from")
    await walk.sees("What should I do in March?", "I repair harpsichords in Lisbon", "Rex died in March. He was")
    await walk.picture("words")
    await walk.begin("What did the model see before that answer?")
    await walk.click("sam")
    await walk.click("Where this comes from")
    await walk.click("All that the model saw")
    await walk.sees("What the model saw", "What should I do in March?")
    await walk.begin("From what was the summary made?")
    await walk.click("sam")
    await walk.page.locator(".notice a").first.click()
    walk.clicks += 1
    await walk.sees("Where this summary comes from", "I repair harpsichords in Lisbon")
    await walk.begin("What did sam remember before it knew of the dog?")
    await walk.click("sam")
    await walk.click("Previous edit")
    await walk.click("Previous event")
    await walk.sees("Lives in Lisbon", within=".core")
    await walk.begin("What has changed in sam since then?")
    await walk.click("sam")
    await walk.click("Previous edit")
    await walk.click("Compare with now")
    await walk.sees("Memory", "Figures")
    await walk.begin("Which agents cost most this week?")
    await walk.click("Costs")
    await walk.sees("sam")
    await walk.begin("Where did a user speak of sailing?")
    await walk.click("sam")
    await walk.click("Search")
    await walk.page.get_by_role("searchbox").fill("sail")
    await walk.page.keyboard.press("Enter")
    await walk.sees("Can we sail on Sunday?")


async def _act(walk: Walk) -> None:
    """Do the tasks that change something."""
    await walk.begin("What waits for me? Refuse it, with a reason.")
    await walk.click("Approvals")
    await walk.picture("approvals")
    await walk.page.get_by_label("Words for the agent").fill("Not before he has moved.")
    await walk.click("Refuse", role="button")
    await walk.sees("Nothing waits")
    await walk.begin("What would another model have answered here?")
    await walk.click("sam")
    await walk.click("Fork and rerun")
    await walk.page.get_by_label("Another model, if any").fill("another-model")
    await walk.click("Rerun", role="button")
    await walk.sees("Turn 6", "went", "Porto has harpsichords, too.")
    await walk.picture("rerun")
    await walk.begin("Which agent of all knows of harpsichords, and since when?")
    await walk.click("Search")
    await walk.page.get_by_role("searchbox").fill("harpsichords")
    await walk.page.keyboard.press("Enter")
    await walk.sees("I repair harpsichords in Lisbon")
    await walk.begin("What would sam have said to other words?")
    await walk.click("sam")
    await walk.click("Chat")
    await walk.click("Edit in a fork", role="button", last=True)
    await walk.page.locator("#words").fill("I stay in Lisbon.")
    await walk.click("Send", role="button")
    await walk.sees("I stay in Lisbon.", within="#talk")


def test_twelve_tasks_take_few_clicks(tmp_path: Path) -> None:
    """Each task of a person ends with its answer in sight, after at most four clicks."""
    path, kept = browser_path(), os.environ.get("EVERLOG_PICTURES")
    folder = Path(kept) if kept else tmp_path

    async def main() -> None:
        async with served(tmp_path / "store", story_model()) as server:
            await told(server)
            async with browser_page(path, viewport={"width": 1000, "height": 720}) as page:
                walk = Walk(page, server.address, folder)
                await _look(walk)
                await _act(walk)
            lines = [f"{clicks} clicks, {seconds:.1f} s: {task}" for task, clicks, seconds in walk.done]
            (folder / "tasks.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
            assert len(walk.done) == 12
            assert max(clicks for _, clicks, _ in walk.done) <= 4

    asyncio.run(main())
