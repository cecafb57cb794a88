"""Agents ask agents of another program, which the published A2A SDK serves."""

import asyncio
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from everlog.events import A2aError, BadInput, FunctionResult, FunctionStarted, event_of

pytest.importorskip("a2a", reason="the extra a2a is not installed")

from a2a.server.routes import create_agent_card_routes
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from everlog.actors.a2a import remote_functions, sdk_calls
from everlog.actors.a2a.remote_agents import RemoteAgent, add_agent, parse_agents, remote_agents, remove_agent
from everlog.actors.a2a.remote_functions import a2a_tools, ask_remote
from tests.support.a2a.sdk_server import Clerk, card_of, raw_app, sdk_server, served_app
from tests.support.agent_world import World, completion, say
from tests.support.agents.cut_logs import commits_of, cut, finish


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


@pytest.fixture
def address(clerk: Clerk) -> Iterator[str]:
    with sdk_server(clerk) as address:
        yield address


def entry(address: str, **more: Any) -> RemoteAgent:
    return RemoteAgent(card=address, **{"approval": False, **more})


def asked(agent: RemoteAgent, message: str, key: str = "k-1", **more: str) -> Any:
    return ask_remote("clerk", agent, message, idempotency_key=key, **more)


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_a_question_is_answered_and_continued(binding: str) -> None:
    """A message gets the answer of the remote agent's task, by both bindings; a task that needs something is given it
    by its id, and the id of a message is made
    of the key of its call, and names no agent.
    """
    clerk = Clerk()
    with sdk_server(clerk, binding=binding) as address:
        agent = entry(address)
        assert "Done: Print it" in asked(agent, "Print it")
        assert asked(agent, "chat", "k-2") == "Hello\n(To continue: context 'c-1'.)"
        waits = asked(agent, "ask me", "k-3")
        assert "Which colour?" in waits
        assert "needs an answer" in waits
        context, task = waits.split("context '")[1].split("'")[0], waits.split("task '")[1].split("'")[0]
        assert "Done: Red" in asked(agent, "Red", "k-4", context=context, task=task)
        assert "Done: Red" in asked(agent, "", "k-5", task=task)
        failed = asked(agent, "fail", "k-6")
        assert isinstance(failed, FunctionResult)
        assert (failed.ok, failed.unknown) == (False, False)
        assert "The press is broken." in failed.text
    sent = [sha256(key.encode()).hexdigest() for key in ("k-1", "k-2", "k-3", "k-4", "k-6")]
    assert [one for one, _ in clerk.heard] == sent


def is_result(event: Any) -> bool:
    return isinstance(event, FunctionResult) and event.name == "ask_clerk"


@pytest.mark.parametrize("repeats", [False, True])
def test_a_question_survives_a_crash_after_any_commit(clerk: Clerk, address: str, *, repeats: bool) -> None:
    """Cut the log after each commit: a question that was begun and has no result is unknown, and not sent again; if the
    remote agent takes a message once, it is sent again under the same id. The turn ends in every case.
    """
    tools = [remote_functions._function("clerk", entry(address, repeats=repeats))]
    call = ("ask_clerk", {"message": "Print it", "request_heartbeat": True})
    whole = World(completion(calls=[call]), say("Printed."), tools=tools)
    asyncio.run(whole.tell("A poster, please"))
    ((first, _),) = clerk.heard
    seen = set()
    for number in [number for number, commit in commits_of(whole.log()) if commit[0].turn]:
        clerk.heard.clear()
        world = cut(whole, number)
        before = [event_of(record) for record in world.log()]
        begun = any(isinstance(event, FunctionStarted) for event in before)
        ended = any(map(is_result, before))
        called = any(record.type == "model_reply" and "ask_clerk" in record.payload for record in world.log())
        finish(world)
        if not called:
            continue
        (result,) = [event for event in map(event_of, world.log()) if is_result(event)]
        again = not ended and (repeats or not begun)
        assert (len(clerk.heard), result.unknown) == (int(again), begun and not ended and not repeats), number
        assert [one for one, _ in clerk.heard if one != first] == []
        seen.add((begun, ended))
    assert (True, False) in seen


async def _hang(_: Request) -> Response:
    await asyncio.sleep(60)
    return Response()


def _big(_: Request) -> Response:
    return Response(b'"' + b"x" * 10_000_000 + b'"', media_type="application/json")


def _broken(_: Request) -> Response:
    return JSONResponse({"error": "no"}, 500)


def _answers(value: object) -> Any:
    def answer(_: Request) -> Response:
        return JSONResponse(value)

    return answer


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (_answers({"hello": 1}), "no name, or no interface"),
        (_answers([1, 2]), "is no card of an agent"),
        (lambda _: Response(b"<html>"), "is no card of an agent"),
        (lambda _: Response(status_code=404), "answers with the status 404"),
        (lambda _: RedirectResponse("http://10.0.0.1/card.json"), "leads to 'http://10.0.0.1/card.json'"),
        (_big, "is larger than"),
        (_answers({"name": "a", "url": "http://x/rpc", "protocolVersion": "0.3.0", "skills": []}), "version 1 of A2A"),
    ],
)  # fmt: skip
def test_a_card_that_cannot_be_used_is_refused(card: Any, words: str) -> None:
    """Something that is no card, another version, a redirect or too large is an error that says what was found, and
    nothing is sent; the same for a call.
    """
    with served_app(raw_app([("/.well-known/agent-card.json", card)])) as address:
        with pytest.raises(A2aError, match="Nothing was sent") as told:
            asyncio.run(sdk_calls.read_card("clerk", entry(address), {}))
        assert words in str(told.value)
        failed = asked(entry(address), "Hi")
        assert (failed.ok, failed.unknown, words in failed.text) == (False, False, True)


