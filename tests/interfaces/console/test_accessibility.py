"""Barriers of the console: axe-core finds none on any page, in both themes, on a narrow and on a wide window."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.interfaces.console.test_approvals_page import APPEND
from tests.interfaces.console.test_every_page import script
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.axe import axe_source, barriers
from tests.support.http.real_browser import browser_page, browser_path
from tests.support.http.served_store import Served, served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

OF_ALL = (
    "/agents",
    "/agents?q=nobody",
    "/sql",
    "/sql?q=FROM+messages",
    "/sql?q=FROM+nothing",
    "/approvals",
    "/approvals?decided=true",
    "/costs?days=30",
    "/compare",
    "/compare?a=sam&a_at=3",
    "/sign-in",
    "/preferences",
)
OF_AGENT = (
    "",
    "?as_of=4",
    "/chat",
    "/memory",
    "/memory/human",
    "/memory/human/edit",
    "/context",
    "/records",
    "/records?type=user_message",
    "/records/3",
    "/search",
    "/search?q=dog",
    "/settings",
)


async def lived(server: Served) -> tuple[str, str]:
    """Make agents that have said, remembered and asked for something, and return two pages of sam: an edit that is
    explained, and the words of its answer.
    """
    agent = await server.system.agent("sam")
    await agent.ask("I have a dog")
    settings = {"approvals": [{"function": "core_memory_append", "decision": "ask"}]}
    await server.call("POST", "/agents", {"name": "tom", "settings": settings}, status=201)
    await server.call("POST", "/agents/tom/messages", {"text": "I sail"}, status=200)
    blocks = (await server.call("GET", "/agents/sam/blocks"))["blocks"]
    edit = next(one["seq"] for one in blocks if one["label"] == "human")
    records = (await server.call("GET", "/agents/sam/records"))["records"]
    answer = next(one["seq"] for one in records if one["type"] == "message_sent")
    return f"/memory/human?by={edit}", f"/words/{answer}"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_no_page_has_a_barrier(tmp_path: Path, theme: str, width: int) -> None:
    """Every page keeps the rules of WCAG 2.2 AA that axe-core can check, and those that it calls best practice."""
    path, source = browser_path(), axe_source()

    async def main() -> None:
        model = Script([*script().answers, completion(APPEND), says("I wait.")])
        async with served(tmp_path, model) as server:
            explained, answered = await lived(server)
            places = [f"/console{place}" for place in OF_ALL]
            places += [f"/console/a/sam{place}" for place in (*OF_AGENT, explained, answered)]
            places += [f"/console/a/tom{place}" for place in ("", "/chat")]
            async with browser_page(path, color_scheme=theme, viewport={"width": width, "height": 900}) as page:
                found = {}
                for place in places:
                    await page.goto(server.address + place)
                    if broken := await barriers(page, source):
                        found[place] = broken
            assert not found, json.dumps(found, indent=1)

    asyncio.run(main())
