"""The comparison of two agents, or of two moments of one, in the console."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import strategies as st

from everlog.interfaces.http.console.questions.compare_page import (
    MESSAGES_SHOWN,
    ComparedMessage,
    message_runs,
    shortened,
)
from tests.interfaces.console.test_every_page import cookie, script
from tests.support.cli.command_line import Script, says
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import served
from tests.support.law import law

CONTEXT = st.lists(st.sampled_from("abcd"), max_size=30)


def test_two_moments_of_an_agent_differ_by_what_happened_between(tmp_path: Path) -> None:
    """Words that were remembered between the moments are added, with the event that did it; exchanged moments remove
    them; a moment and itself differ in nothing.
    """

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            agent = await server.system.agent("sam")
            start = (await server.call("GET", "/agents/sam"))["head"]
            await agent.ask("I have a dog")
            blocks = (await server.call("GET", "/agents/sam/blocks"))["blocks"]
            seq = next(block["seq"] for block in blocks if block["label"] == "human")
            there = (await server.client.get(f"/console/compare?a=sam&a_at={start}")).text
            ParsedPage(there).check()
            assert "Has a dog.</ins>" in there and f"/console/a/sam/records/{seq}" in there
            back = (await server.client.get(f"/console/compare?a=sam&b=sam&b_at={start}")).text
            assert "Has a dog.</del>" in back
            same = (await server.client.get("/console/compare?a=sam")).text
            assert "Nothing is different" in same

    asyncio.run(main())


def test_a_fork_is_compared_with_its_original(tmp_path: Path) -> None:
    """Messages that both saw are folded, and those that each saw alone stand side by side."""

    async def main() -> None:
        async with served(tmp_path, Script([says("One."), says("Left."), says("Right.")])) as server:
            agent = await server.system.agent("sam")
            await agent.ask("First")
            await server.call("POST", "/agents/sam/forks", {"name": "tim"}, status=201)
            await agent.ask("Go left")
            await (await server.system.agent("tim")).ask("Go right")
            page = (await server.client.get("/console/compare?a=sam&b=tim")).text
            ParsedPage(page).check()
            assert "messages the same" in page
            assert page.index("Go left") < page.index("Go right")

    asyncio.run(main())


def test_another_tenant_compares_nothing_of_others(tmp_path: Path) -> None:
    """Neither side of a comparison can be an agent of another tenant."""

    async def main() -> None:
        async with served(tmp_path) as server:
            for tenant, name in (("acme", "sam"), ("beta", "tom")):
                await server.call("POST", "/agents", {"name": name}, headers=server.key(tenant=tenant), status=201)
            mine = cookie(server, server.key("read", "beta"))
            for query, status in (("a=tom", 200), ("a=sam", 404), ("a=tom&b=sam", 404), ("a=acme.sam", 404)):
                page = await server.client.get(f"/console/compare?{query}", headers=mine)
                assert page.status_code == status, query
                assert "acme" not in page.text.replace("acme.sam", ""), query

    asyncio.run(main())


@pytest.mark.parametrize("query", ["a=sam&a_at=0", "a=sam&a_at=99999", "a=sam&b_at=soon"])
def test_a_moment_that_cannot_be_is_refused(tmp_path: Path, query: str) -> None:
    """A moment outside the log answers 400 as a page."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            page = await server.client.get(f"/console/compare?{query}")
            assert page.status_code == 400
            ParsedPage(page.text).check()

    asyncio.run(main())


@law(CONTEXT, CONTEXT, few=100, many=20_000)
def test_runs_hold_both_contexts(first, second):
    """The runs together are both contexts in order, and every message in a run of the same is on both sides."""
    sides = [[ComparedMessage(n, "user", text) for n, text in enumerate(side, 1)] for side in (first, second)]
    place = [0, 0]
    for run in message_runs(*sides):
        texts = [[one.text for one in side[at : at + run.same]] for side, at in zip(sides, place, strict=True)]
        assert texts[0] == texts[1]
        place = [at + run.same for at in place]
        for number, own in enumerate((run.first, run.second)):
            assert list(own) == sides[number][place[number] : place[number] + len(own)]
            place[number] += len(own)
    assert place == [len(first), len(second)]


def test_long_differences_are_cut_and_counted() -> None:
    """Of two long contexts that differ the page has so many messages of each, and says how many it left out."""
    sides = [[ComparedMessage(n, "user", f"{side}{n}") for n in range(1, MESSAGES_SHOWN + 51)] for side in "ab"]
    runs, left = shortened(message_runs(*sides))
    assert sum(len(run.first) for run in runs) == sum(len(run.second) for run in runs) == MESSAGES_SHOWN
    assert left == 100
