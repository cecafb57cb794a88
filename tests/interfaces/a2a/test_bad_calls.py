"""Calls that are refused: by their key, their tenant, their version, or what they say; each with a clear error."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everlog.interfaces.http.a2a.methods import METHODS
from everlog.interfaces.http.a2a.table import A2A
from tests.support.http.served_store import Headers, Served, served

HELLO = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}
BODIES: dict[str, Any] = {"SendMessage": {"message": HELLO}, "SendStreamingMessage": {"message": HELLO}}
V1 = {"A2A-Version": "1.0"}


async def rpc(
    server: Served, method: str, params: object, headers: Headers | None = None, path: str = "/a2a/sam", **more: Any
) -> tuple[int, Any]:
    """Call a method, and return the status and the body of the answer."""
    call = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params, **more}
    answer = await server.client.post(path, json=call, headers={**V1, **(headers or {})})
    return answer.status_code, answer.json() if answer.headers["content-type"] == "application/json" else answer.text


def test_a_method_answers_those_alone_who_may(tmp_path: Path) -> None:
    """Without a key each address but the server's card answers 401, with the key of another tenant 404 where it names
    an agent, with a key that only reads 403 for methods that write; always in the form of the protocol.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            owner, reader, other = server.key(tenant="acme"), server.key("read", "acme"), server.key(tenant="beta")
            await server.call("POST", "/agents", {"name": "sam"}, headers=owner, status=201)
            for route in A2A:
                path, call = (
                    route.path.format(agent="sam"),
                    {"jsonrpc": "2.0", "method": "GetTask", "params": {"id": "x"}},
                )
                body = {"json": call} if route.method == "POST" else {}
                for key, status in (({}, 401), (other, 404)):
                    if route.is_open or (key and "{" not in route.path):
                        continue
                    answer = await server.client.request(route.method, path, headers={**V1, **key}, **body)
                    assert (answer.status_code, answer.json()["error"]["code"]) == (status, -32600), route
            for name, method in METHODS.items():
                params = BODIES.get(name, {"id": "x"})
                status, body = await rpc(server, name, params, reader)
                assert status == (403 if method.role == "talk" else 200), name
                if method.of_agent:
                    tenant = {**params, "tenant": "sam"}
                    assert (await rpc(server, name, params, other))[0] == 404, name
                    assert (await rpc(server, name, tenant, other, path="/a2a"))[0] == 404, name
                status, body = await rpc(server, name, params, owner)
                assert status == 200, name

    asyncio.run(main())


@pytest.mark.parametrize(
    ("method", "params", "code", "words"),
    [
        ("message/send", {}, -32601, "There is no method 'message/send'"),
        ("SendMessage", {}, -32602, "required field `message`"),
        ("SendMessage", {"message": {**HELLO, "parts": []}}, -32602, "length >= 1"),
        ("SendMessage", {"message": {**HELLO, "parts": [{"text": "  "}]}}, -32602, "says nothing"),
        ("SendMessage", {"message": {**HELLO, "messageId": ""}}, -32602, "messageId"),
        ("SendMessage", {"message": {**HELLO, "messageId": "x" * 256}}, -32602, "messageId"),
        ("SendMessage", {"message": {**HELLO, "parts": [{"url": "http://10.0.0.1/x"}]}}, -32005, "no addresses"),
        ("SendMessage", {"message": {**HELLO, "taskId": "nothing"}}, -32001, "has no task 'nothing'"),
        ("SendMessage", {"message": HELLO, "configuration": {"acceptedOutputModes": ["a/b"]}}, -32005, "only a/b"),
        ("SendMessage", {"message": HELLO, "configuration": {"taskPushNotificationConfig": {}}}, -32003, "pushed"),
        ("GetTask", {"id": "018f0000-0000-7000-8000-000000000000"}, -32001, "has no task"),
        ("ListTasks", {"pageSize": 0}, -32602, "pageSize"),
        ("ListTasks", {"pageSize": 101}, -32602, "pageSize"),
        ("ListTasks", {"pageToken": "far"}, -32602, "pageToken"),
        ("ListTasks", {"status": "TASK_STATE_LOST"}, -32602, "status"),
        ("ListTasks", {"statusTimestampAfter": "soon"}, -32602, "statusTimestampAfter"),
        ("CreateTaskPushNotificationConfig", {"taskId": "x"}, -32003, "not pushed"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_refused_and_nothing_is_sent(
    tmp_path: Path, method: str, params: object, code: int, words: str
) -> None:
    """A wrong call gets the protocol's code, with a sentence that says what is wrong; nothing comes into the log."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            status, body = await rpc(server, method, params)
            assert (status, body["id"], body["error"]["code"]) == (200, 7, code), body
            assert words in body["error"]["message"]
            assert body["error"]["data"][0]["domain"] == "a2a-protocol.org"
            assert "user_message" not in str(await server.call("GET", "/agents/sam/records", status=200))

    asyncio.run(main())


def test_other_versions_and_broken_bodies_are_refused(tmp_path: Path) -> None:
    """A client of version 0.3, or of none, is told which is spoken; a body that is no call, or too large, is refused
    with its status in the form of the protocol.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            for given in ({"A2A-Version": "0.3"}, {"A2A-Version": ""}):
                _, body = await rpc(server, "SendMessage", {"message": HELLO}, given)
                assert body["error"]["code"] == -32009
            json = {"Content-Type": "application/json", **V1}
            sent = [
                (b"{", 400),
                (b"[]", 400),
                (b'{"jsonrpc": "1.0", "method": "GetTask"}', 400),
                (b"x" * 2_000_000, 413),
            ]
            for content, status in sent:
                answer = await server.client.post("/a2a/sam", content=content, headers=json)
                assert (answer.status_code, answer.json()["error"]["code"]) == (status, -32600)
            _, body = await rpc(server, "SendMessage", {"message": HELLO}, path="/a2a")
            assert "name one as `tenant`" in body["error"]["message"]
            _, body = await rpc(server, "SendMessage", {"message": HELLO, "tenant": "sam"}, path="/a2a")
            assert body["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
            answer = await server.client.get("/a2a/sam/tasks/x", headers=V1)
            assert (answer.status_code, "is not served" in answer.json()["error"]["message"]) == (404, True)

    asyncio.run(main())
