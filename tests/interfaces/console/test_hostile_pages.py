"""Words of agents, users and documents are text on every page: they make no markup, no request and no link."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import strategies as st

from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.http.console.tilde_names import name_in, written
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.hostile_texts import HOSTILE
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import served
from tests.support.law import law
from tests.support.seeds import few_and_all, pick

TABS = (
    "",
    "/chat",
    "/memory",
    "/memory/human",
    "/memory/human?by=BY",
    "/context",
    "/records",
    "/search?q=script+top",
    "/settings",
    "/memory/human/edit",
    "/memories",
    "/archive",
    "/fork",
    "/words/ANSWER",
)


@law(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60), few=200, many=50_000)
def test_a_name_survives_its_address(name):
    """Every name is written into a path as one part of safe characters, and read back as it was."""
    part = written(name)
    assert name_in(part) == name
    assert part.isascii() and not set(part) - set("-_~") - set(map(chr, range(128))) and "/" not in part
    assert all(sign.isalnum() or sign in "-_~" for sign in part)


@pytest.mark.parametrize("count", few_and_all(24, part="commands"))
def test_hostile_words_are_text_on_every_page(tmp_path: Path, count: int | None) -> None:
    """Every attack, as a message, a thought, a reply, an argument, a result and a memory, is shown as it was said on
    each page, with what hides in it written out, and no page has a tag that the templates do not write.
    """
    hostile = pick(HOSTILE, count, label="attacks on pages")
    edits = [("core_memory_append", {"label": "human", "content": text, "request_heartbeat": True}) for text in hostile]
    batches = [edits[at : at + 12] for at in range(0, len(edits), 12)]
    script = Script([
        *(answer for batch in batches for answer in (completion(*batch, thought=batch[0][1]["content"]), says("Yes."))),
        *(says(text, thought=text) for text in hostile),
    ])  # fmt: skip

    async def main() -> None:
        async with served(tmp_path, script) as server:
            agent = await server.system.agent("sam")
            await agent.update_block("human", "", limit=100_000)
            for _ in batches:
                await agent.ask("Remember.")
            memory = (await server.call("GET", "/agents/sam/blocks"))["blocks"]
            human = next(block for block in memory if block["label"] == "human")
            assert sum(sanitize(text).strip() in sanitize(human["value"]) for text in hostile) > len(hostile) * 0.9
            records = (await server.call("GET", "/agents/sam/records?limit=500"))["records"]
            answer = [one["seq"] for one in records if one["type"] == "message_sent"][-1]
            for tab in TABS:
                place = tab.replace("BY", str(human["seq"])).replace("ANSWER", str(answer))
                page = await server.client.get(f"/console/a/sam{place}")
                assert page.status_code == 200, tab
                ParsedPage(page.text).check()
            block = ParsedPage((await server.client.get("/console/a/sam/memory/human")).text)
            for line in sanitize(human["value"]).split("\n"):
                assert line.strip() in block.text
            said = [text for text in hostile if text.strip()]
            for batch in (said[at : at + 20] for at in range(0, len(said), 20)):
                for text in batch:
                    await agent.ask(text)
                page = ParsedPage((await server.client.get("/console/a/sam/chat")).text)
                page.check()
                for text in batch:
                    assert sanitize(text).strip() in page.text

    asyncio.run(main())


def test_hostile_names_are_text_in_addresses_and_on_pages(tmp_path: Path) -> None:
    """An agent whose name is an attack is listed under it, and the link of the list leads to its page."""
    names = [text for text in HOSTILE if len(text.encode()) <= 200]

    async def main() -> None:
        async with served(tmp_path) as server:
            made = []
            for name in names[::6]:
                created = await server.call("POST", "/agents", {"name": name})
                if "agent" in created:
                    made.append(created["agent"])
            assert len(made) > len(names) / 12
            listing = ParsedPage((await server.client.get("/console/agents?sort=name")).text)
            listing.check()
            for name in made[::2]:
                address = f"/console/a/{written(name)}"
                assert address in listing.values("a", "href")
                page = await server.client.get(address)
                assert page.status_code == 200, name
                ParsedPage(page.text).check()
                searched = await server.client.get("/console/agents", params={"q": name})
                ParsedPage(searched.text).check()

    asyncio.run(main())
