"""Refusals to clients of Letta: in the shape of Letta's errors, in words, and without a useless repeat."""

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import letta_client
import pytest
from letta_client import Letta

from everlog.actors.agent_ref import AgentRef
from everlog.events import Busy, ModelError
from everlog.interfaces.http.letta.table import LETTA
from tests.support.cli.command_line import Script
from tests.support.http.letta_server import client_methods, created, letta, texts

Invalid = letta_client.UnprocessableEntityError
UNKNOWN = "agent-00000000-0000-4000-8000-000000000000"


def _send(agent: str, **fields: Any) -> Callable[[Letta], Any]:
    return lambda client: client.agents.messages.create(agent, **fields)


def test_errors_have_the_classes_and_the_shape_that_the_client_knows(tmp_path: Path) -> None:
    """A request that is refused raises the class of error that the client has for it, once and without a repeat; the
    body has a sentence as `detail`.
    """

    def work(client: Letta) -> None:
        agent = created(client)
        user = {"role": "user", "content": "x"}
        picture = {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}
        refused: list[tuple[type[Exception], Callable[[Letta], Any], str]] = [
            (letta_client.NotFoundError, _send(UNKNOWN, input="x"), "There is no agent"),
            (letta_client.NotFoundError, _send("sam", input="x"), "There is no agent"),
            (Invalid, _send(agent, messages=[]), "empty"),
            (Invalid, _send(agent, input=""), "no words"),
            (Invalid, _send(agent, input="x", messages=[user]), "not both"),
            (letta_client.BadRequestError, _send(agent, input=[picture]), "do not see pictures"),
            (Invalid, _send(agent, input="x", stream_tokens=True), "streaming: true"),
            (Invalid, _send(agent, input="x", background=True), "streaming: true"),
            (Invalid, _send(agent, input="x", client_tools=[{"name": "f"}]), "client_tools"),
            (Invalid, _send(agent, input="x", override_model="a/b"), "override_model"),
            (Invalid, _send(agent, input="x", max_steps=1), "20 times"),
            (Invalid, _send(agent, input="x", use_assistant_message=False), "as such"),
            (Invalid, _send(agent, messages=[{"role": "assistant", "content": "x"}]), "roles"),
            (Invalid, _send(agent, messages=[{"type": "approval", "approve": True}]), "approval"),
            (Invalid, _send(agent, extra_body={"unheard": 1}, input="x"), "unheard"),
            (
                letta_client.BadRequestError,
                lambda c: c.agents.create(tool_rules=[{"type": "exit", "tool_name": "x"}]), "A tool rule has one of",
            ),
            (Invalid, lambda c: c.agents.create(agent_type="voice_convo_agent"), "agent_type"),
            (letta_client.BadRequestError, lambda c: c.agents.create(context_window_limit=5), "window"),
            (letta_client.NotFoundError, lambda c: c.agents.create(block_ids=["block-x"]), "There is no block"),
            (Invalid, lambda c: c.agents.update(agent, tool_ids=["tool-x"]), "one by one"),
            (letta_client.NotFoundError, lambda c: c.runs.retrieve("run-x"), "There is no run"),
        ]  # fmt: skip
        for kind, request, words in refused:
            with pytest.raises(kind) as caught:
                request(client)
            error: Any = caught.value
            assert words in error.body["detail"], error.body
            assert error.response.request.headers["x-stainless-retry-count"] == "0"
            assert error.response.headers["x-should-retry"] == "false"

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())


def test_a_model_that_fails_is_an_error_of_the_answer_and_of_the_stream(tmp_path: Path) -> None:
    """A failure of the model is an error without a repeat; in a stream it comes after the reason of the end."""

    def work(client: Letta) -> None:
        agent = created(client)
        with pytest.raises(letta_client.InternalServerError, match="It broke"):
            client.agents.messages.create(agent, input="x")
        kinds = []
        with pytest.raises(letta_client.APIError, match="It broke"):
            for event in client.agents.messages.create(agent, input="y", streaming=True):
                kinds.append((event.message_type, getattr(event, "stop_reason", None)))
        assert kinds[-1] == ("stop_reason", "llm_api_error")
        run = client.runs.list(agent_id=agent).items[0]
        assert (run.status, run.stop_reason) == ("failed", "llm_api_error")
        step = next(iter(client.runs.steps.list(run.id)))
        assert (step.status, step.error_type) == ("failed", "key")

    async def main() -> None:
        broken = ModelError("It broke.", kind="key")
        async with letta(tmp_path, Script([broken, broken])) as server:
            await server.run(work)

    asyncio.run(main())


