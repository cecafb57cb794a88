"""Forks, reruns and verifications from a form: each does what its form says, and a fault keeps the form."""

import asyncio
from pathlib import Path
from typing import Any

from tests.interfaces.console.test_every_page import FORM, cookie
from tests.support.cli.command_line import Script, says
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import Served, served


async def post(server: Served, path: str, fields: dict[str, str], headers: Any = None) -> Any:
    """Send a form as a page of the server does."""
    return await server.client.post(path, data=fields, headers={**FORM, **(headers or {})})


async def ended(server: Served, place: str) -> str:
    """Return the page of a job after it ended."""
    while server.service.tasks:
        await asyncio.wait(set(server.service.tasks))
    page = await server.client.get(place)
    assert page.status_code == 200, page.text
    ParsedPage(page.text).check()
    assert "job.js" not in page.text, "the job still runs"
    return page.text


def test_a_fork_begins_at_the_moment_of_its_form(tmp_path: Path) -> None:
    """The form of a past moment makes a fork that remembers nothing later; the agent stays as it is."""

    async def main() -> None:
        async with served(tmp_path, Script([says("One."), says("Two.")])) as server:
            agent = await server.system.agent("sam")
            await agent.ask("First")
            head = (await server.call("GET", "/agents/sam"))["head"]
            await agent.ask("Second")
            form = ParsedPage((await server.client.get(f"/console/a/sam/fork?as_of={head}")).text)
            form.check()
            assert form.values("input", "value").count(str(head)) >= 2
            made = await post(server, "/console/a/sam/fork", {"name": "tim", "at": str(head)})
            assert (made.status_code, made.headers["location"]) == (303, "/console/a/tim/chat")
            records = (await server.call("GET", "/agents/tim/records"))["records"]
            said = [one["text"] for one in records if one["type"] == "user_message"]
            assert said == ["First"]

    asyncio.run(main())


def test_a_fault_keeps_the_form_and_changes_nothing(tmp_path: Path) -> None:
    """A name that is taken, a moment that is none and a number that is none are said beside the form, which has what
    was typed; a key without the role admin is refused.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("One.")])) as server:
            await (await server.system.agent("sam")).ask("First")
            for path, fields, status in (
                ("fork", {"name": "sam", "at": "2"}, 400),
                ("rerun", {"name": "tim", "at": "2", "turns": "many"}, 400),
                ("rerun", {"name": "", "at": "2"}, 400),
                ("verify", {"sample": "-1"}, 400),
            ):
                page = await post(server, f"/console/a/sam/{path}", fields)
                assert page.status_code == status, (path, page.text)
                parsed = ParsedPage(page.text)
                parsed.check()
                assert 'role="alert"' in page.text
                if "turns" in fields:
                    assert "many" in parsed.values("input", "value")
            assert [one["agent"] for one in (await server.call("GET", "/agents"))["agents"]] == ["sam"]
            talker = cookie(server, server.key("talk"))
            refused = await post(server, "/console/a/sam/fork", {"name": "tim"}, talker)
            assert refused.status_code == 403

    asyncio.run(main())


def test_a_rerun_is_a_job_that_compares_turn_by_turn(tmp_path: Path) -> None:
    """A rerun whose model says something else leads to the page of its job, which has both answers side by side and
    leads to the fork and to the comparison.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("One."), says("Two."), says("Other.")])) as server:
            agent = await server.system.agent("sam")
            await agent.ask("First")
            head = (await server.call("GET", "/agents/sam"))["head"]
            await agent.ask("Second")
            begun = await post(server, "/console/a/sam/rerun", {"name": "tim", "at": str(head + 1), "model": "other"})
            assert begun.status_code == 303, begun.text
            page = ParsedPage(text := await ended(server, begun.headers["location"]))
            assert "1 of 1 turn went another way" in page.text
            assert "Two." in page.text and "Other." in page.text, text
            links = page.values("a", "href")
            assert "/console/a/tim" in links and "/console/compare?a=sam&b=tim" in links
            listed = ParsedPage((await server.client.get("/console/jobs")).text)
            listed.check()
            assert begun.headers["location"] in listed.values("a", "href")

    asyncio.run(main())


def test_a_verification_says_that_all_is_equal(tmp_path: Path) -> None:
    """The job of a verification says how many recorded requests were compared, and that none differs."""

    async def main() -> None:
        async with served(tmp_path, Script([says("One."), says("Two.")])) as server:
            agent = await server.system.agent("sam")
            await agent.ask("First")
            await agent.ask("Second")
            begun = await post(server, "/console/a/sam/verify", {"sample": ""})
            assert begun.status_code == 303, begun.text
            text = ParsedPage(await ended(server, begun.headers["location"])).text
            assert "No difference: 2 recorded requests are what the log gives once more" in text

    asyncio.run(main())


def test_no_form_works_from_another_site(tmp_path: Path) -> None:
    """A form that a page of another site sends is refused, and does nothing."""

    async def main() -> None:
        async with served(tmp_path, Script([])) as server:
            await server.system.agent("sam")
            for path in ("fork", "rerun", "verify"):
                sent = {**FORM, "Sec-Fetch-Site": "cross-site"}
                page = await server.client.post(f"/console/a/sam/{path}", data={"name": "tim", "at": "1"}, headers=sent)
                assert page.status_code == 403, path
            assert len((await server.call("GET", "/agents"))["agents"]) == 1

    asyncio.run(main())
