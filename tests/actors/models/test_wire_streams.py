"""Replies as four servers stream them: assembled like unstreamed replies, and interrupted at each place."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from everlog.actors.formats import parse_reply
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.models.model_types import CallLimits
from everlog.actors.models.openai_client import ChatEndpoint
from everlog.actors.models.response_body import ResponseReader
from everlog.actors.models.token_usage import usage_of
from everlog.actors.ports.effects import ModelResponse, ReplyDelta
from everlog.events import BadReply, ModelError, ModelReply
from tests.support.models.endpoint_server import KEY, plain, serving, streaming
from tests.support.models.server_replies import ARGUMENTS, DIALECTS, DONE, TEXT, Dialect, error, event

BODY = b'{"model":"m","stream":true}'
each = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def read(raw: str) -> ModelReply:
    """Return the reply of the assembled completion, without its raw bytes."""
    return msgspec.structs.replace(parse_reply.reply(raw, 8192), raw="")


def reading(heard: list[ReplyDelta] | None = None) -> ResponseReader:
    return ResponseReader("m", "http://x/v1/", str, None if heard is None else heard.append, "text/event-stream")


def outcome(parts: list[bytes], heard: list[ReplyDelta] | None = None) -> str | ModelError:
    """Return the completion or the error for a body in these parts, without a network."""
    one = reading(heard)
    try:
        for part in parts:
            one.feed(part)
        return one.end()
    except ModelError as failed:
        return failed


async def asked(one: ChatEndpoint | Gateway, url: str, heard: list[ReplyDelta]) -> ModelResponse | ModelError:
    try:
        if isinstance(one, Gateway):
            return await one.ask("m", url, BODY, on_delta=heard.append)
        return await one.ask(BODY, on_delta=heard.append)
    except ModelError as failed:
        return failed


def said(heard: list[ReplyDelta]) -> tuple[str, str, str]:
    """Return the text, name and arguments of all deltas since the last restart."""
    since = max((n for n, piece in enumerate(heard) if piece.restart), default=-1) + 1
    rest = heard[since:]
    return "".join(p.text for p in rest), "".join(p.name for p in rest), "".join(p.arguments for p in rest)


@each
def test_a_stream_is_read_like_an_unstreamed_reply(dialect: Dialect) -> None:
    """The assembled completion gives the same reply as the unstreamed one, and the deltas add up to it."""

    async def main() -> None:
        async with serving(plain(dialect.whole), streaming(*dialect.events)) as wire:
            model = ChatEndpoint("m", wire.url)
            heard: list[ReplyDelta] = []
            whole, none = await model.ask(BODY), len(heard)
            streamed = await model.ask(BODY, on_delta=heard.append)
            unheard = await model.ask(BODY)
            await model.close()
        assert none == 0
        assert read(streamed.raw) == read(whole.raw) == read(unheard.raw)
        assert said(heard) == (TEXT, "send_message", ARGUMENTS)
        assert wire.open == 0

    asyncio.run(main())


@each
def test_a_stream_may_be_split_at_any_byte(dialect: Dialect) -> None:
    """A body in two parts split at any byte, or byte by byte with CRLF line ends, gives the same reply."""
    body = b"".join(dialect.events)
    expected = read(dialect.whole)
    for at in range(len(body)):
        came = outcome([body[:at], body[at:]])
        assert isinstance(came, str) and read(came) == expected
    crlf = body.replace(b"\n", b"\r\n")
    came = outcome([crlf[at : at + 1] for at in range(len(crlf))])
    assert isinstance(came, str) and read(came) == expected


@each
def test_a_stream_broken_after_each_chunk_is_an_error(dialect: Dialect) -> None:
    """A stream that breaks or ends after any chunk gives an error with the received part, or the reply if it was
    complete.
    """

    async def main() -> None:
        ended = next(n for n, part in enumerate(dialect.events) if b'"finish_reason": "tool_calls"' in part)
        for then in ("cut", "end"):
            acts = [streaming(*dialect.events[:count], then=then) for count in range(len(dialect.events))]
            async with serving(*acts) as wire:
                model = ChatEndpoint("m", wire.url)
                for count in range(len(acts)):
                    heard: list[ReplyDelta] = []
                    came = await asked(model, wire.url, heard)
                    if count > ended:
                        assert isinstance(came, ModelResponse) and read(came.raw).calls == read(dialect.whole).calls
                        continue
                    assert isinstance(came, BadReply)
                    assert came.kind == ("garbage" if came.raw.startswith(": ping") and then == "end" else "cut")
                    if came.raw.startswith("{"):
                        message = (json.loads(came.raw)["choices"] or [{"message": {"content": ""}}])[0]["message"]
                        assert said(heard)[0] == (message["content"] or "")
                await model.close()

    asyncio.run(main())


def test_a_stream_broken_after_each_byte_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that breaks before the finish reason is complete is an error; afterwards it is the reply."""
    chunks = [event({"choices": [{"delta": {"content": "Grüße"}}]}),
              event({"choices": [{"delta": {}, "finish_reason": "stop"}]}), DONE]  # fmt: skip
    body = b"".join(chunks)
    whole_at = len(chunks[0]) + len(chunks[1]) - 2

    async def main() -> None:
        async with serving(*(streaming(body[:at], then="cut") for at in range(1, len(body)))) as wire:
            model = ChatEndpoint("m", wire.url)
            for at in range(1, len(body)):
                came = await asked(model, wire.url, [])
                assert isinstance(came, ModelResponse if at >= whole_at else ModelError), at
                if isinstance(came, ModelError):
                    assert came.kind == "cut"
                else:
                    assert read(came.raw).text == "Grüße"
            await model.close()

    asyncio.run(main())


