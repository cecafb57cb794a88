"""Every page of the console: it answers its owner, with a policy that allows nothing from elsewhere, and none other."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everlog.interfaces.http.console.page_response import POLICY
from everlog.interfaces.http.console.static_files import digest, files
from everlog.interfaces.http.console.table import console_pages
from everlog.interfaces.http.core.routes import Route
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import Headers, Served, served

QUERIES = {
    "export": "?q=FROM agents",
    "jump": "?from=1&to=next-turn",
    "sam": "?as_of=3",
    "human": "?by=4",
    "compare": "?a=sam&a_at=3",
}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


def script() -> Script:
    """Return a model that remembers something, and then speaks."""
    remembered = ("core_memory_append", {"label": "human", "content": "Has a dog.", "request_heartbeat": True})
    return Script([completion(remembered), says("Noted.")])


def cookie(server: Served, key: Headers) -> dict[str, str]:
    """Return the header that a browser sends after it signed in with a key."""
    port = server.address.rpartition(":")[2]
    return {"Cookie": f"everlog-{port}={key['Authorization'].removeprefix('Bearer ')}"}


async def answer(server: Served, route: Route, headers: Headers, made: dict[str, str]) -> Any:
    """Return the answer of a page about the agent sam, or about what was made: a job, a block, a source, a memory."""
    path = route.path.format(
        agent="sam", label="human", seq=made["memory"] if "memories" in route.path else "3", call="3",
        digest=digest(), file="console.css", job=made["job"], block="house", source="notes",
    )  # fmt: skip
    query = next((query for end, query in QUERIES.items() if path.endswith(end)), "")
    sent = {**headers, **(FORM if route.method == "POST" else {})}
    return await server.client.request(route.method, path + query, headers=sent, content=b"" if sent else None)


def test_a_page_answers_its_owner_alone(tmp_path: Path) -> None:
    """Signed in, every page answers; without a key the form to sign in comes with 401, and with the key of another
    tenant 404 for what names an agent, a job, a block or a source. A page for a role that the key lacks, or for the
    operator alone, answers 403. All answers have the policy, and all pages are sound markup.
    """
    named = ("{agent}", "{job}", "{block}", "{source}")

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            owner, other = server.key("talk", "acme"), server.key("talk", "beta")
            admin = server.key(tenant="acme")
            await server.call("POST", "/agents", {"name": "sam"}, headers=admin, status=201)
            await server.call("POST", "/agents/sam/messages", {"text": "Hi"}, headers=owner, status=200)
            await server.call("POST", "/blocks", {"block": "house", "value": "A cat."}, headers=admin, status=201)
            text = {**admin, "Content-Type": "text/plain"}
            path = "/api/v1/sources/notes/documents/a.txt"
            assert (await server.client.put(path, content=b"Sail.", headers=text)).status_code == 201
            job = (await server.call("POST", "/agents/sam/verify", {}, headers=owner, status=202))["job"]
            records = (await server.call("GET", "/agents/sam/records", headers=owner))["records"]
            said = next(one["seq"] for one in records if one["type"] == "user_message")
            fact = {"subject": "user", "predicate": "says", "object": "hi", "sources": [said]}
            noted = await server.call("POST", "/agents/sam/facts", fact, headers=owner, status=201)
            made = {"job": job, "memory": str(noted["seq"])}
            for route in console_pages():
                place = f"{route.method} {route.path}"
                mine = await answer(server, route, cookie(server, owner), made)
                expected = {200, 303} if route.method == "GET" else {303, 400, 401, 403}
                if route.role == "admin" or route.path == "/console/cluster":
                    expected = {403}
                assert mine.status_code in expected, (place, mine.text)
                without = await answer(server, route, {}, made)
                if not route.is_open:
                    assert without.status_code == 401, place
                    assert 'name="key"' in without.text, place
                strange = await answer(server, route, cookie(server, other), made)
                if any(part in route.path for part in named):
                    assert strange.status_code == (403 if route.role == "admin" else 404), place
                    assert "acme" not in strange.text, place
                for one in (mine, without, strange):
                    if one.headers.get("content-type", "").startswith("text/html"):
                        assert one.headers["content-security-policy"] == POLICY, place
                        ParsedPage(one.text).check()

    asyncio.run(main())


def test_a_tenant_sees_its_own_names_alone(tmp_path: Path) -> None:
    """The pages of a tenant show its names without those of the store, and no agent of another tenant."""

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            for tenant, name in (("acme", "sam"), ("beta", "tom")):
                await server.call("POST", "/agents", {"name": name}, headers=server.key(tenant=tenant), status=201)
            mine = server.key("talk", "acme")
            await server.call("POST", "/agents/sam/messages", {"text": "Hi"}, headers=mine, status=200)
            shown = await server.client.get("/console/agents", headers=cookie(server, mine))
            assert "sam" in shown.text and "tom" not in shown.text and "acme" not in shown.text
            for tab in ("", "/chat", "/memory", "/memory/human", "/memories", "/archive", "/context", "/records",
                        "/search?q=the", "/settings", "/fork"):  # fmt: skip
                page = await server.client.get(f"/console/a/sam{tab}", headers=cookie(server, mine))
                assert page.status_code == 200, tab
                parsed = ParsedPage(page.text)
                assert not [href for href in parsed.values("a", "href") if "acme" in href], tab
                assert "<h1><bdi>sam</bdi></h1>" in page.text and "<bdi>acme" not in page.text, tab

    asyncio.run(main())


def test_a_key_that_may_read_is_offered_no_form(tmp_path: Path) -> None:
    """The chat of a key with the role `read` says so, and has no form."""

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            await server.system.agent("sam")
            for role, offered in (("read", False), ("talk", True)):
                page = await server.client.get("/console/a/sam/chat", headers=cookie(server, server.key(role)))
                assert ('id="say"' in page.text) is offered

    asyncio.run(main())


def test_a_page_that_has_not_changed_costs_no_body(tmp_path: Path) -> None:
    """A browser that has the page of a moment gets 304; after a new record the page of now is another one."""

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            agent = await server.system.agent("sam")
            for path, changes in (("/console/a/sam/records/2", False), ("/console/a/sam", True)):
                first = await server.client.get(path)
                again = await server.client.get(path, headers={"If-None-Match": first.headers["etag"]})
                assert (again.status_code, again.content) == (304, b"")
                if changes:
                    await agent.ask("Hi")
                    later = await server.client.get(path, headers={"If-None-Match": first.headers["etag"]})
                    assert later.status_code == 200

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/console/a/nobody", "/console/a/~zz", "/console/a/%2e%2e", "/console/nothing",
                                  "/console/a/sam/records/0", "/console/a/sam/records/99999", "/console/a/sam/memory/x",
                                  "/console/static/old/console.css", "/console/a/sam/memory/human?by=1"])  # fmt: skip
def test_what_does_not_exist_is_a_page_with_a_way_out(tmp_path: Path, path: str) -> None:
    """An address without a page answers 404, as a page that leads to the agents."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            page = await server.client.get(path)
            assert page.status_code == 404, page.text
            parsed = ParsedPage(page.text)
            parsed.check()
            assert "/console/agents" in parsed.values("a", "href")

    asyncio.run(main())