def _arguments(method: Callable[..., Any]) -> dict[str, Any]:
    """Return an argument for each that a method must have."""
    needed = [p for p in inspect.signature(method).parameters.values() if p.default is inspect.Parameter.empty]
    return {p.name: [] if "messages" in p.name or "passages" in p.name else "x" for p in needed}


CALLS = {"access_tokens.create": {"policy": [], "hostname": "x"}, "environments.send_message": {"messages": []},
         "mcp_servers.create": {"config": {}, "server_name": "x"}, "folders.files.upload": {"file": b"x"},
         "agents.import_file": {"file": b"x"}, "agents.schedule.create": {"schedule": {}, "messages": []},
         "mcp_servers.update": {"config": {}}, "templates.create": {"agent_id": "x", "type": "agent"}}  # fmt: skip


def test_every_method_of_the_client_is_served_or_refused_in_words(tmp_path: Path) -> None:
    """Each method of the client gets an answer of its own: nothing is unknown but what is refused with 501 or 403 and
    a sentence, and no request meets a bug or a method that is not allowed.
    """

    def work(client: Letta) -> None:
        met: dict[int, set[str]] = {}

        def noted(response: httpx.Response) -> None:
            response.read()
            if response.status_code >= 400:
                assert len(response.json()["detail"].split()) > 4, response.text
            met.setdefault(response.status_code, set()).add(name)

        client._client.event_hooks["response"].append(noted)
        count = 0
        for name, method in client_methods(client):
            count += 1
            try:
                answer = method(**{**_arguments(method), **CALLS.get(name, {})})
                if hasattr(answer, "response"):
                    answer.response.read()
            except letta_client.APIStatusError:
                pass
        assert count > 120
        assert set(met) <= {200, 400, 403, 404, 422, 501}, met
        assert {"templates.create", "mcp_servers.list", "archives.create", "agents.schedule.list", "environments.list",
                "agents.identities.attach", "runs.trace.retrieve", "steps.feedback.create"} <= met[501]  # fmt: skip
        assert met[403] == {"tools.create", "tools.upsert", "tools.update", "tools.delete"}
        assert not met[501] & {"agents.create", "agents.messages.create", "runs.list", "agents.blocks.list"}

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())


def test_an_address_that_is_not_served_is_refused_in_words_in_both_forms(tmp_path: Path) -> None:
    """Any other address below the prefix answers 501 with a sentence, with and without a `/` at its end."""

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            for path in ("/v1/identities/", "/v1/groups", "/v1/jobs/x", "/v1/sources/", "/v2/agents", ""):
                for end in ("", "/"):
                    answer = await server.server.client.get(f"/letta{path.rstrip('/')}{end}")
                    assert answer.status_code == 501
                    assert "does not serve" in answer.json()["detail"]

    asyncio.run(main())


