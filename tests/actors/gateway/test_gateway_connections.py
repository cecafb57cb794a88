"""The gateway with real connections to a server on this machine: reuse, limits, retries and error messages."""

import asyncio
from typing import Any

import pytest

from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.models.classify_failure import retry_after_s
from everlog.events import ModelError
from tests.support.agent_world import say
from tests.support.models.loopback_server import serving

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


async def asked(one: Gateway, url: str, *names: str) -> list[Any]:
    """Call each of these models, all at once. Return the outcomes, with a ModelError as a value."""
    try:
        return await asyncio.gather(*(one.ask(name, url, b"{}") for name in names), return_exceptions=True)
    finally:
        await one.close()


def test_models_of_one_endpoint_share_its_connections() -> None:
    """Twenty requests for two models at one address, two at a time, use one client and at most two connections."""
    with serving((200, say("Hello."))) as server:
        one = Gateway(limits=GatewayLimits(asks_max=2))
        came = asyncio.run(asked(one, server.url, *["m", "n"] * 10))
    assert len(came) == 20 and not [item for item in came if isinstance(item, ModelError)]
    assert len(server.bodies) == 20
    assert 1 <= server.connections <= 2


@pytest.mark.parametrize("most", [1, 3, 9, 32])
def test_there_are_no_more_connections_than_requests_at_once(most: int) -> None:
    """As many connections stay open as requests are allowed at once, and later requests reuse them."""

    async def main(url: str) -> list[int]:
        one = Gateway(limits=GatewayLimits(asks_max=most))
        counts = []
        for asks in (most, 1, 3 * most):
            await asyncio.gather(*(one.ask("m", url, b"{}") for _ in range(asks)))
            counts.append(server.connections)
        await one.close()
        return counts

    with serving((200, say("Hello."))) as server:
        counts = asyncio.run(main(server.url))
    assert counts[0] == counts[1] <= counts[2] <= most
    assert len(server.bodies) == 4 * most + 1


def test_a_server_that_fails_once_is_asked_again() -> None:
    """Only the gateway retries: there are two requests, and the answer counts two attempts."""
    with serving((503, "busy"), (200, say("Hello."))) as server:
        (answer,) = asyncio.run(asked(Gateway(chance=lambda: 0.99), server.url, "m"))
    assert (answer.attempts, len(server.bodies)) == (2, 2)


def test_the_last_failure_counts_the_attempts() -> None:
    """With two attempts allowed there are two requests, and the error counts two attempts."""
    with serving((500, "oops")) as server:
        one = Gateway(limits=GatewayLimits(attempts_max=2), chance=lambda: 0.99)
        (error,) = asyncio.run(asked(one, server.url, "m"))
    assert isinstance(error, ModelError)
    assert (error.kind, error.attempts, len(server.bodies)) == ("server", 2, 2)


@pytest.mark.parametrize(("status", "body", "kind"), [
    (401, f'{{"error":{{"message":"expired: {KEY}"}}}}', "key"),
    (402, "pay", "credit"),
    (429, '{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}', "credit"),
])  # fmt: skip
def test_an_invalid_key_or_account_fails_waiting_requests(status: int, body: str, kind: str) -> None:
    """After one 401, 402 or quota error the waiting requests fail without being sent; no message contains the key."""
    with serving((status, body)) as server:
        came = asyncio.run(asked(Gateway(limits=GatewayLimits(asks_max=1)), server.url, *"abcde"))
    assert [error.kind for error in came] == [kind] * 5
    assert len(server.bodies) == 1
    assert not [error for error in came if KEY in str(error)]


def test_a_model_that_the_key_may_not_use_shuts_out_no_other() -> None:
    """A 403 concerns one model only: the next request, for another model, is sent."""
    with serving((403, "not yours"), (200, say("Hello."))) as server:
        error, answer = asyncio.run(asked(Gateway(limits=GatewayLimits(asks_max=1)), server.url, "m", "n"))
    assert isinstance(error, ModelError) and error.kind == "forbidden" and "OPENAI_API_KEY" in str(error)
    assert not isinstance(answer, ModelError)


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(("headers", "seconds"), [
    ({}, 0),
    ({"retry-after": "12"}, 12),
    ({"retry-after": "1.5"}, 1.5),
    ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
    ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": DATE}, 30),
    ({"retry-after": "Wed, 21 Oct 2015 07:27:30 GMT", "date": DATE}, 0),
    ({"retry-after": DATE}, 0),
    ({"retry-after": "soon"}, 0),
    ({"retry-after": "-3"}, 0),
    ({"retry-after-ms": "nan"}, 0),
    ({"retry-after": "²"}, 0),
])  # fmt: skip
def test_the_retry_time_is_read_from_headers(headers: dict[str, str], seconds: float) -> None:
    """Seconds, milliseconds and dates are accepted; an unreadable value counts as missing."""
    assert retry_after_s(headers) == seconds
