"""The real client against a real server on this machine: sent bytes equal hashed bytes, and every failure has a plain
error.
"""

import asyncio
import hashlib
import json

import pytest

from everlog.actors.models.openai_client import ChatEndpoint
from everlog.actors.replay.rebuild_check import verify
from everlog.events import ModelError, ModelFailed, ModelReply, event_of
from tests.support.agent_world import World, completion, kinds, say
from tests.support.models.loopback_server import Loopback, serving

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def world_of(server: Loopback, world: World | None = None) -> World:
    """Return a world whose model is the server."""
    world = world or World()
    world.system._models = lambda name: ChatEndpoint(name, server.url)
    return world


def everything(world: World) -> str:
    """Return everything that the log holds, as text."""
    return "".join(f"{record.text}{record.payload}" for record in world.log())


def test_the_bytes_that_the_server_receives_are_the_bytes_that_were_hashed() -> None:
    """context_sha256 and context_bytes are those of the HTTP body, which is canonical JSON with tools; verify
    agrees.
    """
    with serving((200, say("Hello."))) as server:
        world = world_of(server)
        asyncio.run(world.tell("one", "two"))
        replies = [event_of(r) for r in world.log() if r.type == "model_reply" and r.turn]
        assert [(r.context_sha256, r.context_bytes) for r in replies if isinstance(r, ModelReply)] == [
            (hashlib.sha256(body).hexdigest(), len(body)) for body in server.bodies
        ]
    request = json.loads(server.bodies[0])
    assert list(request) == ["model", "messages", "tools", "tool_choice"]
    assert request["tools"][0]["function"]["name"] == "send_message"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["content-type"] == "application/json"
    assert not verify(world.system.view("sam"), world.system.tools).faults


FAILURES = [
    ((401, f'{{"error":{{"message":"Incorrect API key: {KEY}"}}}}'), "key", "refused the key"),
    ((404, '{"error":{"message":"no such model"}}'), "missing", "Check the name of the model"),
    ((429, '{"error":{"message":"slow down"}}'), "rate_limited", "Try again later"),
    ((500, "oops"), "server", "failed with status 500"),
    ((400, '{"error":{"message":"bad tools"}}'), "rejected", "status 400"),
    ((200, "<html>hello</html>"), "garbage", "did not answer with a chat completion"),
    ((200, ""), "garbage", "did not answer with a chat completion"),
    ((200, '{"choices":[]}'), "garbage", "empty list of choices"),
    ((200, f'{{"you_sent":"{KEY}"}}'), "garbage", "did not answer"),
    ((200, completion("x", finish="content_filter")), "filtered", "content_filter"),
]


@pytest.mark.parametrize(("reply", "failure", "words"), FAILURES)
def test_a_failing_endpoint_is_reported_recorded_and_survived(reply: tuple[int, str], failure: str, words: str) -> None:
    """One clear paragraph, a `model_failed` in the log without the key; the next message is answered together with the
    first.
    """
    with serving(reply) as server:
        world = world_of(server)
        with pytest.raises(ModelError, match=words) as caught:
            asyncio.run(world.tell("lost?"))
        failed = event_of(world.log()[-1])
        assert isinstance(failed, ModelFailed)
        assert failed.failure == failure
        assert "\n\n" not in str(caught.value)
        assert KEY not in str(caught.value) + everything(world)
        server.replies = [(200, say("Found."))]
        left = asyncio.run(world.tell("again"))
        assert "message_sent" in kinds(left)
        assert b"lost?" in server.bodies[-1]


def test_an_endpoint_that_is_down_is_survived() -> None:
    """Without a server the message is kept; it is answered when the server is back."""
    with serving((200, say("x"))) as gone:
        pass
    world = world_of(gone)
    with pytest.raises(ModelError, match="cannot be reached"):
        asyncio.run(world.tell("anybody?"))
    assert world.kinds()[-2:] == ["user_message", "model_failed"]
    with serving((200, say("Me."))) as back:
        left = asyncio.run(world_of(back, world).tell("and now?"))
        assert "message_sent" in kinds(left)
        assert b"anybody?" in back.bodies[0]


def test_a_request_that_the_endpoint_finds_too_long_is_made_shorter() -> None:
    """After context_length_exceeded the agent summarizes and sends the request again."""
    too_long = (400, '{"error":{"message":"maximum context length is 10","code":"context_length_exceeded"}}')
    with serving((200, say("Yes."))) as server:
        world = world_of(server)
        asyncio.run(world.tell(*[f"message {n} " + "words " * 60 for n in range(6)]))
        server.replies = [too_long, (200, completion("We talked.")), (200, say("Better."))]
        left = asyncio.run(world.tell("more"))
    assert kinds(left)[1:3] == ["reply_rejected", "summary"]
    assert "message_sent" in kinds(left)


@pytest.mark.parametrize("calls", [
    [{"function": {"name": "send_message", "arguments": {"message": "Hi."}}}],
    [{"id": "", "function": {"name": "send_message", "arguments": '{"message": "Hi."}'}},
     {"id": "", "function": {"name": "core_memory_append", "arguments": '{"name": "human", "content": "x"}'}}],
    [{"id": "a", "function": {"name": "core_memory_append", "arguments": '{"name": "human", "content": "x"}'}},
     {"id": "a", "function": {"name": "send_message", "arguments": '{"message": "Hi."}'}}],
])  # fmt: skip
def test_calls_as_servers_really_send_them_are_read(calls: list[dict[str, object]]) -> None:
    """Calls without ids, with the same id twice, or with arguments as an object each get their own result."""
    body = json.dumps({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "stop"}]})
    with serving((200, body), (200, say("Again."))) as server:
        world = world_of(server)
        asyncio.run(world.tell("hi", "and?"))
    rows = world.system.view("sam").rows("function_calls")
    mine = [row for row in rows if row["turn"] == 1]
    assert len({row["call_id"] for row in mine}) == len(calls)
    assert {row["outcome"] for row in mine} == {"ok"}


def test_a_legacy_function_call_is_read() -> None:
    """A reply with `function_call` instead of `tool_calls` is read."""
    legacy = {"content": None, "function_call": {"name": "send_message", "arguments": '{"message": "Old."}'}}
    with serving((200, json.dumps({"choices": [{"message": legacy, "finish_reason": "function_call"}]}))) as server:
        left = asyncio.run(world_of(server).tell("hi"))
    assert [record.text for record in left if record.type == "message_sent"] == ["Old."]
