"""Editing a memory block with a form: saved once, from the text that the person saw, or not at all."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.console.test_every_page import FORM, cookie, script
from tests.support.cli.command_line import Script, says
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import Headers, Served, served

EDIT = "/console/a/sam/memory/human/edit"


async def _sent(server: Served, headers: Headers | None = None, **fields: object) -> Any:
    data = {name: str(value) for name, value in fields.items()}
    return await server.client.post(EDIT, data=data, headers={**FORM, **(headers or {})})


async def _human(server: Served) -> dict[str, Any]:
    blocks = (await server.call("GET", "/agents/sam/blocks"))["blocks"]
    return next(block for block in blocks if block["label"] == "human")


def test_an_edit_is_saved_as_it_was_written(tmp_path: Path) -> None:
    """The form has the text of now; what is sent becomes the text, with ends of lines as in the log, first and last
    empty lines included; the answer leads to the block.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("Hi.")])) as server:
            await server.system.agent("sam")
            block = await _human(server)
            form = (await server.client.get(EDIT)).text
            ParsedPage(form).check()
            assert f'name="base" value="{block["seq"]}"' in form
            assert f">\n{block['value'][:20]}" in form
            answer = await _sent(server, base=block["seq"], value="\r\nOne </textarea><b>\r\nTwo\r\n")
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/a/sam/memory/human")
            assert (await _human(server))["value"] == "\nOne </textarea><b>\nTwo\n"
            again = (await server.client.get(EDIT)).text
            ParsedPage(again).check()
            assert "\n\nOne &lt;/textarea&gt;" in again

    asyncio.run(main())


def test_a_late_edit_changes_nothing_and_shows_three_texts(tmp_path: Path) -> None:
    """An edit made from a text that the agent has changed since answers 412: the page shows the base, the newer text
    with the words that led to it, and the edit, and its form continues from the newer text. Sending that saves it.
    """

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            agent = await server.system.agent("sam")
            before = await _human(server)
            await agent.ask("I have a dog")
            theirs = await _human(server)
            late = await _sent(server, base=before["seq"], value=f"{before['value']} Likes tea.")
            assert late.status_code == 412
            page = ParsedPage(late.text)
            page.check()
            assert await _human(server) == theirs
            assert "Has a dog.</ins>" in late.text and "Likes tea.</ins>" in late.text
            assert "I have a dog" in page.text and f'name="base" value="{theirs["seq"]}"' in late.text
            merged = f"{theirs['value']} Likes tea."
            saved = await _sent(server, base=theirs["seq"], value=merged)
            assert saved.status_code == 303
            assert (await _human(server))["value"] == merged

    asyncio.run(main())


def test_a_form_that_is_sent_twice_edits_once(tmp_path: Path) -> None:
    """The second of two equal edits from one text is no conflict, and leaves no record."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            base = (await _human(server))["seq"]
            assert (await _sent(server, base=base, value="Tea.")).status_code == 303
            head = (await server.call("GET", "/agents/sam"))["head"]
            assert (await _sent(server, base=base, value="Tea.")).status_code == 303
            assert (await server.call("GET", "/agents/sam"))["head"] == head

    asyncio.run(main())


def test_a_text_over_the_limit_is_refused_and_kept_in_the_form(tmp_path: Path) -> None:
    """A text that is longer than the block's limit answers 400, changes nothing, and stays in the form."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            block = await _human(server)
            long = "tea " * block["limit"]
            answer = await _sent(server, base=block["seq"], value=long)
            assert answer.status_code == 400 and long.strip() in answer.text
            ParsedPage(answer.text).check()
            assert await _human(server) == block

    asyncio.run(main())


@pytest.mark.parametrize("fields", [{}, {"value": "x"}, {"base": 1}, {"base": "x", "value": "x"}])
def test_a_form_without_a_base_is_refused(tmp_path: Path, fields: dict[str, object]) -> None:
    """An edit that does not say which text it was made from answers 400."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            assert (await _sent(server, **fields)).status_code == 400

    asyncio.run(main())


def test_only_a_key_that_may_talk_edits_and_only_from_a_page_of_this_server(tmp_path: Path) -> None:
    """A key that may only read is offered no form and refused; so is a form of another site, with any key."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            reader, talker = (cookie(server, server.key(role)) for role in ("read", "talk"))
            base = 1
            assert "<textarea" not in (await server.client.get(EDIT, headers=reader)).text
            assert "<textarea" in (await server.client.get(EDIT, headers=talker)).text
            assert (await _sent(server, reader, base=base, value="x")).status_code == 403
            for place in ("cross-site", "same-site", "none"):
                sent = await _sent(server, {**talker, "Sec-Fetch-Site": place}, base=base, value="x")
                assert sent.status_code == 403, place

    asyncio.run(main())