@each
def test_cancelled_at_each_chunk_the_connection_is_closed(dialect: Dialect) -> None:
    """A cancel after any chunk leaves no request under way, and the server sees the connection closed."""

    async def main() -> None:
        acts = [streaming(*dialect.events[:count], then="hang") for count in range(len(dialect.events) - 1)]
        async with serving(*acts) as wire:
            one = Gateway(limits=GatewayLimits(asks_max=1))
            for count in range(len(acts)):
                heard: list[ReplyDelta] = []
                asking = asyncio.create_task(asked(one, wire.url, heard))
                expected: list[ReplyDelta] = []
                outcome(list(dialect.events[:count]), expected)
                async with asyncio.timeout(10):
                    while len(heard) < len(expected) or len(wire.bodies) <= count:  # noqa: ASYNC110 - none tells
                        await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait([asking])
                await wire.until(left=count + 1)
                status = one.status()
                assert asking.cancelled() and (status.under_way, status.waiting) == (0, 0)
            await one.close()

    asyncio.run(main())


def test_a_broken_stream_is_retried_with_a_restart() -> None:
    """Deltas of the broken stream are void: a restart follows, and then the whole reply."""
    dialect = DIALECTS[0]

    async def main() -> None:
        async with serving(streaming(*dialect.events[:4], then="cut"), streaming(*dialect.events)) as wire:
            one = Gateway(chance=lambda: 0.99)
            heard: list[ReplyDelta] = []
            came = await asked(one, wire.url, heard)
            await one.close()
        assert isinstance(came, ModelResponse) and came.attempts == 2 and read(came.raw) == read(dialect.whole)
        assert [piece.restart for piece in heard].count(True) == 1
        assert said(heard) == (TEXT, "send_message", ARGUMENTS)

    asyncio.run(main())


@each
def test_an_error_in_the_middle_of_a_stream_is_of_its_class(dialect: Dialect) -> None:
    """An error inside a stream has its own class and the part that had arrived, without the key."""
    inside = event({"error": {"message": f"Overloaded, {KEY}", "code": 503}})
    named = b"event: error\ndata: " + error("slow down", kind="rate_limit_error").encode() + b"\n\n"
    older = b"error: " + error("the request exceeds the available context size", 400).encode() + b"\n\n"

    async def main() -> None:
        for last, kind in ((inside, "overloaded"), (named, "rate_limited"), (older, "overflow")):
            async with serving(streaming(*dialect.events[:4], last)) as wire:
                model = ChatEndpoint("m", wire.url)
                failed = await asked(model, wire.url, [])
                await model.close()
            assert isinstance(failed, ModelError) and failed.kind == kind
            assert KEY not in str(failed) + getattr(failed, "raw", "")
            if kind != "overflow":
                assert isinstance(failed, BadReply) and "Grü" in failed.raw

    asyncio.run(main())


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


HELLO = [chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk({}, "stop")]
USED = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