def test_a_card_leads_nowhere_else(clerk: Clerk, address: str) -> None:
    """A card of one place cannot have messages sent to another one, nor the token."""
    elsewhere = raw_app([])
    elsewhere.routes.extend(create_agent_card_routes(card_of(address)))
    with served_app(elsewhere) as other:
        failed = asked(entry(other), "Hi")
    assert "which is another place" in failed.text
    assert clerk.heard == []


@pytest.mark.parametrize(
    ("answer", "words", "unknown"),
    [
        (_hang, "no answer within 0.3 seconds", True),
        (_big, "is larger than", True),
        (_broken, "answers with the status 500", True),
        (lambda _: RedirectResponse("http://10.0.0.1/"), "answers with the status 307", False),
        (lambda _: Response(status_code=401), "answers with the status 401", False),
        (_answers([]), "cannot be read", True),
        (_answers({"jsonrpc": "2.0", "id": 1, "result": {}}), "cannot be read", True),
        (_answers({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "No task"}}), "No task", False),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_used_is_an_error(answer: Any, words: str, *, unknown: bool) -> None:
    """A remote agent that hangs, floods, redirects or answers nonsense is a failed call that says so; it is unknown
    only where the message may have been taken.
    """
    app = raw_app([("/rpc", answer)])
    with served_app(app) as address:
        app.routes.extend(create_agent_card_routes(card_of(address)))
        failed = asked(entry(address, call_s=0.3 if answer is _hang else 20), "Hi")
    assert (failed.ok, failed.unknown) == (False, unknown), failed.text
    assert words in failed.text


def test_a_secret_is_in_no_log_and_its_variable_is_needed(
    clerk: Clerk, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token comes from the variable that the entry names; without it nothing is sent, and no record has it."""
    agent = entry(address, token="CLERK_KEY")
    assert "CLERK_KEY is not set" in asked(agent, "Hi").text
    monkeypatch.setenv("CLERK_KEY", "hush-hush")
    call = ("ask_clerk", {"message": "Print it"})
    world = World(completion(calls=[call]), say("Done."), tools=[remote_functions._function("clerk", agent)])
    asyncio.run(world.tell("Hi"))
    assert len(clerk.heard) == 1
    assert "hush-hush" not in str(world.log())


def test_the_file_keeps_what_was_added(tmp_path: Path) -> None:
    """An agent that was added is read back, lends a function that waits for a person, and can be removed; other lines
    of the file stay.
    """
    first = RemoteAgent(card="https://a.example/x", description='Says "so"', token="A_KEY", headers={"X-Org": "ORG"})
    add_agent(tmp_path, "first", first)
    add_agent(tmp_path, "second", RemoteAgent(card="http://127.0.0.1:1", approval=False, repeats=True))
    assert remote_agents(tmp_path)["first"] == first
    one, two = a2a_tools(tmp_path, "first", "second")
    assert (one.name, one.approval, one.effect) == ("ask_first", True, "at_most_once")
    assert (two.name, two.approval, two.effect) == ("ask_second", False, "idempotent")
    with pytest.raises(BadInput, match="already"):
        add_agent(tmp_path, "first", first)
    remove_agent(tmp_path, "first")
    assert list(remote_agents(tmp_path)) == ["second"]
    with pytest.raises(BadInput, match="there are second"):
        a2a_tools(tmp_path, "first")
    (tmp_path / "a2a.toml").chmod(0o666)
    with pytest.raises(BadInput, match="chmod go-w"):
        remote_agents(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[agents.x]\n", "card"),
        ("[agents.x]\ncard = 'ftp://a'\n", "agents.x.card: an address"),
        ("[agents.x]\ncard = 'https://u:p@a.example'\n", "agents.x.card: an address"),
        ("[agents.x]\ncard = 'http://a.example'\ntoken = 'KEY'\n", "https was expected"),
        ("[agents.x]\ncard = 'https://a.example'\ntoken = 'evl_not a name'\n", "environment variable"),
        ("[agents.x]\ncard = 'https://a.example'\ncall_s = 0\n", "call_s"),
        ("[agents.'a b']\ncard = 'https://a.example'\n", "letters, digits"),
        ("[agents.x]\ncard = 'https://a.example'\nhost = 'b'\n", "unknown field `host`"),
        ("[servers.x]\n", "tables [agents.NAME]"),
        ("agents = 3", "object"),
        ("[agents", "is no TOML"),
    ],
)  # fmt: skip
def test_a_file_with_a_fault_names_it(text: str, words: str) -> None:
    """Each fault of the file is an error with the field, and nothing of the file is used."""
    with pytest.raises(BadInput) as told:
        parse_agents(text, "a2a.toml")
    assert words in str(told.value), str(told.value)
