"""Barriers of the console: axe-core finds none on any page, in both themes, on a narrow and on a wide window."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.interfaces.console.test_approvals_page import APPEND
from tests.interfaces.console.test_every_page import script
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.axe import CONTRAST, axe_source, barriers
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
    "/search",
    "/search?q=dog",
    "/library",
    "/shared/house",
    "/sources/notes",
    "/jobs",
    "/cluster",
    "/keys",
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
    "/memories",
    "/archive",
    "/fork",
)


async def lived(server: Served) -> list[str]:
    """Make agents that have said, remembered, concluded, shared and asked for something, and a job; return the pages of
    what was made: an edit that is explained, the words of an answer, the tree of a fact, and the job.
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
    said = next(one["seq"] for one in records if one["type"] == "user_message")
    fact = {"subject": "user", "predicate": "has", "object": "a dog", "sources": [said]}
    noted = await server.call("POST", "/agents/sam/facts", fact, status=201)
    await server.call("POST", "/agents/sam/archive", {"text": "A kennel.", "tags": ["dog"]}, status=201)
    await server.call("POST", "/blocks", {"block": "house", "value": "A cat."}, status=201)
    await server.call("PUT", "/agents/sam/shared/house", {}, status=200)
    text = {"Content-Type": "text/plain"}
    await server.client.put("/api/v1/sources/notes/documents/a.txt", content=b"Sail.", headers=text)
    job = (await server.call("POST", "/agents/sam/verify", {}, status=202))["job"]
    while server.service.tasks:
        await asyncio.wait(set(server.service.tasks))
    of_sam = (f"/memory/human?by={edit}", f"/words/{answer}", f"/memories/{noted['seq']}")
    return [*(f"/a/sam{place}" for place in of_sam), f"/jobs/{job}"]


@pytest.mark.parametrize("width", [320, 1280])
def test_no_page_has_a_barrier(tmp_path: Path, width: int) -> None:
    """Every page keeps the rules of WCAG 2.2 AA that axe-core can check, and those that it calls best practice. A theme
    changes colours alone: in the dark one the contrast is checked once more.
    """
    path, source = browser_path(), axe_source()

    async def main() -> None:
        model = Script([*script().answers, completion(APPEND), says("I wait.")])
        async with served(tmp_path, model) as server:
            made = await lived(server)
            places = [*OF_ALL, *(f"/a/sam{place}" for place in OF_AGENT), *made, "/a/tom", "/a/tom/chat"]
            view = {"width": width, "height": 900}
            # Without motion: a colour that is still changing has the contrast of neither theme.
            async with browser_page(path, reduced_motion="reduce", viewport=view) as page:
                found = {}
                for place in places:
                    await page.emulate_media(color_scheme="light")
                    await page.goto(f"{server.address}/console{place}")
                    broken = await barriers(page, source)
                    await page.emulate_media(color_scheme="dark")
                    if broken := [*broken, *await barriers(page, source, rules=CONTRAST)]:
                        found[place] = broken
            assert not found, json.dumps(found, indent=1)

    asyncio.run(main())
