"""Keys of every page in a real browser: help, panes and the link to the moment; and the switch that ends them."""

import asyncio
from pathlib import Path

import pytest

from tests.interfaces.console.test_every_page import script
from tests.support.http.axe import axe_source, barriers
from tests.support.http.real_browser import browser_page, browser_path
from tests.support.http.served_store import served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_keys_work_anywhere_but_in_a_field(tmp_path: Path) -> None:
    """`?` lists the keys of the page and closes the list, `1 2 3` lead to chat, overview and records, `y` copies the
    link to the moment; in a field they are letters, and with Ctrl they belong to the browser.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, script()) as server:
            await (await server.system.agent("sam")).ask("I have a dog")
            here = f"{server.address}/console/a/sam"
            granted = ["clipboard-read", "clipboard-write"]
            async with browser_page(path, permissions=granted) as page:
                await page.goto(f"{here}/memory?as_of=4")
                await page.keyboard.press("y")
                await expect(page.locator("a[data-copy]")).to_have_text("Link copied")
                copied = await page.evaluate("() => navigator.clipboard.readText()")
                assert copied.startswith(f"{here}/memory?as_of=4&chain=")
                await page.keyboard.press("Control+3")
                await page.keyboard.press("3")
                await page.wait_for_url(f"{here}/records?as_of=4")
                await page.keyboard.press("2")
                await page.wait_for_url(f"{here}?as_of=4")
                await page.keyboard.press("1")
                await page.wait_for_url(f"{here}/chat")
                field = page.locator("textarea").first
                await field.fill("")
                await field.press("2")
                await field.press("?")
                assert await field.input_value() == "2?"
                assert page.url == f"{here}/chat"
                assert await page.locator("dialog").count() == 0

    asyncio.run(main())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_help_lists_the_keys_of_the_page(tmp_path: Path, theme: str) -> None:
    """The help names each key that works here: those of the slider where one is. `?`, Escape and its button close it;
    the focus comes back, no other key acts meanwhile, and axe-core finds no barrier.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, script()) as server:
            await (await server.system.agent("sam")).ask("I have a dog")
            async with browser_page(path, color_scheme=theme, bypass_csp=True) as page:
                await page.goto(f"{server.address}/console/a/sam")
                await page.locator("#slider").focus()
                for closing in ("?", "Escape", "Enter"):
                    await page.keyboard.press("?")
                    dialog = page.get_by_role("dialog", name="Keys")
                    await expect(dialog).to_be_visible()
                    shown = await dialog.locator("kbd").all_inner_texts()
                    assert {"1", "2", "3", "y", "?", "space", "n", "Page Down", "E", "G"} <= {*shown}
                    await page.keyboard.press("3")
                    await page.keyboard.press(closing)
                    await expect(dialog).to_have_count(0)
                    assert await page.evaluate("() => document.activeElement.id") == "slider"
                await page.keyboard.press("?")
                assert await barriers(page, axe_source()) == []
                await page.goto(f"{server.address}/console/agents")
                await page.keyboard.press("?")
                assert await page.locator("dialog kbd").all_inner_texts() == ["?"]

    asyncio.run(main())


def test_keys_can_be_switched_off(tmp_path: Path) -> None:
    """Without the box of the form no letter acts on any page; with it they act again. The slider's own keys stay."""
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, script()) as server:
            await (await server.system.agent("sam")).ask("I have a dog")
            here = f"{server.address}/console/a/sam"
            async with browser_page(path) as page:
                for on in (False, True):
                    await page.goto(f"{server.address}/console/preferences?next=/console/a/sam")
                    await page.get_by_label("Letters and digits are keys").set_checked(on)
                    await page.get_by_role("button", name="Keep").click()
                    await page.wait_for_url(here)
                    await page.locator("#slider").focus()
                    await page.keyboard.press("g")
                    await expect(page.locator("#where")).to_have_text("1")
                    await page.keyboard.press("?")
                    await expect(page.get_by_role("dialog")).to_have_count(int(on))

    asyncio.run(main())
