"""The search page finds what the agent knew at the moment of the address, and leads to the moment of each result."""

import asyncio
from pathlib import Path

import pytest

from everlog.interfaces.http.console.questions.search_page import marked
from tests.support.cli.command_line import Script, says
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import served


def test_a_result_leads_to_its_moment_and_later_words_are_not_found(tmp_path: Path) -> None:
    """A message is found with a link to the event at which it was said; a text that was stored is found too; at an
    earlier moment neither is there, and the page offers the wider search.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("Noted."), says("Yes.")])) as server:
            agent = await server.system.agent("sam")
            await agent.ask("My dog is called Bello")
            before = (await server.call("GET", "/agents/sam"))["head"]
            await agent.archive.insert("The cat is called Minka", ["pets"])
            records = (await server.call("GET", "/agents/sam/records"))["records"]
            said = next(one["seq"] for one in records if one["type"] == "user_message")
            dog = ParsedPage((await server.client.get("/console/a/sam/search?q=bello")).text)
            dog.check()
            assert f"/console/a/sam?as_of={said}" in dog.values("a", "href")
            cat = (await server.client.get("/console/a/sam/search?q=minka&place=archive")).text
            assert "<strong>Minka</strong>" in cat and "pets" in cat
            past = (await server.client.get(f"/console/a/sam/search?q=minka&place=archive&as_of={before}")).text
            assert "Nothing found" in past and "The cat" not in past
            assert "/console/a/sam/search?q=minka" in ParsedPage(past).values("a", "href")

    asyncio.run(main())


@pytest.mark.parametrize("query", ["q=x&page=0", "q=x&page=9999", "q=x&place=moon", f"q={'x' * 2001}"])
def test_a_search_that_cannot_be_is_refused_in_words(tmp_path: Path, query: str) -> None:
    """A page, a place or a query outside the limits answers 400 as a page."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            page = await server.client.get(f"/console/a/sam/search?{query}")
            assert page.status_code == 400
            ParsedPage(page.text).check()

    asyncio.run(main())


def test_words_of_the_query_are_marked_and_nothing_is_lost() -> None:
    """The pieces together are the text; the words of the query, in any case, are the marked ones."""
    pieces = marked("Bello, the dog: BELLO!", "bello?")
    assert "".join(text for _, text in pieces) == "Bello, the dog: BELLO!"
    assert [text for mark, text in pieces if mark] == ["Bello", "BELLO"]
