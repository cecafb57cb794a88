"""Every route of the table: it answers in the shape that the document says, and another tenant gets 404."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from everlog.events import uuid7
from everlog.interfaces.http.core.routes import EVENT_STREAM, JSON, Route
from everlog.interfaces.http.core.service import HttpOptions
from everlog.interfaces.http.native.transfer import EXPORT
from tests.support.cli.command_line import Script, says
from tests.support.http.native_table import native_table
from tests.support.http.served_store import Headers, Served, served

A, B = "/api/v1/agents/{agent}", "/api/v1/blocks/{block}"
S, W = "/api/v1/sources/{source}", "/api/v1/webhooks/{webhook}"
RECEIVER = "127.0.0.1:9"
"""Address of a receiver of webhooks at which no program listens."""
HOOK = f"http://{RECEIVER}/hook"
SAID = [{"role": "user", "content": "Hi", "time": "2024-01-31T12:00:00Z"}]
PIN = {"match": ["pin"]}


class Entry(NamedTuple):
    """Request that exercises a route."""

    body: object = None
    """Body as JSON, or bytes of `media`."""
    query: str = ""
    media: str = JSON
    agent: str = "sam"
    """Agent of the path: `tmp` can be lost."""


ENTRIES: dict[str, Entry] = {
    "POST /api/v1/agents": Entry({"name": "new"}),
    "GET /api/v1/agents": Entry(),
    f"GET {A}": Entry(),
    f"PATCH {A}": Entry({"settings": {"window": 16000}}),
    f"POST {A}/forks": Entry({"name": "fork-2"}),
    f"POST {A}/move": Entry({"placement": "dedicated"}),
    f"POST {A}/rename": Entry({"name": "tim"}, agent="tmp"),
    f"POST {A}/unload": Entry(),
    f"POST {A}/messages": Entry({"text": "Again, a pin"}),
    f"POST {A}/inputs": Entry({"type": "heartbeat"}),
    f"GET {A}/runs/{{run}}": Entry(),
    f"GET {A}/runs/{{run}}/records": Entry(),
    f"GET {A}/runs/{{run}}/stream": Entry(),
    f"POST {A}/runs/{{run}}/cancel": Entry(),
    f"POST {A}/cancel": Entry({}),
    f"POST {A}/retry": Entry({}),
    f"POST {A}/resume": Entry({}),
    f"POST {A}/thought": Entry({"text": "I think again."}),
    f"POST {A}/summarize": Entry(),
    f"POST {A}/undo_summary": Entry(),
    f"POST {A}/undo": Entry({}),
    "GET /api/v1/approvals": Entry(query="decided=true"),
    f"POST {A}/approvals/{{call}}": Entry({"decision": "approve"}),
    f"GET {A}/records": Entry(),
    f"GET {A}/records/{{seq}}": Entry(),
    f"GET {A}/stream": Entry(query="after=0"),
    f"GET {A}/context": Entry(),
    f"GET {A}/pressure": Entry(),
    f"GET {A}/projections/{{projection}}": Entry(),
    f"GET {A}/blocks": Entry(),
    f"POST {A}/blocks": Entry({"label": "extra"}),
    f"GET {A}/blocks/{{label}}": Entry(),
    f"PATCH {A}/blocks/{{label}}": Entry({"value": "Words."}),
    f"DELETE {A}/blocks/{{label}}": Entry(agent="tmp"),
    f"GET {A}/archive": Entry(),
    f"POST {A}/archive": Entry({"text": "One."}),
    f"POST {A}/archive/batch": Entry({"texts": ["Two."]}),
    f"GET {A}/archive/{{memory}}": Entry(),
    f"PUT {A}/archive/{{memory}}": Entry({"text": "Another pin."}),
    f"DELETE {A}/archive/{{memory}}": Entry(),
    f"GET {A}/search": Entry(query="query=pin"),
    "GET /api/v1/search": Entry(query="query=pin"),
    f"GET {A}/timers": Entry(),
    f"POST {A}/timers": Entry({"timer": "tick", "every_s": 3600}),
    f"DELETE {A}/timers/{{timer}}": Entry(),
    f"GET {A}/memories": Entry(),
    f"GET {A}/memories/search": Entry(query="query=pin"),
    f"GET {A}/memories/{{seq}}": Entry(),
    f"GET {A}/facts": Entry(),
    f"POST {A}/facts": Entry({"subject": "Chad", "predicate": "owns", "object": "a pin", "sources": ["{seq}"]}),
    f"POST {A}/facts/{{fact}}/end": Entry({}),
    f"GET {A}/plans": Entry(),
    f"POST {A}/plans": Entry({"title": "Day", "items": [{"text": "x", "start": "2998-01-01T08:00:00Z", "minutes": 5}]}),
    f"POST {A}/plans/{{plan}}/changes": Entry({"item": 0, "change": "done", "reason": "it is"}),
    f"POST {A}/names": Entry({"alias": "Chaddy", "entity": "Chad", "sources": ["{seq}"]}),
    f"POST {A}/derivations": Entry({}),
    f"POST {A}/withdrawals": Entry({"seqs": ["{fact}"]}),
    f"PUT {A}/generation": Entry({"generation": 1}),
    "GET /api/v1/blocks": Entry(),
    "POST /api/v1/blocks": Entry({"block": "crew"}),
    f"GET {B}": Entry(),
    f"PATCH {B}": Entry({"value": "A pin."}),
    f"POST {B}/append": Entry({"text": "A line."}),
    f"GET {B}/history": Entry(),
    f"PUT {A}/shared/{{block}}": Entry({"label": "ours"}),
    f"DELETE {A}/shared/{{block}}": Entry(),
    "GET /api/v1/sources": Entry(),
    f"PUT {S}/documents/{{document}}": Entry(b"A pin.", media="text/plain"),
    f"GET {S}/documents": Entry(),
    f"POST {S}/documents": Entry({"documents": [{"document": "pin", "text": "A pin."}], "remove": ["old"]}),
    f"PUT {A}/sources/{{source}}": Entry(),
    f"DELETE {A}/sources/{{source}}": Entry(),
    "POST /api/v1/sql": Entry({"query": "FROM agents"}),
    "GET /api/v1/cost": Entry(),
    "GET /api/v1/cost/agents": Entry(),
    "GET /api/v1/report": Entry(),
    "GET /api/v1/models": Entry(),
    "GET /api/v1/cluster": Entry(),
    f"GET {A}/export": Entry(),
    "POST /api/v1/restores": Entry(b"{export}", media=EXPORT),
    f"POST {A}/imports": Entry({"messages": SAID}),
    f"GET {A}/dataset": Entry(),
    f"GET {A}/diff": Entry(query="before=2"),
    f"POST {A}/verify": Entry({}),
    f"POST {A}/reruns": Entry({"fork": "again", "at": 2, "recorded": True}),
    f"GET {A}/compare": Entry(query="fork=sam-fork"),
    f"POST {A}/erasures/plan": Entry(PIN),
    f"POST {A}/erasures": Entry(PIN, agent="tmp"),
    f"POST {B}/erasures": Entry(PIN),
    f"POST {S}/erasures": Entry(PIN),
    "GET /api/v1/jobs": Entry(),
    "GET /api/v1/jobs/{job}": Entry(),
    "GET /api/v1/feed": Entry(query="after=start"),
    "POST /api/v1/feed": Entry({"after": "start"}),
    "GET /api/v1/webhooks": Entry(),
    "POST /api/v1/webhooks": Entry({"url": HOOK}),
    f"GET {W}": Entry(),
    f"POST {W}/resume": Entry(),
    f"DELETE {W}": Entry(),
    f"DELETE {B}": Entry(),
    f"DELETE {A}": Entry(agent="tmp"),
    "GET /livez": Entry(),
    "GET /readyz": Entry(),
    "GET /metrics": Entry(),
    "GET /openapi.json": Entry(),
    "GET /.well-known/agent-card.json": Entry(),
    "GET /docs": Entry(),
    "GET /docs.js": Entry(),
    "GET /docs.css": Entry(),
}
"""Every route of the table, in the order in which they are called."""


CREATES = (f"PUT {S}/documents/{{document}}", f"POST {S}/documents")
"""Routes that create what their path names: another tenant creates a source of its own."""


def _key(route: Route) -> str:
    return f"{route.method} {route.path}"


def test_every_route_has_an_entry_and_an_operation_of_its_own() -> None:
    """The entries of this file are the routes of the table, and no two routes have one name in the document."""
    table = native_table()
    assert set(ENTRIES) == {_key(route) for route in table}
    names = Counter(route.handler.__name__ for route in table)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_route_answers_in_its_shape_and_another_tenant_gets_404(tmp_path: Path) -> None:
    """Every route answers its owner with a status and in a shape of the document; the key of another tenant gets 404
    for the same agent, block, source or job, and a route of the operator is not there for tenants.
    """
    routes = {_key(route): route for route in native_table()}

    async def main() -> None:
        options = HttpOptions(webhook_hosts=(RECEIVER,))
        async with served(tmp_path, Script([says("Ahoy, a pin")]), options=options) as server:
            owner, other, operator = server.key(tenant="acme"), server.key(tenant="beta"), server.key()
            values = await _prepared(server, owner)
            for key, entry in ENTRIES.items():
                route = routes[key]
                if "{" in route.path and key not in CREATES:
                    assert await _status(server, route, entry, values, other) == 404, key
                if route.operator:
                    assert await _status(server, route, entry, values, owner) == 404, key
                await _answered(server, route, entry, values, operator if route.operator else owner)

    asyncio.run(main())


async def _prepared(server: Served, key: Headers) -> dict[str, Any]:
    """Create what the paths name, and return the values of their parts."""
    for name in ("sam", "tmp"):
        await server.call("POST", "/agents", {"name": name}, headers=key, status=201)
        run = uuid7(server.service.ports.clock.now(), 7)
        sent = {**key, "Idempotency-Key": run}
        done = await server.call("POST", f"/agents/{name}/messages", {"text": "A pin"}, headers=sent, status=200)
        if name == "sam":
            values = {"run": done["run"], "seq": done["first_seq"]}
    made = await server.call("POST", "/agents/sam/archive", {"text": "Old."}, headers=key, status=201)
    fact = {"subject": "Chad", "predicate": "likes", "object": "pins", "sources": [values["seq"]]}
    noted = await server.call("POST", "/agents/sam/facts", fact, headers=key, status=201)
    items = [{"text": "Sail", "start": "2999-01-01T08:00:00Z", "minutes": 5}]
    plan = await server.call("POST", "/agents/sam/plans", {"title": "x", "items": items}, headers=key, status=201)
    await server.call("POST", "/agents/sam/timers", {"timer": "t", "every_s": 60}, headers=key, status=201)
    await server.call("POST", "/blocks", {"block": "team", "value": "Old."}, headers=key, status=201)
    await server.call("POST", "/agents/sam/forks", {"name": "sam-fork", "at": values["seq"]}, headers=key, status=201)
    upload = {"content": b"Words.", "headers": {"Content-Type": "text/plain", **key}}
    assert (await server.client.put("/api/v1/sources/books/documents/old", **upload)).status_code == 201
    job = await server.call("POST", "/agents/sam/verify", {}, headers=key, status=202)
    hook = await server.call("POST", "/webhooks", {"url": HOOK}, headers=key, status=201)
    for rules in ([{"function": "send_message"}], []):
        await server.call("PATCH", "/agents/sam", {"settings": {"approvals": rules}}, headers=key, status=200)
        await server.call("POST", "/agents/sam/messages", {"text": "A pin?"}, headers=key, status=200)
    (waiting,) = (await server.call("GET", "/approvals", headers=key, status=200))["approvals"]
    blocks = await server.call("GET", "/agents/sam/blocks", headers=key, status=200)
    export = await server.client.get("/api/v1/agents/sam/export", headers=key)
    return {
        **values, "memory": made["memory"], "fact": noted["seq"], "plan": plan["seq"], "timer": "t", "block": "team",
        "source": "books", "document": "doc", "job": job["job"], "label": blocks["blocks"][0]["label"],
        "call": waiting["seq"], "projection": "turns", "export": export.content, "webhook": hook["id"],
    }  # fmt: skip


def _filled(body: object, values: dict[str, Any]) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return values["export"] if body == b"{export}" else body
    text = msgspec.json.encode(body)
    for name in ("fact", "seq"):
        text = text.replace(f'"{{{name}}}"'.encode(), str(values[name]).encode())
    return text


def _request(route: Route, entry: Entry, values: dict[str, Any], key: Headers) -> dict[str, Any]:
    path = route.path.format(**{**values, "agent": entry.agent})
    content = _filled(entry.body, values)
    media = {} if content is None else {"Content-Type": entry.media}
    return {
        "method": route.method, "url": f"{path}?{entry.query}", "content": content, "headers": {**key, **media},
    }  # fmt: skip


async def _status(server: Served, route: Route, entry: Entry, values: dict[str, Any], key: Headers) -> int:
    async with server.client.stream(**_request(route, entry, values, key)) as answer:
        return answer.status_code


async def _answered(server: Served, route: Route, entry: Entry, values: dict[str, Any], key: Headers) -> None:
    async with server.client.stream(**_request(route, entry, values, key)) as answer:
        if route.media == (EVENT_STREAM,):
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith(EVENT_STREAM)
            return
        body = await answer.aread()
    assert answer.status_code in {route.status, *route.statuses}, (_key(route), answer.status_code, body[:500])
    if route.answer is not None:
        msgspec.json.decode(body, type=route.answer)
    else:
        assert any(answer.headers["content-type"].startswith(media.partition(";")[0]) for media in route.media)
