"""The page about words: an answer and a summary lead to what was in sight, and to the input of their turn."""

import asyncio
from pathlib import Path

from tests.support.cli.command_line import Script, completion, says
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import Served, served

SAM = "/console/a/sam"


async def seqs(server: Served, kind: str) -> list[int]:
    """Return the events of a type of sam, in order."""
    return [one["seq"] for one in (await server.call("GET", "/agents/sam/records"))["records"] if one["type"] == kind]


async def traced(server: Served, seq: int) -> ParsedPage:
    """Return the page about the words of a record."""
    page = await server.client.get(f"{SAM}/words/{seq}")
    assert page.status_code == 200, page.text
    parsed = ParsedPage(page.text)
    parsed.check()
    return parsed


def test_an_answer_leads_to_the_edit_and_the_message_that_had_its_words(tmp_path: Path) -> None:
    """Words from core memory lead to the edit that put them there, words of the user to the message, the turn to its
    input; and the page links to all that the model saw, as of the event before its reply. The talk leads to the page.
    """
    remembered = ("core_memory_append", {"label": "human", "content": "Has a parrot.", "request_heartbeat": True})
    model = Script([completion(remembered), says("Noted."), says("Your parrot likes Lisbon.")])

    async def main() -> None:
        async with served(tmp_path, model) as server:
            agent = await server.system.agent("sam")
            await agent.ask("I have a pet")
            await agent.ask("Would it like Lisbon?")
            answer = (await seqs(server, "message_sent"))[-1]
            reply = (await seqs(server, "model_reply"))[-1]
            edit, question = (await seqs(server, "memory_edited"))[-1], (await seqs(server, "user_message"))[-1]
            page = await traced(server, answer)
            links = page.values("a", "href")
            assert f"{SAM}/memory/human?as_of={reply - 1}&by={edit}#why" in links
            assert f"{SAM}/records/{question}" in links and f"{SAM}/context?as_of={reply - 1}" in links
            assert "in turn 2" in page.text and "Would it like Lisbon?" in page.text
            assert "Has a parrot." in page.text
            talk = ParsedPage((await server.client.get(SAM)).text)
            assert f"{SAM}/words/{answer}" in talk.values("a", "href")
            why = await server.client.get(f"{SAM}/memory/human?as_of={reply - 1}&by={edit}")
            assert "I have a pet" in why.text

    asyncio.run(main())


def test_later_words_are_not_in_sight(tmp_path: Path) -> None:
    """Texts that came after an answer do not appear as its sources, however often they have its words."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Marzipan it is."), says("Yes.")])) as server:
            agent = await server.system.agent("sam")
            await agent.ask("Choose a cake")
            await agent.ask("Marzipan it is, then")
            await agent.update_block("human", "Likes marzipan.")
            page = await traced(server, (await seqs(server, "message_sent"))[0])
            later = (await seqs(server, "user_message"))[-1]
            assert f"{SAM}/records/{later}" not in page.values("a", "href") and "Likes" not in page.text

    asyncio.run(main())


def test_a_summary_leads_to_the_messages_that_it_covers(tmp_path: Path) -> None:
    """The words of a summary lead to the messages from which it was made, and a record of another type to its page."""

    async def main() -> None:
        model = Script([says("A harpsichord!"), *(says(f"Yes, {number}.") for number in range(9))])
        async with served(tmp_path, model) as server:
            agent = await server.system.agent("sam")
            await agent.ask("I repair harpsichords in Ghent")
            for number in range(9):
                await agent.ask(f"Word {number}")
            model.answers[:] = [completion(words="They repair harpsichords, and live in Ghent.")]
            await agent.summarize()
            summary = (await seqs(server, "summary"))[-1]
            first = (await seqs(server, "user_message"))[0]
            page = await traced(server, summary)
            assert "this summary comes from" in page.text
            assert f"{SAM}/records/{first}" in page.values("a", "href")
            other = await server.client.get(f"{SAM}/words/{first}")
            assert (other.status_code, other.headers["location"]) == (303, f"{SAM}/records/{first}")

    asyncio.run(main())