def test_keys_open_only_what_is_theirs(tmp_path: Path) -> None:
    """With keys, the client's API key is needed; another tenant's key finds nothing of a tenant under any route, and a
    key that may only read changes nothing.
    """

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            keys = {
                name: server.server.key(role, tenant)["Authorization"].removeprefix("Bearer ")
                for name, role, tenant in (
                    ("owner", "admin", "acme"), ("other", "admin", "beta"), ("reader", "read", "acme"),
                )
            }  # fmt: skip

            def prepared(client: Letta) -> dict[str, str]:
                agent = created(client)
                answer = client.agents.messages.create(agent, input="x")
                block = client.blocks.create(label="crew", value="x")
                folder = client.folders.create(name="ship")
                text = client.agents.passages.create(agent, text="x")[0]
                return {
                    "agent_id": agent, "run_id": answer.usage.run_ids[0], "message_id": answer.messages[0].id,
                    "step_id": answer.messages[0].step_id or "", "block_id": block.id, "folder_id": folder.id,
                    "file_id": "file-x", "memory_id": text.id or "", "tool_id": "tool-x", "label": "human",
                    "conversation_id": client.conversations.create(agent_id=agent).id, "tool_name": "x",
                }  # fmt: skip

            values = await server.run(prepared, api_key=keys["owner"])
            assert await server.run(lambda c: c.agents.list().items[0].name, api_key=keys["owner"]) == "sam"
            for name, found in (("other", 0), ("reader", 1)):
                counted = await server.run(
                    lambda c: (len(list(c.agents.list())), len(list(c.runs.list())), len(list(c.blocks.list())),
                               len(c.passages.search(query="x")), len(list(c.folders.list()))), api_key=keys[name],
                )  # fmt: skip
                assert counted == (found,) * 5
            with pytest.raises(letta_client.AuthenticationError, match="A key is needed"):
                await server.run(lambda client: list(client.agents.list()))
            with pytest.raises(letta_client.PermissionDeniedError, match="has the role 'read'"):
                await server.run(
                    lambda c: c.agents.messages.create(values["agent_id"], input="x"), api_key=keys["reader"]
                )
            for route in LETTA:
                if "{" in route.path and not route.path.endswith("/") and route.body_media == "application/json":
                    answer = await server.server.client.request(
                        route.method, f"{route.path.format(**values)}?query=x",
                        headers={"Authorization": f"Bearer {keys['other']}", "Content-Type": "application/json"},
                        content=_least(route.path),
                    )  # fmt: skip
                    assert answer.status_code in {403, 404, 501}, (route.method, route.path, answer.text)

    asyncio.run(main())


def _least(path: str) -> bytes:
    """Return a body that is accepted at a path."""
    if path.endswith(("/messages", "/stream", "/async")) and "runs" not in path:
        return b'{"input": "x"}'
    return b'{"text": "x"}' if path.endswith("/archival-memory") else b"{}"


def test_what_is_too_long_or_beyond_a_budget_is_refused_without_a_repeat(tmp_path: Path) -> None:
    """A request that is too large, and a message for which the agent's budget has nothing left, are refused once, in
    words; a stream of such a message ends with the reason.
    """

    def refused(client: Letta, agent: str) -> None:
        with pytest.raises(letta_client.APIStatusError) as caught:
            client.agents.messages.create(agent, input="x" * 2_000_000)
        assert (caught.value.status_code, "larger than" in caught.value.body["detail"]) == (413, True)
        with pytest.raises(letta_client.APIStatusError) as caught:
            client.agents.messages.create(agent, input="Hello")
        assert caught.value.status_code == 402
        assert caught.value.response.headers["x-should-retry"] == "false"
        reasons = []
        with pytest.raises(letta_client.APIError):
            for event in client.agents.messages.create(agent, input="Again", streaming=True):
                reasons.append(getattr(event, "stop_reason", None))
        assert reasons[-1] == "insufficient_credits"

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            agent = await server.run(created)
            await server.run(lambda client: client.agents.messages.create(agent, input="Spend"))
            settings = {"settings": {"day_tokens_max": 1}}
            await server.server.call("PATCH", "/agents/sam", settings, status=200)
            await server.run(lambda client: refused(client, agent))

    asyncio.run(main())


def test_a_busy_agent_is_asked_again_by_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing of a message was kept because a queue is full, the answer says when to come back: the client repeats
    the request by itself, and the message is sent once.
    """
    real, tries = AgentRef.send, []

    def send(self: AgentRef, *said: Any, **how: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise Busy("The queue is full.", retry_after_s=0.01)
        return real(self, *said, **how)

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            agent = await server.run(created)
            monkeypatch.setattr(AgentRef, "send", send)
            statuses: list[tuple[int, str]] = []

            def work(client: Letta) -> list[str]:
                client._client.event_hooks["response"].append(
                    lambda answer: statuses.append((answer.status_code, answer.headers.get("x-should-retry", "")))
                )
                return texts(client.agents.messages.create(agent, input="Hello").messages)

            assert await server.run(work) == ["Indeed."]
            assert statuses == [(429, "true"), (200, "")]

    asyncio.run(main())