@pytest.mark.parametrize("parts", [
    [*HELLO, DONE], HELLO, [b": a comment\r\n\r\n", *HELLO, DONE], [b"\n\n\n", *HELLO, DONE],
    [b"event: ping\ndata: {\"type\": \"ping\"}\n\n", *HELLO, DONE], [b"id: 7\nretry: 10\n" + HELLO[0], *HELLO[1:]],
    [b'data: {"choices": [\ndata: {"delta": {"content": "Hello"}}]}\n\n', HELLO[2]],
    [b"".join(HELLO).replace(b"data: ", b"data:"), DONE], [*HELLO[:2], HELLO[2].rstrip()],
    [*HELLO[:2], DONE], [event({"choices": [{"index": 1, "delta": {"content": "No"}}]}), *HELLO],
    [chunk({"content": [{"type": "text", "text": "Hello"}]}), HELLO[2]],
    [event({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})],
    [chunk({"reasoning": "Hm", "role": "assistant"}), *HELLO, chunk({"content": "late"}).replace(b"late", b"")],
])  # fmt: skip
def test_streams_as_servers_really_send_them(parts: list[bytes]) -> None:
    """Comments, pings, ids, data on several lines, missing spaces, a missing end and a missing [DONE] are accepted."""
    heard: list[ReplyDelta] = []
    came = outcome(parts, heard)
    assert isinstance(came, str) and parse_reply.reply(came, 100).text.endswith("Hello") and said(heard)[0] == "Hello"


def test_usage_is_the_last_one_in_the_stream_or_none() -> None:
    """Usage may grow with each chunk, come only at the end, or be missing."""
    growing = [chunk({"content": "a"}, usage={"total_tokens": 1}), chunk({}, "stop", usage=USED)]
    last = [*HELLO, event({"choices": [], "usage": USED}), DONE]
    for parts, total in ((growing, 7), (last, 7), ([*HELLO, DONE], 0)):
        came = outcome(parts)
        assert isinstance(came, str) and usage_of(came).total == total


@pytest.mark.parametrize("parts", [
    [chunk({"content": "Dear user, I will not delete "}, ""), chunk({"content": "your"}, "")],
    [event({"choices": [{"text": "I will not delete ", "finish_reason": ""}]})],
])  # fmt: skip
def test_an_empty_finish_reason_is_no_end(parts: list[bytes]) -> None:
    """A stream whose chunks have an empty finish reason is incomplete until it ends properly."""
    came = outcome(parts)
    assert isinstance(came, BadReply) and came.kind == "cut"
    assert isinstance(outcome([*parts, DONE]), str)


