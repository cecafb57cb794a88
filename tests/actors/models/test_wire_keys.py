"""The endpoint's key in chunks of a reply, comments that keep a connection open, and an address with a query."""

import asyncio
import json

import pytest

from everlog.actors.models.model_types import CallLimits
from everlog.actors.models.openai_client import ChatEndpoint
from everlog.actors.models.response_body import KeyRedactor
from everlog.actors.ports.effects import ReplyDelta
from everlog.events import ModelError
from tests.support.models.endpoint_server import KEY, plain, serving, streaming
from tests.support.models.server_replies import DIALECTS

BODY = b'{"model":"m","stream":true}'


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def event(content: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


@pytest.mark.parametrize("size", [1, 7, 100])
def test_chunks_never_contain_the_key(size: int) -> None:
    """In any split of the body, the key is in no chunk and in no sum of chunks; all other text is delivered."""
    said = f"It is {KEY}, I say: {KEY[:5]}. sk-"

    async def main() -> str:
        heard: list[ReplyDelta] = []
        events = [event(said[at : at + size]) for at in range(0, len(said), size)]
        async with serving(streaming(*events, event("", "stop"))) as wire:
            model = ChatEndpoint("m", wire.url)
            await model.ask(BODY, on_delta=heard.append)
            await model.close()
        return "".join(piece.text for piece in heard)

    assert asyncio.run(main()) == said.replace(KEY, "[key]")


def test_each_call_is_delivered_in_order_without_the_key() -> None:
    """Held-back text of one call is delivered before the next call begins, and the key is removed from arguments
    too.
    """
    heard: list[ReplyDelta] = []
    keyless = KeyRedactor(heard.append, KEY)
    for piece in (
        ReplyDelta(call=0, name="send_message", arguments='{"message":"sk-'),
        ReplyDelta(call=0, arguments=KEY[3:] + '"}'),
        ReplyDelta(call=1, name="send_message", arguments="{sk"),
        ReplyDelta(text="Well"),
    ):
        keyless.feed(piece)
    keyless.end()
    calls = ["".join(p.arguments for p in heard if p.call == number) for number in (0, 1)]
    assert calls == ['{"message":"[key]"}', "{sk"] and heard[-1].text == "Well"


def test_comments_that_keep_the_line_open_are_no_reply() -> None:
    """A server that sends only comments fails with `timeout`."""

    async def main() -> None:
        async with asyncio.timeout(10), serving(streaming(*DIALECTS[0].events[:3], *[b": wait\n\n"] * 10**6)) as wire:
            model = ChatEndpoint("m", wire.url, limits=CallLimits(silence_s=0.2))
            with pytest.raises(ModelError) as late:
                await model.ask(BODY, on_delta=lambda _: None)
            await model.close()
        assert late.value.kind == "timeout"

    asyncio.run(main())


def test_the_query_of_an_address_goes_with_every_path() -> None:
    """`/v1?api-version=1` becomes `/v1/chat/completions?api-version=1`; the displayed address has no query, which may
    be secret.
    """

    async def main() -> None:
        async with serving(plain(DIALECTS[0].whole)) as wire:
            model = ChatEndpoint("m", wire.url + "?api-version=1")
            await model.ask(BODY)
            await model.close()
            assert wire.paths == ["/v1/chat/completions?api-version=1"]
            assert "api-version" not in model._url

    asyncio.run(main())
