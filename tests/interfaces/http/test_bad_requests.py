"""Bad requests are answered with a clear problem, and change nothing: sizes, types, hosts, origins, names, moments.
Answers on a raw connection do not wait, nor does the end of a server.
"""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everlog.interfaces.http.core import guards
from everlog.interfaces.http.core.service import HttpLimits, HttpOptions
from everlog.interfaces.http.server import bound_socket
from everlog.interfaces.http.stoppable_server import LOOK_S
from tests.support.http.served_store import Served, served

JSON = {"Content-Type": "application/json"}
LOOKS_MAX = 10
"""Looks of a server that stops while nothing is under way."""


async def _raw(server: Served, *parts: bytes, wait: bool = True) -> bytes:
    """Send bytes as they are, and return all that the server answers until it closes."""
    host, _, port = server.address.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for part in parts:
        writer.write(part)
        await writer.drain()
    answer = await asyncio.wait_for(reader.read(), 20) if wait else b""
    writer.close()
    return answer


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def _problem(answer: bytes) -> dict[str, Any]:
    return msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])


def test_what_is_wrong_in_a_request_is_said(tmp_path: Path) -> None:
    """Each bad request gets the status of its fault and a sentence, and the agent's log stays as it was."""
    cases: Sequence[tuple[str, str, bytes, dict[str, str], int, str]] = (
        ("POST", "/agents/sam/messages", b"{", JSON, 400, "not what it should be"),
        ("POST", "/agents/sam/messages", b'{"text": 7}', JSON, 400, "Expected `str`"),
        ("POST", "/agents/sam/messages", b'{"text": "x", "txet": 1}', JSON, 400, "txet"),
        ("POST", "/agents/sam/messages", b'{"text": "  "}', JSON, 400, "no words"),
        ("POST", "/agents/sam/messages", b'{"text": "\\ud800"}', JSON, 400, ""),
        ("POST", "/agents/sam/messages", b"[" * 100_000, JSON, 400, "not what it should be"),
        ("POST", "/agents/sam/messages", b"text=x", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "JSON"),
        ("POST", "/agents/sam/messages", b'{"text": "x"}', {}, 415, "Content-Type"),
        ("POST", "/agents/sam/messages", b"x" * 1_100_000, JSON, 413, "larger than"),
        ("POST", "/agents/sam/messages", b'{"text": "x"}', {**JSON, "Idempotency-Key": ""}, 400, "Idempotency-Key"),
        ("POST", "/agents/sam/messages", b'{"text": "x"}', {**JSON, "Idempotency-Key": "k" * 300}, 400, "255"),
        ("POST", "/agents/none/messages", b'{"text": "x"}', JSON, 404, "no agent"),
        ("GET", "/agents/sam/blocks?as_of=yesterday", b"", {}, 400, "as_of"),
        ("GET", "/agents/sam/blocks?as_of=2026-01-01T00:00", b"", {}, 400, "zone"),
        ("GET", "/agents/sam/blocks?as_of=999999", b"", {}, 400, "no seq 999999"),
        ("GET", "/agents/sam/blocks?as_of=" + "9" * 5000, b"", {}, 400, "as_of"),
        ("GET", "/agents/sam/blocks?asof=1", b"", {}, 400, "no parameter 'asof'"),
        ("GET", "/agents/sam/blocks?as_of=1&as_of=2", b"", {}, 400, "given twice"),
        ("GET", "/agents?limit=0", b"", {}, 400, "limit"),
        ("GET", "/agents?limit=many", b"", {}, 400, "int"),
        ("GET", "/agents/sam/records?after=-1", b"", {}, 400, "after"),
        ("GET", "/agents/sam/records/0", b"", {}, 404, "no record"),
        ("GET", "/agents/sam/runs/nonsense", b"", {}, 404, "no run"),
        ("GET", "/agents/sam/runs/019b8d2e-0000-7000-8000-000000000001", b"", {}, 404, "no run"),
        ("GET", "/agents/sam/projections/secrets", b"", {}, 404, "no projection"),
        ("GET", "/agents/%ff", b"", {}, 400, "UTF-8"),
        ("GET", "/agents/%2e%2e%2f%2e%2e%2fetc%2fpasswd", b"", {}, 404, "no agent"),
        ("GET", "/agents/..%2f..", b"", {}, 404, "no agent"),
        ("GET", "/agents/" + "n" * 300, b"", {}, 400, "bytes"),
        ("GET", "/nothing", b"", {}, 404, "nothing at this address"),
        ("PUT", "/agents", b"{}", JSON, 405, "GET, OPTIONS, POST"),
        ("POST", "/agents", b'{"name": "a\\nb"}', JSON, 400, "control character"),
        ("POST", "/agents", b'{"name": "tom", "settings": {"modle": "x"}}', JSON, 400, "modle"),
        ("POST", "/agents", b'{"name": "tom", "settings": {"window": "x"}}', JSON, 400, "window"),
        ("POST", "/agents", b'{"name": "tom", "settings": {"window": 5}}', JSON, 400, "window"),
        ("GET", "/agents/sam/stream?after=1000", b"", {}, 400, "from 0 to"),
    )

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            before = await server.call("GET", "/agents/sam/records?limit=1000", status=200)
            for method, path, body, headers, status, words in cases:
                answer = await server.client.request(method, f"/api/v1{path}", content=body, headers=headers)
                assert answer.status_code == status, (path[:80], body[:80], answer.status_code, answer.text)
                problem = answer.json()
                assert words in problem["message"] or words in problem["message"].lower() or words == "JSON", problem
                assert problem["status"] == status
            assert await server.call("GET", "/agents/sam/records?limit=1000", status=200) == before
            assert len((await server.call("GET", "/agents", status=200))["agents"]) == 1

    asyncio.run(main())


