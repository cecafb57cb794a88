"""A real browser for tests: Debian's Chromium, driven by playwright. A test without one is skipped, with the reason."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CURE = "no browser: apt-get install chromium && pip install -e '.[browser]'"


def browser_path() -> str:
    """Return the program of the browser. Skips the test if there is none; fails if EVERLOG_BROWSER_REQUIRED is set."""
    found = os.environ.get("EVERLOG_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    try:
        import playwright.async_api  # noqa: F401
    except ImportError:
        found = None
    if found:
        return found
    if os.environ.get("EVERLOG_BROWSER_REQUIRED"):
        pytest.fail(CURE)
    pytest.skip(CURE)


@asynccontextmanager
async def browser_page(path: str, *, refused: int = 0, **options: Any) -> AsyncIterator[Any]:
    """Open a page in a context of its own. `options`: those of a context, such as color_scheme. At the end of the block
    fails if the page said anything on the browser's console, or asked for anything from elsewhere. `refused`: status
    of answers that the test provokes, which the browser may name there.
    """
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path)
        try:
            context = await browser.new_context(**options)
            page = await context.new_page()
            said: list[str] = []
            asked: list[str] = []
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            yield page
            strange = [url for url in asked if not url.startswith("http://127.0.0.1:")]
            await context.close()
            assert strange == []
            known = ("Password forms", f"responded with a status of {refused} ")
            assert [text for text in said if not any(part in text for part in known)] == []
        finally:
            await browser.close()