def test_an_empty_text_next_to_a_message_is_ignored() -> None:
    """A chunk with an empty `text` and a message is read as a chat with its calls; if the words are in `text`, they are
    read from there.
    """

    def both(text: str, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return event({"choices": [{"text": text, "delta": delta, "finish_reason": finish}]})

    part = {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}
    came = outcome([both("", {"content": "Hello"}), both("", {"tool_calls": [part]}),
                    event({"choices": [{"text": "", "finish_reason": "stop"}]})])  # fmt: skip
    assert isinstance(came, str)
    reply = parse_reply.reply(came, 100)
    assert (reply.text, [call.name for call in reply.calls]) == ("Hello", ["f"])
    came = outcome([both("Hel", {}), both("lo", {"content": None}, "stop")])
    assert isinstance(came, str) and parse_reply.reply(came, 100).text == "Hello"


def test_a_byte_order_mark_before_a_stream_is_skipped() -> None:
    """A byte order mark before the first event is skipped."""
    came = outcome([b"\xef\xbb\xbf" + HELLO[0], *HELLO[1:], DONE])
    assert isinstance(came, str) and parse_reply.reply(came, 100).text == "Hello"


def called(*deltas: Any) -> list[tuple[str, str]]:
    came = outcome([*(chunk({"tool_calls": delta}) for delta in deltas), chunk({}, "tool_calls")])
    assert isinstance(came, str)
    return [(call.name, call.arguments) for call in parse_reply.reply(came, 100).calls]


def test_calls_are_kept_apart_for_any_numbering() -> None:
    """Calls are told apart by index, by id, or by position; a repeated name is one call; arguments may be an object."""

    def part(index: int | None, call_id: str | None = None, **function: Any) -> dict[str, Any]:
        return {"index": index, "id": call_id, "function": function}

    two = [("f", "{}"), ("g", '{"a": 1}')]
    assert called([part(0, "x", name="f", arguments="{}")], [part(1, "y", name="g", arguments='{"a"')],
                  [part(1, arguments=": 1}")]) == two  # fmt: skip
    assert called([part(None, "x", name="f", arguments="{}"), part(None, "y", name="g", arguments='{"a": 1}')]) == two
    assert called([part(0, "x", name="f", arguments="{}")], [part(0, "y", name="g", arguments='{"a": 1}')]) == two
    assert called([part(0, "x", name="f", arguments="{")], [part(0, "x", name="f", arguments="}")]) == [("f", "{}")]
    assert called([part(0, "x", name="g", arguments={"a": 1})]) == [("g", '{"a": 1}')]
    for index in (0, None):
        assert (
            called([part(index, "", name="f", arguments="{}"), part(index, "", name="g", arguments='{"a": 1}')]) == two
        )
        assert called([part(index, name="f", arguments="{}"), part(index, name="f", arguments="{}")]) == [two[0]] * 2
        assert called([part(index, name="g")], [part(index, name="g", arguments='{"a"')],
                      [part(index, name="g", arguments=": 1}")], [part(index, name="g")]) == two[1:]  # fmt: skip
    assert called([part(0, 5, name="f", arguments="{}")], [part(0, 6, name="g", arguments='{"a": 1}')]) == two  # type: ignore[arg-type]
    legacy = [chunk({"function_call": {"name": "f", "arguments": ""}}), chunk({"function_call": {"arguments": "{}"}}),
              chunk({}, "function_call")]  # fmt: skip
    came = outcome(legacy)
    assert isinstance(came, str) and [call.name for call in parse_reply.reply(came, 100).calls] == ["f"]


def test_a_prompt_request_goes_to_the_completions_path() -> None:
    """A body that begins with its prompt is sent to /completions, whose chunks hold `text`; others go to
    /chat/completions.
    """
    texts = [event({"object": "text_completion", "choices": [{"index": 0, "text": text, "finish_reason": reason}]})
             for text, reason in (("Gr", None), ("üß", None), ("", "stop"))]  # fmt: skip

    async def main() -> None:
        async with serving(streaming(*texts, DONE)) as wire:
            model = ChatEndpoint("m", wire.url)
            heard: list[ReplyDelta] = []
            answer = await model.ask(b'{"prompt":"Say","stream":true}', on_delta=heard.append)
            await model.ask(b'{"model":"m","messages":[]}')
            await model.close()
        assert wire.paths == ["/v1/completions", "/v1/chat/completions"]
        (choice,) = json.loads(answer.raw)["choices"]
        assert choice == {"index": 0, "finish_reason": "stop", "text": "Grüß"} and said(heard)[0] == "Grüß"

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json", "text/plain"])
def test_the_body_decides_and_not_its_content_type(kind: str) -> None:
    """The body decides, not its content type: an unstreamed reply or an unexpected type is read."""

    async def main() -> None:
        dialect = DIALECTS[0]
        async with serving(streaming(dialect.whole.encode(), kind=kind), streaming(*dialect.events, kind=kind)) as wire:
            model = ChatEndpoint("m", wire.url)
            for _ in range(2):
                assert read((await model.ask(BODY, on_delta=lambda _: None)).raw) == read(dialect.whole)
            await model.close()

    asyncio.run(main())


@pytest.mark.parametrize(("events", "kind"), [
    ([], "timeout"), (DIALECTS[0].events[:5], "timeout"), (DIALECTS[0].events[:-2], "")])  # fmt: skip
def test_silence_of_a_server_is_a_timeout(events: list[bytes], kind: str) -> None:
    """Silence beyond the limit is `timeout`, with the received part; after a complete reply it is no error."""

    async def main() -> None:
        async with serving(streaming(*events, then="hang")) as wire:
            model = ChatEndpoint("m", wire.url, limits=CallLimits(silence_s=0.1))
            came = await asked(model, wire.url, [])
            await wire.until(left=1)
            await model.close()
        assert (came.kind if isinstance(came, ModelError) else "") == kind
        if events and isinstance(came, ModelError):
            assert isinstance(came, BadReply) and "Grü" in came.raw

    asyncio.run(main())


def test_an_endless_reply_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply beyond the limit of bytes is `garbage`."""
    monkeypatch.setattr("everlog.actors.models.response_body.REPLY_BYTES_MAX", 1000)
    came = outcome([chunk({"content": "word " * 50})] * 10)
    assert isinstance(came, BadReply) and came.kind == "garbage" and "1,000" in str(came)


@pytest.mark.parametrize("body", [
    b"data: {]\n\n", b"data: [1]\n\n", b"data: \xff\xfe{}\n\n", b"hello\n\n", b'data: {"choices": {"a": 1}}\n\n',
    b"data: " + b"[" * 100_000 + b"\n\n",
])  # fmt: skip
def test_a_stream_of_garbage_is_garbage(body: bytes) -> None:
    """Invalid events are `garbage`, and the received bytes are kept."""
    came = outcome([body])
    assert isinstance(came, BadReply) and came.kind == "garbage" and came.raw