def test_a_request_for_another_host_or_from_another_origin_is_refused(tmp_path: Path) -> None:
    """A page whose name was bound to this address, and a page of another origin, can read and do nothing."""

    async def main() -> None:
        options = HttpOptions(hosts=("agents.example.com",), origins=("https://app.example.com",))
        async with served(tmp_path, options=options) as server:
            get = server.client.get
            port = server.address.rpartition(":")[2]
            assert (await get("/api/v1/agents", headers={"Host": f"evil.example:{port}"})).status_code == 421
            assert (await get("/livez", headers={"Host": "evil.example"})).status_code == 421
            assert (await get("/api/v1/agents", headers={"Host": "agents.example.com"})).status_code == 200
            assert (await get("/api/v1/agents", headers={"Origin": "https://evil.example"})).status_code == 403
            assert (await get("/api/v1/agents", headers={"Origin": "null"})).status_code == 403
            own = await get("/api/v1/agents", headers={"Origin": server.address})
            assert (own.status_code, "access-control-allow-origin" in own.headers) == (200, False)
            app = await get("/api/v1/agents", headers={"Origin": "https://app.example.com"})
            assert app.headers["access-control-allow-origin"] == "https://app.example.com"
            asked = await server.client.options("/api/v1/agents", headers={"Origin": "https://app.example.com"})
            assert (asked.status_code, "Authorization" in asked.headers["access-control-allow-headers"]) == (204, True)
            assert "access-control-allow-credentials" not in asked.headers

    asyncio.run(main())


def test_smuggled_and_malformed_requests_are_answered_once(tmp_path: Path) -> None:
    """A request with two lengths, two hosts, or none, is refused, and what is hidden behind it is not carried out."""
    hidden = (
        b"POST /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b'Content-Length: 17\r\n\r\n{"name":"hidden"}'
    )
    cases = (
        b"POST /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 144\r\n\r\n" + hidden,
        b"POST /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 6\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
        b"GET /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n",
        b"GET /api/v1/agents HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 200_000 + b"\r\nConnection: close\r\n\r\n",
        b"nonsense\r\n\r\n",
    )

    async def main() -> None:
        async with served(tmp_path) as server:
            for case in cases:
                answer = await _raw(server, case)
                assert 400 <= _status(answer) < 500, (case[:120], answer[:200])
            listed = await server.call("GET", "/agents", status=200)
            assert listed["agents"] == []

    asyncio.run(main())


def test_a_slow_body_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that does not arrive in time is answered with 408, and nothing of it is kept."""
    monkeypatch.setattr(guards, "DROP_S", 0.05)  # what is left of the body comes never

    async def main() -> None:
        options = HttpOptions(limits=HttpLimits(body_s=0.05))
        async with served(tmp_path, options=options) as server:
            head = b"POST /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            answer = await _raw(server, head + b"Content-Length: 100\r\nConnection: close\r\n\r\n{")
            assert (_status(answer), _problem(answer)["code"]) == (408, "too-slow")

    asyncio.run(main())


def test_a_large_body_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of 100 MB is refused by its declared size, or as soon as it is larger than the limit."""
    monkeypatch.setattr(guards, "DROP_S", 0.05)  # nothing comes after the parts that are sent

    async def main() -> None:
        async with served(tmp_path) as server:
            head = b"POST /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            declared = await _raw(server, head + b"Content-Length: 100000000\r\n\r\n")
            assert _status(declared) == 413
            chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
            chunked = await _raw(server, head + b"Transfer-Encoding: chunked\r\n\r\n", chunk, chunk)
            assert _status(chunked) == 413

    asyncio.run(main())


def test_a_server_at_rest_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is told to stop waits for nothing but requests: its clients may keep connections open."""
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(delay: float) -> None:
        slept.append(delay)
        await real(delay)

    async def main() -> None:
        async with served(tmp_path) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.address.rpartition(":")[2]))
            writer.write(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 ")
            monkeypatch.setattr(asyncio, "sleep", sleep)
        assert sum(slept) < LOOKS_MAX * LOOK_S
        writer.close()

    asyncio.run(main())


def test_an_answer_does_not_wait_for_an_acknowledgement() -> None:
    """The server sends each part of an answer at once, also on a connection that had answers before: a body does not
    wait until the client has acknowledged the head.
    """

    async def main() -> None:
        options: asyncio.Queue[int] = asyncio.Queue()

        async def opened(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            sock = writer.get_extra_info("socket")
            options.put_nowait(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        server = await asyncio.start_server(opened, sock=bound_socket("127.0.0.1", 0))
        async with server:
            port = server.sockets[0].getsockname()[1]
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await options.get() != 0
            writer.close()
            await writer.wait_closed()

    asyncio.run(main())
