"""The settings of an agent in the console: as they were at a moment, and changed by a form."""

import asyncio
from pathlib import Path

import pytest

from tests.interfaces.console.test_every_page import FORM, cookie
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import served

PAGE = "/console/a/sam/settings"


def test_a_form_changes_only_what_differs_and_the_past_stays(tmp_path: Path) -> None:
    """A value that the form changes is a record with that change alone; the page of the moment before shows the old
    value; the same form sent again writes nothing.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            head = (await server.call("GET", "/agents/sam"))["head"]
            form = {"window": "9000", "zone": "Europe/Berlin"}
            for _ in range(2):
                saved = await server.client.post(PAGE, data=form, headers=FORM)
                assert (saved.status_code, saved.headers["location"]) == (303, PAGE)
            agent = await server.call("GET", "/agents/sam")
            assert (agent["settings"]["window"], agent["settings"]["zone"]) == (9000, "Europe/Berlin")
            assert agent["head"] == head + 1
            now = (await server.client.get(PAGE)).text
            ParsedPage(now).check()
            assert "<ins>9000</ins>" in now and "<ins>Europe/Berlin</ins>" in now
            past = (await server.client.get(f"{PAGE}?as_of={head}")).text
            assert "9000" not in past and '<input id="set-window"' not in past

    asyncio.run(main())


@pytest.mark.parametrize("field", [("window", "many"), ("window", "-1"), ("day_cost_max", "x"), ("zone", "Nowhere/At")])
def test_a_value_that_is_none_changes_nothing_and_stays_in_the_form(tmp_path: Path, field: tuple[str, str]) -> None:
    """An unusable value answers 400 in words; the form keeps it, and the agent its settings."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            head = (await server.call("GET", "/agents/sam"))["head"]
            answer = await server.client.post(PAGE, data=dict([field]), headers=FORM)
            assert answer.status_code == 400
            ParsedPage(answer.text).check()
            assert f'value="{field[1]}"' in answer.text and 'role="alert"' in answer.text
            assert (await server.call("GET", "/agents/sam"))["head"] == head

    asyncio.run(main())


def test_only_an_admin_changes_settings(tmp_path: Path) -> None:
    """A key with the role `talk` sees the settings without a form, and its form is refused."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            talker = cookie(server, server.key("talk"))
            page = await server.client.get(PAGE, headers=talker)
            assert page.status_code == 200 and 'id="set-window"' not in page.text
            sent = await server.client.post(PAGE, data={"window": "9000"}, headers={**FORM, **talker})
            assert sent.status_code == 403

    asyncio.run(main())
