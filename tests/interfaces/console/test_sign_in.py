"""Signing in: the key becomes a cookie that no script reads, and works for pages of this server alone."""

import asyncio
from pathlib import Path

import pytest

from everlog.interfaces.http.console.surface import own_path
from tests.interfaces.console.test_every_page import FORM, cookie
from tests.support.http.served_store import Served, served


async def _sign_in(server: Served, fields: dict[str, str], **headers: str):
    return await server.client.post(
        "/console/sign-in", data=fields, headers={"Sec-Fetch-Site": "same-origin", **headers}
    )


def test_a_key_becomes_a_cookie(tmp_path: Path) -> None:
    """A valid key is kept as a cookie for this port that no script can read and no other site can send, and leads to
    the page that was asked for; an unknown key is refused, and so is every request after the key was revoked.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            key = server.key("admin")
            secret = key["Authorization"].removeprefix("Bearer ")
            answer = await _sign_in(server, {"key": secret, "next": "/console/agents?show=forks"})
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/agents?show=forks")
            name, *flags = answer.headers["set-cookie"].split("; ")
            assert name == f"everlog-{server.address.rpartition(':')[2]}={secret}"
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(flags)
            server.client.cookies.clear()
            assert (await _sign_in(server, {"key": "evl_wrong"})).status_code == 401
            sent = cookie(server, key)
            assert (await server.client.get("/console/agents", headers=sent)).status_code == 200
            entry = server.service.keys.all()[0]
            server.service.keys.revoke(entry.id, server.service.ports.clock.now())
            assert (await server.client.get("/console/agents", headers=sent)).status_code == 401

    asyncio.run(main())


def test_signing_out_removes_the_cookie(tmp_path: Path) -> None:
    """The answer to signing out ends the cookie at once."""

    async def main() -> None:
        async with served(tmp_path) as server:
            answer = await server.client.post("/console/sign-out", headers={**FORM, **cookie(server, server.key())})
            assert answer.status_code == 303
            assert "Max-Age=0" in answer.headers["set-cookie"]

    asyncio.run(main())


ELSEWHERE = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {},
)


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_a_cookie_changes_nothing_from_elsewhere(tmp_path: Path, headers: dict[str, str]) -> None:
    """A request that changes something and carries the cookie is refused unless a page of this server sent it: for
    every method, and for the forms of the console. With the key in a header it passes, as before.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            key = server.key()
            await server.call("POST", "/agents", {"name": "sam"}, headers=key, status=201)
            head = (await server.call("GET", "/agents/sam", headers=key))["head"]
            sent = {**cookie(server, key), **headers, "Content-Type": "application/json"}
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                answer = await server.client.request(method, "/api/v1/agents/sam", headers=sent, content=b"{}")
                assert answer.status_code in {403, 405}, method
            answer = await server.client.post("/api/v1/agents/sam/messages", headers=sent, json={"text": "Hi"})
            assert answer.status_code == 403
            form = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
            for path in ("/console/sign-in", "/console/sign-out"):
                answer = await server.client.post(path, headers=form, content=b"key=x")
                assert answer.status_code == 403, path
                assert "set-cookie" not in answer.headers
            assert (await server.call("GET", "/agents/sam", headers=key))["head"] == head
            own = {**cookie(server, key), "Sec-Fetch-Site": "same-origin"}
            answer = await server.client.post("/api/v1/agents/sam/messages", headers=own, json={"text": "Hi"})
            assert answer.status_code == 200, answer.text

    asyncio.run(main())


def test_a_link_signs_one_browser_in_once(tmp_path: Path) -> None:
    """Loading a one-time link uses nothing; its form gives one browser a key of its own for twelve hours; the second
    use, and a use after its time, are refused; and the link is no key for anything else.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            server.key()  # a store with keys asks every caller for one
            ports, ring = server.service.ports, server.service.keys
            now = ports.clock.now()
            late = ring.make_link(key="evl_late", key_id=ports.ids.new(now), now=now - 10, expires_at=now - 1)
            ring.make_link(key="evl_link", key_id=ports.ids.new(now), now=now, expires_at=now + 300_000_000)
            assert late.id not in {entry.id for entry in ring.all()}
            for _ in range(3):
                page = await server.client.get("/console/sign-in?link=evl_link")
                assert page.status_code == 200 and "set-cookie" not in page.headers
            header = {"Authorization": "Bearer evl_link"}
            assert (await server.client.get("/api/v1/agents", headers=header)).status_code == 401
            assert (await _sign_in(server, {"key": "evl_link"})).status_code == 401
            used = await _sign_in(server, {"link": "evl_link"})
            assert used.status_code == 303 and "Max-Age=43200" in used.headers["set-cookie"]
            sent = {"Cookie": used.headers["set-cookie"].partition(";")[0]}
            server.client.cookies.clear()
            assert "evl_link" not in sent["Cookie"]
            assert (await server.client.get("/console/agents", headers=sent)).status_code == 200
            written = (tmp_path / "keys.json").stat().st_mtime_ns
            again = await _sign_in(server, {"link": "evl_link"})
            assert (tmp_path / "keys.json").stat().st_mtime_ns == written
            assert again.status_code == 401 and "set-cookie" not in again.headers

    asyncio.run(main())


OUTSIDE = (
    "//evil.example",
    "https://evil.example/console",
    "/\\evil.example",
    "/api/v1/agents",
    "",
    "/consoles",
    "javascript:top.x=1",
    "/console/a\r\nSet-Cookie: x=1",
    "console",
)


@pytest.mark.parametrize("given", OUTSIDE)
def test_signing_in_leads_to_the_console_only(given: str) -> None:
    """The page to go to afterwards is a path of the console, whatever the address says."""
    assert own_path(given) == "/console"
    assert own_path("/console/a/sam?as_of=3") == "/console/a/sam?as_of=3"
