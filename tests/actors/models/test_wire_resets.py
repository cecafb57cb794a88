"""Connections that are reset, closed too early, or carry more than was asked for, by a server of raw bytes."""

import asyncio

import pytest

from everlog.actors.formats import parse_reply
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.models.openai_client import ChatEndpoint, EmbeddingsEndpoint
from everlog.actors.ports.effects import ReplyDelta
from everlog.events import BadReply, ModelError
from tests.support.models.endpoint_server import KEY
from tests.support.models.reset_server import Answer, chunked, resetting, whole
from tests.support.models.server_replies import ARGUMENTS, DIALECTS, TEXT

WHOLE, EVENTS = DIALECTS[0].whole, DIALECTS[0].events
BODY = WHOLE.encode()
GOOD = Answer((whole(BODY),))
BARE = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
STALE = whole(b'{"choices":[{"message":{"role":"assistant","content":"for another agent"}}]}')
HEAD = whole(BODY)[: -len(BODY)]

BROKEN = {
    "reset before the headers": (Answer((), "reset"), "unreachable"),
    "closed before the headers": (Answer((), "close"), "unreachable"),
    "reset in the status line": (Answer((b"HTTP/1.1 20",), "reset"), "unreachable"),
    "closed in the headers": (Answer((b"HTTP/1.1 200 OK\r\nContent-Le",), "close"), "unreachable"),
    "reset after the headers": (Answer((HEAD,), "reset"), "cut"),
    "reset in the body": (Answer((HEAD + BODY[:-20],), "reset"), "cut"),
    "closed in the body": (Answer((HEAD + BODY[:-20],), "close"), "cut"),
    "reset in a stream": (Answer(chunked(*EVENTS[:4], end=False), "reset"), "cut"),
    "closed in a stream": (Answer(chunked(*EVENTS[:4], end=False), "close"), "cut"),
    "closed in a chunk": (Answer((*chunked(*EVENTS[:3], end=False), b"ff\r\nabc"), "close"), "cut"),
    "HTTP/1.0, closed in the body": (Answer((BARE + BODY[:-20],), "close"), "cut"),
    "HTTP/1.0, reset in the body": (Answer((BARE + BODY[:-20],), "reset"), "cut"),
    "a length that is too small": (Answer((HEAD.replace(b"%d" % len(BODY), b"50") + BODY,), "close"), "cut"),
    "a length that is too large": (Answer((HEAD.replace(b"%d" % len(BODY), b"9" * 18) + BODY,), "close"), "cut"),
    "a length of 20 digits": (Answer((HEAD.replace(b"%d" % len(BODY), b"9" * 20) + BODY,), "close"), "unreachable"),
    "two lengths": (Answer((whole(BODY, b"Content-Length: 5"),), "close"), "unreachable"),
    "a length and chunks": (Answer((whole(BODY, b"Transfer-Encoding: chunked"),), "close"), "cut"),
    "a chunk of 2^64 bytes": (Answer((*chunked(end=False), b"ffffffffffffffff\r\n" + BODY), "close"), "cut"),
    "a header of 1 MB": (Answer((whole(BODY, b"X: " + b"a" * 1_000_000),), "close"), "unreachable"),
    "a trailer of 1 MB": (Answer((*chunked(BODY, end=False), b"0\r\nX: " + b"a" * 1_000_000), "close"), "cut"),
    "reset in a refusal": (Answer((whole(b'{"error":"no"}', status=b"401 X")[:-5],), "reset"), "unreachable"),
}
WHOLE_ANSWERS = {
    "reset after the body": Answer((whole(BODY),), "reset"),
    "reset after a stream's last event": Answer(chunked(*EVENTS, end=False), "reset"),
    "HTTP/1.0, closed after the body": Answer((BARE + BODY,), "close"),
    "an answer of status 100 before": Answer((b"HTTP/1.1 100 Continue\r\n\r\n" + whole(BODY),)),
}
MORE = {
    "a second answer": Answer((whole(BODY) + STALE,)),
    "a second answer, and half of a third": Answer((whole(BODY) + STALE + STALE[:40],)),
    "bytes that are no answer": Answer((whole(BODY) + b"garbage",)),
    "a second answer after a stream": Answer((b"".join(chunked(*EVENTS)) + STALE,)),
    "a second answer after a refusal": Answer((whole(b'{"error":"slow down"}', status=b"429 X") + STALE,)),
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


async def retried_answers(url: str, requests: int) -> list[str]:
    """Return the answers to requests that are sent one after the other by a gateway, which retries."""
    gateway = Gateway(chance=lambda: 0.99)
    found = [(await gateway.ask("m", url, b"{}")).raw for _ in range(requests)]
    await gateway.close()
    return found


async def answers(url: str, requests: int) -> list[str | ModelError]:
    """Return the answers, or errors, of requests that are sent one after the other to one endpoint."""
    found: list[str | ModelError] = []
    model = ChatEndpoint("m", url)
    for _ in range(requests):
        try:
            found.append((await model.ask(b"{}")).raw)
        except ModelError as error:
            found.append(error)
    await model.close()
    return found


@pytest.mark.parametrize(("answer", "kind"), BROKEN.values(), ids=BROKEN)
def test_a_connection_that_breaks_has_its_class(answer: Answer, kind: str) -> None:
    """A broken connection is an error of a class that is retried, and the next request is answered."""
    with resetting(answer, GOOD) as server:
        failed, came = asyncio.run(answers(server.url, 2))
    assert isinstance(failed, ModelError)
    assert (failed.kind, came) == (kind, WHOLE)
    assert isinstance(failed, BadReply) == (kind == "cut")


@pytest.mark.parametrize("answer", WHOLE_ANSWERS.values(), ids=WHOLE_ANSWERS)
def test_a_whole_answer_counts_however_its_connection_ends(answer: Answer) -> None:
    """The end of a connection after a whole answer costs the next request at most a retry: the reset may arrive after
    that request began on the same connection.
    """
    with resetting(answer, GOOD) as server:
        first, second = asyncio.run(retried_answers(server.url, 2))
    assert parse_reply.reply(first, 8192).text == TEXT
    assert second == WHOLE


@pytest.mark.parametrize("answer", MORE.values(), ids=MORE)
def test_what_comes_after_an_answer_never_answers_the_next_request(answer: Answer) -> None:
    """A connection on which more came than one answer is closed: otherwise the rest would be taken for the answer to
    the next request, of any agent.
    """
    with resetting(answer, GOOD) as server:
        _, second = asyncio.run(answers(server.url, 2))
    assert second == WHOLE
    assert (server.connections, len(server.requests)) == (2, 2)


def test_a_second_answer_is_never_the_vectors_of_the_next_texts() -> None:
    """Each request for vectors has a connection of its own."""
    with resetting(MORE["a second answer"], GOOD) as server:
        endpoint = EmbeddingsEndpoint("m", server.url)
        assert [endpoint.ask(b"{}") for _ in range(2)] == [WHOLE] * 2
        endpoint.close()
    assert server.connections == 2


def test_a_connection_on_which_all_is_well_is_used_again() -> None:
    """Three requests take one connection."""
    with resetting(GOOD) as server:
        assert asyncio.run(answers(server.url, 3)) == [WHOLE] * 3
    assert server.connections == 1


def test_a_connection_that_is_reset_while_it_is_idle_is_replaced() -> None:
    """A server that resets a connection after its answer costs at most a retry."""
    with resetting(Answer((whole(BODY),), "reset"), GOOD) as server:
        assert asyncio.run(retried_answers(server.url, 3)) == [WHOLE] * 3


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_stream_that_is_reset_is_retried_and_never_half_heard(how: str) -> None:
    """After a reset in a stream the gateway asks again: what was heard is void, and the whole reply follows."""
    broken = Answer(chunked(*EVENTS[:4], end=False), how)
    heard: list[ReplyDelta] = []
    with resetting(Answer((), "reset"), broken, Answer(chunked(*EVENTS))) as server:

        async def main() -> int:
            one = Gateway(chance=lambda: 0.0)
            came = await one.ask("m", server.url, b'{"stream":true}', on_delta=heard.append)
            await one.close()
            return came.attempts

        assert asyncio.run(main()) == 3
    last = max(at for at, piece in enumerate(heard) if piece.restart)
    rest = heard[last + 1 :]
    assert ("".join(piece.text for piece in rest), "".join(piece.arguments for piece in rest)) == (TEXT, ARGUMENTS)


@pytest.mark.parametrize(("name", "value"), [("ALL_PROXY", "socks5://x"), ("SSL_CERT_FILE", "/nowhere/at/all")])
def test_a_proxy_or_certificates_of_no_use_are_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """An environment with which no connection can be made is an error in words, and names the variables."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ModelError, match=name) as caught:
        ChatEndpoint("m", "https://127.0.0.1:1/v1")
    assert caught.value.kind == "address"
