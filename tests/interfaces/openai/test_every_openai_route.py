"""Every route of OpenAI's surface: who may call it, and the form of its refusals."""

import asyncio
from pathlib import Path
from typing import Any

from everlog.interfaces.http.openai.table import OPENAI
from tests.support.http.served_store import Headers, Served, served

BODIES: dict[str, object] = {
    "chat/completions": {"model": "sam", "messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"model": "sam", "input": "Hi"},
}


async def _answer(server: Served, route: Any, values: dict[str, str], key: Headers) -> tuple[int, Any]:
    """Return status and body of the answer to a request."""
    body = next((body for path, body in BODIES.items() if route.path.endswith(path)), {}) if route.body else None
    answer = await server.client.request(route.method, route.path.format(**values), json=body, headers=dict(key))
    return answer.status_code, answer.json()


def test_a_route_answers_its_owner_alone(tmp_path: Path) -> None:
    """Without a key each route answers 401, with a key that may only read 403 where it writes, with the key of another
    tenant 404 where it names something, always in the form that the client reads; and its owner is answered.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            owner, reader, other = server.key(tenant="acme"), server.key("read", "acme"), server.key(tenant="beta")
            await server.call("POST", "/agents", {"name": "sam"}, headers=owner, status=201)
            brought = {"items": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
            created = await server.client.post("/openai/v1/conversations", json=brought, headers=owner)
            asked = {"model": "sam", "input": "Hello"}
            answered = await server.client.post("/openai/v1/responses", json=asked, headers=owner)
            listed = await server.client.get(f"/openai/v1/conversations/{created.json()['id']}/items", headers=owner)
            values = {"model": "sam", "response": answered.json()["id"], "conversation": created.json()["id"],
                      "item": listed.json()["data"][0]["id"]}  # fmt: skip
            for route in sorted(OPENAI, key=lambda route: route.method == "DELETE"):
                place = f"{route.method} {route.path}"
                refused = [(401, await _answer(server, route, values, {}))]
                if route.role == "talk":
                    refused.append((403, await _answer(server, route, values, reader)))
                if "{" in route.path or route.path.endswith(tuple(BODIES)):
                    expected = 501 if place.startswith("DELETE") and route.answer is None else 404
                    refused.append((expected, await _answer(server, route, values, other)))
                for expected, (status, body) in refused:
                    assert (status, set(body["error"])) == (expected, {"message", "type", "param", "code"}), place
                status, _ = await _answer(server, route, values, owner)
                assert status == (501 if route.answer is None else 200), place

    asyncio.run(main())
