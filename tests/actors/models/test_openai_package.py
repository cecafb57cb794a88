"""Requests go through openai's own client: what it must not send, and what it must not read."""

import asyncio
from typing import Any

import httpx2
import openai
import pytest

from everlog.actors.models import openai_client
from everlog.actors.models.openai_client import REFUSAL_BYTES_MAX, ChatEndpoint
from everlog.events import ModelError
from tests.support.agent_world import say
from tests.support.models.loopback_server import serving
from tests.support.models.reset_server import Answer, resetting, whole

REQUEST = b'{"model":"m","messages":[{"role":"user","content":"\\u00e9 as it was hashed"}]}'


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")


def asked(url: str, *requests: bytes) -> None:
    """Send the requests, one after the other; without any, REQUEST."""

    async def main() -> None:
        model = ChatEndpoint("m", url)
        try:
            for request in requests or [REQUEST]:
                await model.ask(request)
        finally:
            await model.close()

    asyncio.run(main())


def test_each_request_is_one_of_the_openai_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of the openai package sends the request, with the bytes as they were given."""
    sent: list[str] = []
    own = openai.AsyncOpenAI.request

    async def request(self: openai.AsyncOpenAI, cast_to: Any, options: Any, **others: Any) -> Any:
        sent.append(options.url)
        return await own(self, cast_to, options, **others)

    monkeypatch.setattr(openai.AsyncOpenAI, "request", request)
    with serving((200, say("Hello."))) as server:
        asked(server.url)
    assert server.bodies == [REQUEST] and sent == [f"{server.url}/chat/completions"]


def test_a_request_says_nothing_about_this_machine() -> None:
    """Neither the operating system nor the processor nor the version of Python is in a header."""
    with serving((200, say("Hello."))) as server:
        asked(server.url)
    names = {name.lower() for name in server.headers[0]}
    assert not [name for name in names if name.startswith("x-stainless")]
    assert server.headers[0]["user-agent"].startswith("AsyncOpenAI/Python")


def test_each_request_has_its_own_content_and_the_headers_of_the_first() -> None:
    """Later requests have the headers that openai built for the first one, but for the length of their content."""
    requests = [REQUEST, b'{"model":"m"}', b'{"prompt":"Once"}', REQUEST]
    with serving((200, say("Hello."))) as server:
        asked(server.url, *requests)
    assert server.bodies == requests
    assert [int(head.pop("content-length")) for head in server.headers] == [len(request) for request in requests]
    assert all(head == server.headers[0] for head in server.headers)
    assert server.headers[0]["authorization"] == "Bearer sk-very-secret-0123456789"


def test_requests_that_begin_together_keep_their_own_lengths() -> None:
    """The first request is still on its way when the next ones take their headers from it."""
    requests = [b'{"model":"%s"}' % (b"m" * size) for size in range(20)]

    async def main(url: str) -> None:
        model = ChatEndpoint("m", url)
        try:
            await asyncio.gather(*map(model.ask, requests))
        finally:
            await model.close()

    with serving((200, say("Hello."))) as server:
        asyncio.run(main(server.url))
    assert sorted(server.bodies) == sorted(requests)


def test_a_cookie_of_the_endpoint_comes_back_to_it() -> None:
    """A load balancer finds its server again by a cookie; requests before the cookie had none."""
    answer = Answer((whole(say("Hello.").encode(), b"Set-Cookie: server=7"),))
    with resetting(answer) as server:
        asked(server.url, REQUEST, REQUEST, REQUEST)
    assert [b"cookie: server=7" in request.lower() for request in server.requests] == [False, True, True]


def test_a_refusal_without_end_is_read_in_part() -> None:
    """Of a refusal's body only the first REFUSAL_BYTES_MAX bytes are read: the rest would fill the memory."""
    read: list[int] = []

    class Endless(httpx2.AsyncByteStream):
        async def __aiter__(self) -> Any:
            while True:
                read.append(1000)
                yield b"x" * 1000

        async def aclose(self) -> None:
            read.append(0)

    class Server(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            closed = {"network_stream": httpx2.AsyncByteStream()}
            return httpx2.Response(500, stream=Endless(), extensions=closed, request=request)

    async def main() -> None:
        model = ChatEndpoint("m", "http://127.0.0.1:1/v1")
        model._connections._client._client._transport = Server()
        with pytest.raises(ModelError) as refused:
            await model.ask(REQUEST)
        assert refused.value.kind == "server"

    asyncio.run(main())
    assert REFUSAL_BYTES_MAX < sum(read) <= REFUSAL_BYTES_MAX + 2000 and read[-1] == 0
    assert openai_client.REFUSAL_BYTES_MAX == 64 << 10
