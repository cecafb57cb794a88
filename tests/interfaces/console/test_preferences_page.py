"""Theme, time zone and keys of the console: chosen by a form, kept in the browser, and never in the store."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.console.test_every_page import FORM
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.real_browser import browser_page, browser_path
from tests.support.http.served_store import Served, served

FORM_PAGE = "/console/preferences"


async def _sent(server: Served, site: str = "same-origin", **fields: str) -> Any:
    return await server.client.post(FORM_PAGE, data=fields, headers={**FORM, "Sec-Fetch-Site": site})


def test_chosen_theme_and_zone_are_on_every_page(tmp_path: Path) -> None:
    """After the form, pages name the theme and show times in the zone; the form shows both; a page that was kept
    with the old choices is sent again; and without the box of the keys, pages say that letters are none.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            before = await server.client.get("/console/a/sam/records/2")
            assert " UTC" in before.text and "data-theme" not in before.text
            answer = await _sent(server, theme="dark", zone="Asia/Tokyo", keys="on", next="/console/a/sam")
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/a/sam")
            kept = answer.headers.get_list("set-cookie")
            assert len(kept) == 3 and all("HttpOnly" in one and "Path=/console" in one for one in kept)
            sent = {"Cookie": "; ".join(one.split(";")[0] for one in kept)}
            after = await server.client.get(
                "/console/a/sam/records/2", headers={**sent, "If-None-Match": before.headers["etag"]}
            )
            assert after.status_code == 200
            assert '<html lang="en" data-theme="dark">' in after.text and " JST" in after.text
            hours = [int(re.search(r"(\d\d):\d\d:\d\d (?:UTC|JST)", one.text)[1]) for one in (before, after)]  # type: ignore[index]
            assert (hours[1] - hours[0]) % 24 == 9
            form = ParsedPage((await server.client.get(FORM_PAGE, headers=sent)).text)
            form.check()
            assert "Asia/Tokyo" in form.values("input", "value")
            without = await _sent(server, theme="", zone="UTC")
            sent = {"Cookie": "; ".join(one.split(";")[0] for one in without.headers.get_list("set-cookie"))}
            assert '<html lang="en" data-keys="off">' in (await server.client.get(FORM_PAGE, headers=sent)).text

    asyncio.run(main())


@pytest.mark.parametrize("zone", ["", "Moon/Sea", "../../etc/passwd", "x" * 500, "<b>"])
def test_an_unknown_zone_changes_nothing(tmp_path: Path, zone: str) -> None:
    """The form answers 400 with a sentence and keeps no cookie; a cookie that says such a zone counts as none."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            answer = await _sent(server, theme="dark", zone=zone)
            assert answer.status_code == 400 and "set-cookie" not in answer.headers
            ParsedPage(answer.text).check()
            if zone.isprintable() and ";" not in zone:
                cookie = {"Cookie": f"console-zone={zone}; console-theme={zone}"}
                page = await server.client.get("/console/a/sam", headers=cookie)
                assert page.status_code == 200 and " UTC" in page.text and "data-theme" not in page.text

    asyncio.run(main())


def test_only_a_page_of_this_server_chooses_and_leads_back_into_it(tmp_path: Path) -> None:
    """A form of another site is refused, an address outside the console is not gone to, and the link of a page with a
    secret in its address does not repeat it.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            assert (await _sent(server, "cross-site", theme="dark", zone="UTC")).status_code == 403
            answer = await _sent(server, theme="dark", zone="UTC", next="https://evil.example/")
            assert answer.headers["location"] == "/console"
            page = await server.client.get("/console/sign-in?link=secret")
            assert FORM_PAGE in ParsedPage(page.text).values("a", "href")

    asyncio.run(main())


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_a_theme_holds_against_the_browsers_own(tmp_path: Path) -> None:
    """In a browser that prefers light pages, the dark theme makes the ground dark at once and after a restart of the
    page, and "as the browser" makes it light again.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path) as server:
            await server.system.agent("sam")
            async with browser_page(path, color_scheme="light") as page:
                await page.goto(f"{server.address}/console/a/sam")
                body = page.locator("body")
                await expect(body).to_have_css("background-color", "rgb(251, 250, 247)")
                for theme, ground in (("dark", "rgb(20, 23, 26)"), ("as the browser", "rgb(251, 250, 247)")):
                    await page.get_by_role("link", name="Theme").click()
                    await page.get_by_label("Theme", exact=True).select_option(label=theme)
                    await page.get_by_label("Time zone").fill("Asia/Tokyo")
                    await page.keyboard.press("Enter")
                    await expect(page.locator("h1")).to_have_text("sam")
                    await expect(page.locator(".where")).to_contain_text("JST")
                    await expect(body).to_have_css("background-color", ground)
                    await page.reload()
                    await expect(body).to_have_css("background-color", ground)

    asyncio.run(main())