@pytest.mark.parametrize("query", ["as_of=99999", "as_of=soon", "as_of=0", "before=x", "as_of=1&as_of=2"])
def test_a_moment_that_cannot_be_is_refused_in_words(tmp_path: Path, query: str) -> None:
    """A moment outside the log, or none at all, answers 400 as a page; never a fault of the server."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            page = await server.client.get(f"/console/a/sam?{query}")
            assert page.status_code == 400, page.text
            ParsedPage(page.text).check()

    asyncio.run(main())


def test_static_files_load_nothing_and_make_no_markup() -> None:
    """No script or style names another host, makes markup from a string, or runs one; each says first what it does."""
    for name, body in files().items():
        text = body.decode().replace("http://www.w3.org/2000/svg", "")
        for banned in ("http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "new Function",
                       "document.write", "@import", "srcdoc", "url("):  # fmt: skip
            assert banned not in text, (name, banned)
        assert len(text.splitlines()) < 400
        if name.endswith(".js"):
            assert text.startswith("// ")


def test_first_load_is_small() -> None:
    """All scripts and the style together are less than 60 kB, compressed."""
    from everlog.interfaces.http.console.static_files import _compressed

    assert sum(len(_compressed(name)) for name in files()) < 60_000


def test_templates_never_trust_a_value() -> None:
    """No template marks a value as safe, and none has a script, a style or a handler in itself."""
    folder = Path(__file__).parents[3] / "interfaces/http/console/templates"
    for path in folder.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        for banned in ("safe", "Markup", "style=", " onclick", " onload", "<style", "autoescape"):
            assert banned not in text, (path.name, banned)
