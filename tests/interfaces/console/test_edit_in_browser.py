"""Edits of memory in a real browser: two people edit one block, and the second one decides what holds."""

import asyncio
from pathlib import Path

import pytest

from tests.interfaces.console.test_approvals_page import human
from tests.support.http.real_browser import browser_page, browser_path
from tests.support.http.served_store import served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_the_second_of_two_edits_sees_three_texts(tmp_path: Path) -> None:
    """A form that was open when another person saved changes nothing: its page shows the text from which it began, the
    text that is there now, and its own, which is still in the field. Merged there, it is saved over the newer text.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path) as server:
            await server.system.agent("sam")
            async with browser_page(path, refused=412) as page:
                other = await page.context.new_page()
                for tab in (page, other):
                    await tab.goto(f"{server.address}/console/a/sam/memory/human")
                    await tab.get_by_role("link", name="Edit", exact=True).click()
                await other.get_by_label("Text", exact=True).fill("Has a dog.")
                await other.get_by_role("button", name="Save").click()
                await expect(other.locator(".blame")).to_contain_text("Has a dog.")
                await page.get_by_label("Text", exact=True).fill("Has a boat.")
                await page.get_by_role("button", name="Save").click()
                await expect(page.get_by_role("alert")).to_contain_text("Nothing was saved")
                await expect(page.locator("#theirs")).to_contain_text("Has a dog.")
                await expect(page.locator("#yours")).to_contain_text("Has a boat.")
                assert await human(server) == "Has a dog."
                field = page.get_by_label("Your text, to merge")
                await expect(field).to_have_value("Has a boat.")
                await field.fill("Has a dog and a boat.")
                await field.press("Tab")
                await expect(page.get_by_role("button", name="Save this over it")).to_be_focused()
                await page.keyboard.press("Enter")
                await expect(page.locator(".blame")).to_contain_text("Has a dog and a boat.")
            assert await human(server) == "Has a dog and a boat."

    asyncio.run(main())
