"""Flows in a real browser: a rerun is followed to its end, and a query is stopped and found again."""

import asyncio
from pathlib import Path

import pytest

from everlog.interfaces.http.core.service import HttpLimits, HttpOptions
from tests.support.cli.command_line import Script, says
from tests.support.http.real_browser import browser_page, browser_path
from tests.support.http.served_store import served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ENDLESS = "SELECT count(*) FROM range(10000000000) a(i), range(1000) b(j) WHERE i % 7 = j"


def test_a_rerun_is_begun_and_followed_with_the_keyboard_alone(tmp_path: Path) -> None:
    """From a moment of the slider, the form of a rerun leads to the page of its job, which shows by itself that it has
    ended, with both answers; the comparison and the fork are one link away.
    """
    path = browser_path()
    model = Script([says("One."), says("Two."), says("Another way.")])

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, model) as server:
            agent = await server.system.agent("sam")
            await agent.ask("First")
            await agent.ask("Second")
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/a/sam/fork")
                await page.locator("#slider").focus()
                await page.keyboard.press("p")
                await page.keyboard.press("n")
                outline = (await server.client.get("/console/a/sam/life.json")).json()
                await expect(page.locator("#where")).to_have_text(str(outline["turn"][-1]))
                await expect(page.locator("h2").first).to_have_text(
                    f"Do something from event {outline['turn'][-1]}"
                )  # fmt: skip
                await page.locator("#rerun-name").focus()
                await page.keyboard.press("Control+A")
                await page.keyboard.type("sam-what-if")
                await page.keyboard.press("Tab")
                await page.keyboard.type("another-model")
                await page.keyboard.press("Enter")
                await expect(page.locator(".verdict")).to_contain_text("1 of 1 turn went another way", timeout=20_000)
                await expect(page.locator(".pairs")).to_contain_text("Two.")
                await expect(page.locator(".pairs")).to_contain_text("Another way.")
                await page.get_by_role("link", name="compare both as they are now").press("Enter")
                await expect(page.locator("h1")).to_have_text("Compare")
                await expect(page.locator("main")).to_contain_text("another-model")

    asyncio.run(main())


def test_a_query_is_stopped_and_found_again(tmp_path: Path) -> None:
    """A query that takes too long is stopped with a button, and the page stays; the next one has the engine at once.
    Both are in the history, which can be forgotten, and the address is that of the answer.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        options = HttpOptions(limits=HttpLimits(queries_max=1, query_s=3600))
        async with served(tmp_path, options=options) as server:
            await server.system.agent("sam")
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/sql")
                await expect(page.locator("#history")).to_be_hidden()
                await page.locator("#q").fill(ENDLESS)
                await page.keyboard.press("Control+Enter")
                await page.locator("#stop").click()
                await expect(page.locator("#sql-status")).to_have_text("Stopped.")
                await page.locator("#q").fill("SELECT 6 * 7 AS answer")
                await page.keyboard.press("Control+Enter")
                await expect(page.locator("#answer table")).to_contain_text("42")
                assert "6+*+7" in page.url
                await page.locator("#history summary").press("Enter")
                await expect(page.locator("#history li")).to_have_text(["SELECT 6 * 7 AS answer", ENDLESS])
                await page.reload()
                await expect(page.locator("#answer table")).to_contain_text("42")
                await page.locator("#history summary").press("Enter")
                await page.locator("#forget").press("Enter")
                await expect(page.locator("#history")).to_be_hidden()

    asyncio.run(main())
