"""The transport of requests to endpoints, as httpx2's client uses it: heads, connections, limits, TLS and proxies."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import httpx2
import pytest

from everlog.actors.models.endpoint_transport import BUFFERED_BYTES_MAX, EndpointConnection, EndpointTransport
from everlog.actors.models.openai_client import ChatEndpoint
from tests.support.models.raw_web_server import certificate
from tests.support.models.raw_web_server import serving as serving_tls
from tests.support.models.reset_server import Answer, chunked, resetting, whole
from tests.support.models.server_replies import DIALECTS

BODY = b'{"answer":42}'
GOOD = whole(BODY)
WHOLE = DIALECTS[0].whole

HEADS = {
    "no reason": b"HTTP/1.1 200\r\nContent-Length: 13\r\n\r\n" + BODY,
    "an empty reason": b"HTTP/1.1 200 \r\nContent-Length: 13\r\n\r\n" + BODY,
    "ends of lines without CR": b"HTTP/1.1 200 OK\nContent-Length: 13\n\n" + BODY,
    "names in any case": b"HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh:13\r\n\r\n" + BODY,
    "a header in Latin-1": b"HTTP/1.1 200 OK\r\nX: \xe9\r\nContent-Length: 13\r\n\r\n" + BODY,
    "spaces after the size of a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd  \r\n" + BODY
    + b"\r\n0\r\n\r\n",
    "an extension of a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd;a=b\r\n" + BODY
    + b"\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n" + BODY + b"\r\n0\r\nX-Sum: 1\r\n\r\n",
    "two announcements": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + GOOD,
}  # fmt: skip
CLOSING = {
    "the server says so": whole(BODY, b"Connection: close"),
    "HTTP/1.0": whole(BODY, version=b"HTTP/1.0"),
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n" + BODY
    + b"\r\n0\r\n\r\n",
}  # fmt: skip

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def client(connections_max: int = 8, idle_s: float = 60, trust: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    transport = EndpointTransport(trust or ssl.create_default_context(), connections_max, idle_s)
    return httpx2.AsyncClient(transport=transport, timeout=None)


async def answers(url: str, requests: int, one: httpx2.AsyncClient) -> list[bytes]:
    """Return the bodies of the answers to requests that are sent one after the other."""
    async with one:
        return [(await one.post(url, content=b"{}")).content for _ in range(requests)]


async def served(serve: Serve, main: Callable[[str], Awaitable[None]]) -> None:
    """Run `main` with the address of a server that handles connections as `serve` does, and then closes them."""

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(handled, "127.0.0.1", 0)
    try:
        await main(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    finally:
        server.close()
        await server.wait_closed()
        for _ in range(3):  # until the sockets of the connections are closed
            await asyncio.sleep(0)


@pytest.mark.parametrize("raw", HEADS.values(), ids=HEADS)
def test_answers_as_servers_really_send_them_are_read(raw: bytes) -> None:
    """Each answer is read, and its connection is used again."""
    with resetting(Answer((raw,))) as server:
        assert asyncio.run(answers(server.url, 2, client())) == [BODY] * 2
    assert server.connections == 1


@pytest.mark.parametrize("raw", HEADS.values(), ids=HEADS)
def test_an_answer_may_arrive_byte_by_byte(raw: bytes) -> None:
    with resetting(Answer(tuple(raw[at : at + 1] for at in range(len(raw))))) as server:
        assert asyncio.run(answers(server.url, 1, client())) == [BODY]


@pytest.mark.parametrize("raw", CLOSING.values(), ids=CLOSING)
def test_a_connection_that_is_not_to_be_kept_is_not_used_again(raw: bytes) -> None:
    with resetting(Answer((raw,))) as server:
        assert asyncio.run(answers(server.url, 2, client())) == [BODY] * 2
    assert server.connections == 2


def test_a_connection_that_is_idle_too_long_is_not_used_again() -> None:
    """Many servers and firewalls forget idle connections without a word."""
    with resetting(Answer((GOOD,))) as server:
        assert asyncio.run(answers(server.url, 2, client(idle_s=0))) == [BODY] * 2
    assert server.connections == 2


@pytest.mark.parametrize("late", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale"], ids=["closed", "bytes"])
def test_what_happens_to_an_idle_connection_costs_no_request(late: bytes) -> None:
    """If the server closes an idle connection, or sends bytes without a request, the next request takes another
    connection, also before the event loop has noticed.
    """
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while await reader.read(65536):
            writer.write(GOOD)

    async def main(url: str) -> None:
        async with client() as one:
            assert (await one.post(url)).content == BODY
            if late:
                writers[0].write(late)
            else:
                writers[0].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            assert (await one.post(url)).content == BODY
            assert len(writers) == 2

    asyncio.run(served(serve, main))


def test_a_request_over_a_connection_that_was_closed_at_once_fails() -> None:
    """A server may close a new connection before the request begins. The request then fails and does not wait."""

    async def main() -> None:
        mine, its = socket.socketpair()
        _, connection = await asyncio.get_running_loop().create_connection(EndpointConnection, sock=mine)
        its.close()
        for _ in range(10):  # until the loop has read the end and called connection_lost
            await asyncio.sleep(0)
        assert connection._closed
        connection.send(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises(httpx2.RemoteProtocolError, match="without an answer"):
            await connection.head(None)

    asyncio.run(main())


def test_a_cancelled_request_closes_its_connection_and_makes_room() -> None:
    """With one connection at most, the request after a cancelled one is answered."""
    came, gone = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.read(65536)
        if b"/silent" in request:
            came.set()
            assert await reader.read() == b""
            gone.set()
        writer.write(GOOD)
        await reader.read()

    async def main(url: str) -> None:
        async with client(connections_max=1) as one:
            asking = asyncio.create_task(one.post(url + "silent"))
            await came.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await gone.wait()
            assert (await one.post(url)).content == BODY

    asyncio.run(served(serve, main))


def test_each_time_limit_has_its_error() -> None:
    """Silence before the head, silence in the body, and no free connection are errors of their own."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/half" in await reader.read(65536):
            writer.write(GOOD[:-3])
        await reader.read()

    async def main(url: str) -> None:
        short = httpx2.Timeout(None, read=0.01, pool=0.01)
        async with client(connections_max=1) as one:
            for path in ("silent", "half"):
                with pytest.raises(httpx2.ReadTimeout):
                    await one.post(url + path, timeout=short)
            async with one.stream("POST", url + "half"):
                with pytest.raises(httpx2.PoolTimeout):
                    await one.post(url, timeout=short)

    asyncio.run(served(serve, main))


