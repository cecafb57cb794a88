"""Tenants: for every route, the key of another tenant, a key with too small a role, and no key."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog.interfaces.http.core.keys import ROLES
from everlog.interfaces.http.core.routes import JSON, Route
from everlog.interfaces.http.core.tenants import TenantNames
from tests.support.cli.command_line import Script, says
from tests.support.http.native_table import native_table
from tests.support.http.served_store import Served, served
from tests.support.seeds import few_and_all, pick

CANARY = "xyzzy-of-acme"
TABLE = native_table()
GUARDED = [route for route in TABLE if not route.is_open]
_PART = re.compile(r"\{(\w+)\}")


def _label(route: Route) -> str:
    return f"{route.method} {route.path}"


def _values(run: str) -> dict[str, Iterator[str] | str]:
    return {"agent": "sam", "run": run, "label": "human", "seq": "1", "projection": "core_memory", "name": "team",
            "source": "docs", "block": "team", "timer": "timer-1", "id": "1", "memory": "1", "job": "1"}  # fmt: skip


def _body(kind: Any) -> Any:
    """Return a body of a type that is as small as it can be."""
    found: dict[str, Any] = {}
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        return found
    for field in msgspec.structs.fields(kind):
        if field.required:
            found[field.encode_name] = "own" if field.type is str else [] if "Sequence" in str(field.type) else 1
    return found


async def _ask(server: Served, route: Route, headers: dict[str, str], values: dict[str, str]) -> tuple[int, bytes]:
    """Send a request to a route, and return the status and the beginning of the answer."""
    path = _PART.sub(lambda part: values.get(part[1], "1"), route.path)
    sent = dict(headers)
    content = None
    if route.body is not None:
        content, sent["Content-Type"] = msgspec.json.encode(_body(route.body)), JSON
    elif route.body_media != JSON:
        content, sent["Content-Type"] = b"x", route.body_media
    async with server.client.stream(route.method, path, content=content, headers=sent) as answer:
        if "event-stream" in answer.headers.get("content-type", ""):
            return answer.status_code, await anext(answer.aiter_bytes(), b"")
        return answer.status_code, await answer.aread()


async def _acme(server: Served) -> dict[str, str]:
    """Give the tenant acme an agent that knows the canary, and return parts of paths that name what it has."""
    admin = server.key("admin", "acme")
    await server.call("POST", "/agents", {"name": "sam"}, headers=admin, status=201)
    run = await server.call("POST", "/agents/sam/messages", {"text": CANARY}, headers=admin, status=200)
    return _values(run["run"])  # type: ignore[return-value]


@pytest.mark.parametrize("count", few_and_all(1, part="commands"))
def test_the_key_of_another_tenant_finds_nothing(tmp_path: Path, count: int | None) -> None:
    """For every route, whatever name is tried, the key of another tenant gets 404 or an answer without a byte of it."""

    async def main() -> None:
        table: list[str] = []
        async with served(tmp_path, Script([says(CANARY)])) as server:
            values = await _acme(server)
            before = server.system.store.reader("acme~sam").head("acme~sam")
            other = server.key("admin", "globex")
            for route in GUARDED:
                for name in pick(("sam", "acme~sam", "acme%7Esam"), count, label=f"names for {_label(route)}"):
                    status, body = await _ask(server, route, other, {**values, "agent": name})
                    assert CANARY.encode() not in body, _label(route)
                    assert b"acme" not in body.replace(name.encode(), b"").replace(b"acme~sam", b""), (
                        _label(route),
                        body,
                    )
                    if "{agent}" in route.path:
                        assert status in {400, 404}, (_label(route), status, body)
                    if route.operator:
                        assert status == 404, _label(route)
                table.append(f"{_label(route)}: {status}")
            assert server.system.store.reader("acme~sam").head("acme~sam") == before
            listed = await server.call("GET", "/agents", headers=server.key("read", "acme"), status=200)
            assert [row["agent"] for row in listed["agents"]] == ["sam"]
        assert len(table) == len(GUARDED)

    asyncio.run(main())


@pytest.mark.parametrize("role", ["none", *ROLES])
def test_each_route_asks_for_its_role(tmp_path: Path, role: str) -> None:
    """A route refuses a smaller role with 403 and no key with 401, before it looks at anything else."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Hello")])) as server:
            values = await _acme(server)
            headers = {} if role == "none" else server.key(role, "acme")  # type: ignore[arg-type]
            for route in GUARDED:
                if role != "none" and ROLES.index(role) >= ROLES.index(route.role):  # type: ignore[arg-type]
                    continue
                if role != "none" and route.operator:
                    continue
                status, body = await _ask(server, route, headers, values)
                assert status == (401 if role == "none" else 403), (_label(route), status, body)

    asyncio.run(main())


@given(st.sampled_from(["", "acme", "globex"]), st.sampled_from(["", "acme", "globex"]), st.text(max_size=8))
def test_no_name_of_a_tenant_is_that_of_another(one: str, other: str, name: str) -> None:
    """Names of two tenants are never the same in the store, whatever is asked for, and come back as they were said."""
    mine, theirs = TenantNames(one), TenantNames(other)
    if not name:
        return
    stored = mine.inner(name)
    assert mine.owns(stored)
    assert mine.outer(stored) == name
    if one and other and one != other:
        assert not theirs.owns(stored)
