"""Approvals in a real browser: a call is decided on the page and in the chat, with the keyboard, and once."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.interfaces.console.test_approvals_page import APPEND, asked, human
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.real_browser import browser_page, browser_path
from tests.support.http.served_store import served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_a_call_is_decided_in_the_chat_as_soon_as_it_waits(tmp_path: Path) -> None:
    """The call appears in place while the chat is open. Words that a person has begun stay when the talk is drawn
    again. The changed arguments run, and the answer of the agent appears, without another load of the page.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        model = Script([says("Hello."), completion(APPEND), says("Meanwhile."), says("Noted.")])
        async with served(tmp_path, model) as server:
            settings = {"approvals": [{"function": "core_memory_append", "decision": "ask"}]}
            await server.call("POST", "/agents", {"name": "sam", "settings": settings}, status=201)
            await server.call("POST", "/agents/sam/messages", {"text": "Hi"}, status=200)
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/a/sam/chat")
                await page.evaluate("() => { window.kept = true }")
                await page.get_by_label("Your message to sam").fill("I sail")
                await page.get_by_role("button", name="Send").click()
                waiting = page.locator(".entry.waiting.open")
                await expect(waiting).to_contain_text("core_memory_append waits for a person")
                await waiting.get_by_text("Change the arguments").click()
                changed = json.dumps({"name": "human", "content": "Rows."})
                await waiting.get_by_label("Arguments to run").fill(changed)
                await waiting.get_by_label("Words for the agent").fill("Better so.")
                await server.call("POST", "/agents/sam/messages", {"text": "Well?"}, status=200)
                await expect(page.locator("#talk")).to_contain_text("Meanwhile.")
                await expect(waiting.get_by_label("Arguments to run")).to_have_value(changed)
                await expect(waiting.get_by_label("Words for the agent")).to_have_value("Better so.")
                await waiting.get_by_role("button", name="Approve").click()
                await expect(page.locator("#talk")).to_contain_text("Noted.")
                await expect(page.locator(".entry.waiting")).to_contain_text("core_memory_append was approved")
                assert await page.evaluate("() => window.kept")
            assert "Rows." in await human(server)

    asyncio.run(main())


def test_a_call_is_refused_on_the_page_with_the_keyboard_alone(tmp_path: Path) -> None:
    """Tab reaches each field and button of the form in the order of the page; a tab that decides later is told what
    holds.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, Script([completion(APPEND), says("No."), says("Never.")])) as server:
            await asked(server)
            async with browser_page(path) as page:
                late = await page.context.new_page()
                for one in (page, late):
                    await one.goto(f"{server.address}/console/approvals")
                await page.locator(".calls summary").focus()
                await page.keyboard.press("Tab")
                await page.keyboard.type("We do not sail.")
                await page.keyboard.press("Tab")
                await page.keyboard.press("Space")
                await page.keyboard.press("Tab")
                assert await page.evaluate("() => document.activeElement.value") == "approve"
                await page.keyboard.press("Tab")
                await page.keyboard.press("Enter")
                await expect(page.locator("main")).to_contain_text("Nothing waits")
                await late.get_by_role("button", name="Approve").click()
                await expect(late.locator("main")).to_contain_text("was refused at")
            assert "Sails" not in await human(server)
            (one,) = (await server.call("GET", "/approvals?decided=true", status=200))["approvals"]
            assert (one["decision"], one["reason"]) == ("refused", "We do not sail.")

    asyncio.run(main())


def test_a_call_is_changed_and_approved_on_the_page(tmp_path: Path) -> None:
    """The agent's pages say that a call waits. Other arguments run; the list of all calls has both, and the reason."""
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, Script([completion(APPEND), says("Noted.")])) as server:
            await asked(server)
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/a/sam")
                await expect(page.locator(".tabs .badge")).to_contain_text("1 call waits for a person")
                await page.get_by_role("link", name="Approvals").click()
                await page.get_by_text("Change the arguments").click()
                await page.get_by_label("Arguments to run").fill('{"name": "human", "content": "Rows."}')
                await page.get_by_label("Words for the agent").fill("Better so.")
                await page.get_by_role("button", name="Approve").click()
                await expect(page.locator("main")).to_contain_text("Nothing waits")
                await page.get_by_role("link", name="All", exact=True).click()
                for words in ("approved", "Better so.", "Rows.", "Sails"):
                    await expect(page.locator(".calls")).to_contain_text(words)
            assert "Rows." in await human(server)

    asyncio.run(main())