def test_a_refusal_arrives_although_the_request_was_not_read() -> None:
    """A server may refuse a large request after its head. The rest stays unsent, so the connection is not kept."""
    connections: list[object] = []
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(whole(BODY, status=b"413 Too Large"))
        await done.wait()

    async def main(url: str) -> None:
        async with client() as one:
            for _ in range(2):
                assert (await one.post(url, content=b"x" * 16_000_000)).status_code == 413
        assert len(connections) == 2
        done.set()

    asyncio.run(served(serve, main))


def test_a_body_waits_for_its_reader_in_bounded_memory() -> None:
    """While a body is not read, some 256 KiB of it are taken from the connection; it arrives whole nevertheless."""
    body = bytes(range(256)) * 65536

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(whole(body))
        await writer.drain()
        await reader.read()

    async def main(url: str) -> None:
        async with client() as one, one.stream("POST", url) as response:
            parts = response.stream._stream._connection  # type: ignore[attr-defined]
            for _ in range(1000):
                await asyncio.sleep(0)
            assert BUFFERED_BYTES_MAX < parts._buffered < 3 * BUFFERED_BYTES_MAX
            assert await response.aread() == body

    asyncio.run(served(serve, main))


def test_a_header_with_an_end_of_line_is_not_sent() -> None:
    """Such a header would be the beginning of another request; the error does not repeat it."""
    with resetting(Answer((GOOD,))) as server:

        async def main() -> None:
            async with client() as one:
                with pytest.raises(httpx2.LocalProtocolError) as caught:
                    await one.post(server.url, headers={"X": "secret\r\n\r\nGET / HTTP/1.1"})
                assert "secret" not in str(caught.value)
                assert (await one.post(server.url, content=b"{}")).content == BODY

        asyncio.run(main())
    assert len(server.requests) == 1


def test_a_host_that_is_no_name_is_a_connection_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python refuses a label of 64 characters with a UnicodeError, which is no OSError."""

    async def looked_up(*_: object, **__: object) -> None:
        raise UnicodeError("label too long")

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", looked_up)

    async def main() -> None:
        async with client() as one:
            with pytest.raises(httpx2.ConnectError):
                await one.post(f"http://{'a' * 64}.invalid/")

    asyncio.run(main())


def test_certificates_are_checked(tmp_path: Path) -> None:
    """An answer comes over TLS if the certificate is trusted and names the host, and otherwise nothing is sent."""
    pem = certificate(tmp_path)
    known, by_name = ssl.create_default_context(cafile=str(pem)), ssl.create_default_context(cafile=str(pem))
    known.check_hostname = False  # it names shop.test, and the server is at 127.0.0.1

    async def main() -> None:
        async with serving_tls({"/v1": GOOD}, pem) as server:
            url = f"https://127.0.0.1:{server.port}/v1"
            assert await answers(url, 2, client(trust=known)) == [BODY] * 2
            for trust in (by_name, ssl.create_default_context()):
                with pytest.raises(httpx2.ConnectError, match="CERTIFICATE"):
                    await answers(url, 1, client(trust=trust))
            assert len(server.requests) == 2

    asyncio.run(main())


async def asked(url: str, requests: int) -> list[str]:
    """Return what the endpoint's model answers."""
    model = ChatEndpoint("m", url)
    try:
        return [(await model.ask(b"{}")).raw for _ in range(requests)]
    finally:
        await model.close()


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        ((whole(WHOLE.encode()),), 1),
        (chunked(*DIALECTS[0].events), 1),
        ((whole(WHOLE.encode()) + GOOD,), 3),
    ],
    ids=["whole", "streamed", "more than was asked for"],
)
def test_a_proxy_of_the_environment_carries_the_requests(
    monkeypatch: pytest.MonkeyPatch, answer: Sequence[bytes], connections: int
) -> None:
    """The proxy gets the whole address. Its connection is used again, unless more came than one answer.

    If this fails after an update of httpx2, see `_more_came`.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    with resetting(Answer(tuple(answer))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        assert len(asyncio.run(asked("http://model.invalid/v1", 3))) == 3
    assert all(request.startswith(b"POST http://model.invalid/v1/chat/completions ") for request in proxy.requests)
    assert (len(proxy.requests), proxy.connections) == (3, connections)


def test_an_address_without_proxy_is_asked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with resetting(Answer((whole(WHOLE.encode()),))) as server:
        assert asyncio.run(asked(server.url, 2)) == [WHOLE] * 2
    assert server.requests[0].startswith(b"POST /v1/chat/completions ") and server.connections == 1
