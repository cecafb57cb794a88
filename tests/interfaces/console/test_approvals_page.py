"""Approvals in the console: what waits is listed with its exact call, and decided once, by keys that may decide."""

import asyncio
from pathlib import Path
from typing import Any

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.functions.tools import tool
from everlog.actors.ports.function_call import continuation
from everlog.events import ApprovalRule, Question
from tests.interfaces.console.test_every_page import FORM, cookie
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import Headers, Served, served

APPEND = ("core_memory_append", {"name": "human", "content": "Sails </pre><b>"})
ASKS = Settings(approvals=[ApprovalRule("core_memory_append")])


async def asked(server: Served, name: str = "sam", headers: Headers | None = None) -> int:
    """Let the agent ask for an approval, and return the seq of its request."""
    settings = {"approvals": [{"function": "core_memory_append", "decision": "ask"}]}
    await server.call("POST", "/agents", {"name": name, "settings": settings}, headers=headers, status=201)
    await server.call("POST", f"/agents/{name}/messages", {"text": "I sail"}, headers=headers, status=200)
    (one,) = (await server.call("GET", f"/approvals?agent={name}", headers=headers, status=200))["approvals"]
    return int(one["seq"])


async def sent(server: Served, seq: int, headers: Headers | None = None, agent: str = "sam", **fields: str) -> Any:
    path = f"/console/a/{agent}/approvals/{seq}"
    return await server.client.post(path, data=fields, headers={**FORM, **(headers or {})})


async def human(server: Served) -> str:
    blocks = (await server.call("GET", "/agents/sam/blocks"))["blocks"]
    return str(next(block["value"] for block in blocks if block["label"] == "human"))


def test_a_call_is_listed_and_approved_by_its_form(tmp_path: Path) -> None:
    """The page shows the exact arguments, and the form leads back to the list. Afterwards nothing waits, and the list
    of all calls says what was decided.
    """

    async def main() -> None:
        async with served(tmp_path, Script([completion(APPEND), says("Noted.")])) as server:
            seq = await asked(server)
            listed = (await server.client.get("/console/approvals")).text
            ParsedPage(listed).check()
            assert "Sails &lt;/pre&gt;&lt;b&gt;" in listed and f'action="/console/a/sam/approvals/{seq}"' in listed
            answer = await sent(server, seq, decision="approve", reason="Fine.")
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/approvals")
            assert await _has_said(server, "Noted.")
            assert "Sails </pre><b>" in await human(server)
            assert "Nothing waits" in (await server.client.get("/console/approvals")).text
            page = ParsedPage((await server.client.get("/console/approvals?decided=true")).text)
            assert "approved" in page.text and "Reason: Fine." in page.text

    asyncio.run(main())


async def _has_said(server: Served, words: str) -> bool:
    """Return True when the agent says these words. The stream begins with its first record."""
    found = await server.events("/agents/sam/stream?after=0", until=lambda one: words in str(one.data))
    return words in str(found[-1].data)


def test_other_arguments_and_a_refusal(tmp_path: Path) -> None:
    """Changed arguments run in place of the model's; wrong ones decide nothing and stay in the form; a refused call
    never runs; the chat leads back to itself.
    """

    async def main() -> None:
        model = Script([completion(APPEND), says("Noted."), completion(APPEND), says("No.")])
        async with served(tmp_path, model) as server:
            seq = await asked(server)
            wrong = await sent(server, seq, decision="approve", arguments='{"name": 1')
            assert wrong.status_code == 400
            assert "are no JSON object" in wrong.text and "{&#34;name&#34;: 1" in wrong.text
            deep = await sent(server, seq, decision="approve", arguments='{"a":' * 3000 + "1" + "}" * 3000)
            assert deep.status_code == 400
            other = '{"name": "human", "content": "Rows."}'
            answer = await sent(server, seq, decision="approve", arguments=other, back="chat")
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/a/sam/chat")
            assert await _has_said(server, "Noted.")
            assert "Rows." in await human(server)
            await server.call("POST", "/agents/sam/messages", {"text": "I sail"}, status=200)
            (one,) = (await server.call("GET", "/approvals", status=200))["approvals"]
            assert (await sent(server, one["seq"], decision="refuse")).status_code == 303
            assert "Sails" not in await human(server)

    asyncio.run(main())


def test_a_late_decision_says_what_holds(tmp_path: Path) -> None:
    """The second of two decisions answers 409 with the first, and a form that decides nothing 400."""

    async def main() -> None:
        async with served(tmp_path, Script([completion(APPEND), says("Noted.")])) as server:
            seq = await asked(server)
            assert (await sent(server, seq)).status_code == 400
            assert (await sent(server, seq, decision="approve")).status_code == 303
            late = await sent(server, seq, decision="refuse")
            assert late.status_code == 409
            assert "was approved at" in ParsedPage(late.text).text
            assert (await sent(server, 99999, decision="approve")).status_code == 400

    asyncio.run(main())


def test_who_may_decide(tmp_path: Path) -> None:
    """Another tenant sees nothing and gets 404; a key that reads sees the call without a form, and gets 403; `always`
    needs the role admin; a page of another site gets 403. None of these decides anything.
    """

    async def main() -> None:
        async with served(tmp_path, Script([completion(APPEND), says("Noted.")])) as server:
            admin, talk, read = (server.key(role, "acme") for role in ("admin", "talk", "read"))
            other = server.key("admin", "beta")
            seq = await asked(server, headers=admin)
            assert (
                "core_memory_append"
                not in (await server.client.get("/console/approvals", headers=cookie(server, other))).text
            )
            shown = (await server.client.get("/console/approvals", headers=cookie(server, read))).text
            assert "core_memory_append" in shown and 'value="approve"' not in shown
            assert (
                'name="always"'
                not in (await server.client.get("/console/approvals", headers=cookie(server, talk))).text
            )
            for key, status, more in (
                (other, 404, {}), (read, 403, {}), (talk, 403, {"always": "yes"}),
            ):  # fmt: skip
                answer = await sent(server, seq, cookie(server, key), decision="approve", **more)
                assert answer.status_code == status
            foreign = {**FORM, "Sec-Fetch-Site": "cross-site", **cookie(server, admin)}
            path = f"/console/a/sam/approvals/{seq}"
            answer = await server.client.post(path, data={"decision": "approve"}, headers=foreign)
            assert answer.status_code == 403
            (one,) = (await server.call("GET", "/approvals", headers=admin, status=200))["approvals"]
            assert one["decision"] == "waiting"
            answer = await sent(server, seq, cookie(server, admin), decision="approve", always="yes")
            assert answer.status_code == 303

    asyncio.run(main())


def test_the_talk_shows_a_call_where_it_was_asked(tmp_path: Path) -> None:
    """The chat has the form in place; an overview leads to the chat; a moment before the decision shows that it waited,
    without a form.
    """

    async def main() -> None:
        async with served(tmp_path, Script([completion(APPEND), says("Noted.")])) as server:
            seq = await asked(server)
            chat = (await server.client.get("/console/a/sam/chat")).text
            ParsedPage(chat).check()
            assert f'data-decide="{seq}"' in chat
            overview = (await server.client.get("/console/a/sam")).text
            assert "Decide in the chat" in overview and "data-decide" not in overview
            await sent(server, seq, decision="approve")
            assert await _has_said(server, "Noted.")
            assert "was approved" in ParsedPage((await server.client.get("/console/a/sam/chat")).text).text
            past = (await server.client.get(f"/console/a/sam?as_of={seq}")).text
            assert "waits for a person" in past and "Decide in the chat" not in past

    asyncio.run(main())


def test_an_agents_pages_say_how_many_calls_wait(tmp_path: Path) -> None:
    """The navigation of the agent has the number of calls that wait, in words too; a page of the past and the pages of
    other agents have none, and none is left when the call was decided.
    """

    async def main() -> None:
        async with served(tmp_path, Script([completion(APPEND), says("Noted.")])) as server:
            seq = await asked(server)
            await server.system.agent("tom")
            for place, expected in (("sam", True), ("sam/memory", True), ("sam?as_of=3", False), ("tom", False)):
                shown = ParsedPage((await server.client.get(f"/console/a/{place}")).text).text
                assert ("1 call waits for a person" in shown) is expected, place
            await sent(server, seq, decision="refuse")
            assert "call waits" not in ParsedPage((await server.client.get("/console/a/sam")).text).text

    asyncio.run(main())


def test_a_question_is_shown_with_blanks_and_answered(tmp_path: Path) -> None:
    """The form of a question has the blanks, and says so; an answer that is missing leaves the form as it was filled
    in, and one that is complete continues the call.
    """

    @tool(effect="read_only")
    def ship(item: str) -> Any:
        """Ship something.

        Args:
            item: The thing.
        """
        given = continuation()
        if given is None:
            form = '{"properties": {"city": {"type": "string"}}, "required": ["city"]}'
            return Question(text="Where <to>?", forms={"place": form})
        return f"shipped {item} to {given.answers['place']['city']}"

    async def main() -> None:
        model = Script([completion(("ship", {"item": "tea"})), says("Sent.")])
        async with served(tmp_path, model, tools=[ship]) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            await server.call("POST", "/agents/sam/messages", {"text": "Ship tea"}, status=200)
            (one,) = (await server.call("GET", "/approvals", status=200))["approvals"]
            assert one["question"] == "Where <to>?"
            for path in ("/console/approvals", "/console/a/sam/chat"):
                page = (await server.client.get(path)).text
                ParsedPage(page).check()
                assert "It asks: <bdi>Where &lt;to&gt;?</bdi>" in page
                assert page.count("&#34;city&#34;: null") == 2  # in the field, and as what it was
            empty = await sent(server, one["seq"], decision="approve", arguments=one["arguments"])
            assert (empty.status_code, "Fill in city" in empty.text) == (400, True)
            filled = one["arguments"].replace("null", '"Oslo"')
            assert (await sent(server, one["seq"], decision="approve", arguments=filled)).status_code == 303
            assert await _has_said(server, "Sent.")

    asyncio.run(main())
