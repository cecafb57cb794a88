"""The main job of a program that uses Letta's published client: an agent, its answers, streams, tools and runs."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import letta_client
import pytest
from letta_client import Letta

from tests.support.cli.command_line import Script, completion, says
from tests.support.http.letta_server import Gated, Halting, Speaker, created, kinds, letta, texts

PIN = completion(("archival_memory_insert", {"content": "A pin", "request_heartbeat": True}), thought="Keep it.")
USER = [{"role": "user", "content": "Hello"}]


def test_an_agent_is_created_and_answers(tmp_path: Path) -> None:
    """An agent has exactly the blocks, the model and the settings that the client asked for, and answers a message
    with its thought, its words, the reason of the end, and the tokens.
    """

    def work(client: Letta) -> None:
        blocks = [{"label": "human", "value": "Chad sails."}, {"label": "plan", "value": "", "limit": 99}]
        agent = client.agents.create(
            name="sam", memory_blocks=blocks, model="openai/script", embedding="openai/any", timezone="Europe/Oslo",
            context_window_limit=9000, tags=["crew"], description="A mate", metadata={"ship": 1},
            model_settings={"temperature": 0.5, "provider_type": "openai"},
        )  # fmt: skip
        assert agent.name == "sam"
        assert [(block.label, block.value, block.limit) for block in agent.blocks][1] == ("plan", "", 99)
        assert [block.label for block in agent.memory.blocks] == ["human", "plan"]
        assert (agent.model, agent.llm_config.context_window, agent.timezone) == ("script", 9000, "Europe/Oslo")
        assert (agent.tags, agent.description, agent.metadata) == (["crew"], "A mate", {"ship": 1})
        assert agent.agent_type == "memgpt_agent"
        answer = client.agents.messages.create(agent.id, input="Hello")
        assert kinds(answer.messages) == ["reasoning_message", "assistant_message"]
        assert (answer.messages[0].reasoning, answer.messages[1].content) == ("I think.", "Ahoy")
        assert answer.messages[0].id == answer.messages[1].id
        assert answer.messages[0].otid != answer.messages[1].otid
        assert answer.stop_reason.stop_reason == "end_turn"
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.step_count) == (1000, 20, 1)
        again = client.agents.retrieve(agent.id)
        assert again.id == agent.id
        assert answer.messages[0].id in (again.message_ids or [])
        assert [one.id for one in client.agents.list(tags=["crew"])] == [agent.id]
        assert list(client.agents.list(tags=["other"])) == []
        assert client.tags.list() == ["crew"]

    async def main() -> None:
        async with letta(tmp_path, Script([says("Ahoy")])) as server:
            await server.run(work)

    asyncio.run(main())


def test_a_name_that_is_taken_gets_a_number_and_a_deleted_one_is_free(tmp_path: Path) -> None:
    """Several agents may be created with one name: the answer says the name that each has. A deleted name is free."""

    def work(client: Letta) -> None:
        first = client.agents.create(name="sam")
        second = client.agents.create(name="sam")
        assert (first.name, second.name) == ("sam", "sam-2")
        assert [agent.name for agent in client.agents.list(order="asc")] == ["sam", "sam-2"]
        client.agents.delete(first.id)
        with pytest.raises(letta_client.NotFoundError):
            client.agents.messages.create(first.id, input="Hello")
        assert client.agents.create(name="sam").name == "sam"
        changed = client.agents.update(second.id, name="tim", system="You sail.", tags=["x"])
        assert (changed.id, changed.name, changed.system, changed.tags) == (second.id, "tim", "You sail.", ["x"])
        assert client.agents.create().name.startswith("agent-")

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())


def test_a_stream_has_the_words_as_they_are_written(tmp_path: Path) -> None:
    """With tokens, a thought and a message come in several pieces that share the id and the otid that the whole
    message has in the list; then come the reason of the end and the tokens.
    """

    def work(client: Letta, go_on: Callable[[], object]) -> None:
        agent = created(client)
        stream = client.agents.messages.create(agent, messages=USER, streaming=True, stream_tokens=True)
        events = []
        for event in stream:
            events.append(event)
            if event.message_type == "assistant_message":
                go_on()
        assert kinds(events)[0] == "ping"
        assert kinds(events)[-2:] == ["stop_reason", "usage_statistics"]
        pieces = [event for event in events if event.message_type == "assistant_message"]
        thoughts = [event for event in events if event.message_type == "reasoning_message"]
        assert len(pieces) > 1
        assert "".join(piece.content for piece in pieces) == "Ahoy, what a fine day"
        assert "".join(thought.reasoning for thought in thoughts) == "I think of the sea."
        whole = {one.otid: one for one in client.agents.messages.list(agent, limit=1).items}
        assert whole[pieces[0].otid].content == "Ahoy, what a fine day"
        assert {(piece.id, piece.otid) for piece in pieces} == {(whole[pieces[0].otid].id, pieces[0].otid)}
        assert {one.otid for one in thoughts} <= set(whole)
        steps = client.agents.messages.stream(agent, messages=USER, include_pings=False)
        assert kinds(steps) == ["reasoning_message", "assistant_message", "stop_reason", "usage_statistics"]

    async def main() -> None:
        model, loop = Halting([says("Ahoy, what a fine day", "I think of the sea.")]), asyncio.get_running_loop()
        async with letta(tmp_path, model) as server:
            await server.run(lambda client: work(client, lambda: loop.call_soon_threadsafe(model.go.set)))

    asyncio.run(main())


def test_calls_of_functions_and_their_results_are_told(tmp_path: Path) -> None:
    """A function that the agent calls comes as a call and a result, with the ids of the call and of its step."""

    def work(client: Letta) -> None:
        agent = created(client)
        answer = client.agents.messages.create(agent, messages=USER)
        assert kinds(answer.messages) == [
            "reasoning_message", "tool_call_message", "tool_return_message", "reasoning_message", "assistant_message",
        ]  # fmt: skip
        called, returned = answer.messages[1], answer.messages[2]
        assert called.tool_call.name == "archival_memory_insert"
        assert called.tool_call.tool_call_id == returned.tool_call_id
        assert (returned.status, called.step_id) == ("success", returned.step_id)
        only = client.agents.messages.create(agent, messages=USER, include_return_message_types=["assistant_message"])
        assert kinds(only.messages) == ["assistant_message"]
        run = client.runs.retrieve(answer.usage.run_ids[0])
        assert (run.status, run.stop_reason, run.agent_id) == ("completed", "end_turn", agent)
        steps = list(client.runs.steps.list(run.id, order="asc"))
        assert [step.status for step in steps] == ["success", "success"]
        assert client.steps.retrieve(steps[1].id) == steps[1]
        assert client.runs.usage.retrieve(run.id).prompt_tokens == 2000
        listed = list(client.runs.messages.list(run.id, order="asc"))
        assert kinds(listed)[0] == "user_message"
        assert [one.otid for one in listed if one.message_type not in ("user_message", "system_message")] == [
            one.otid for one in answer.messages
        ]
        assert client.runs.list(agent_id=agent).items[-1].id == run.id
        assert list(client.runs.list(agent_id=agent, active=True)) == []

    async def main() -> None:
        async with letta(tmp_path, Script([PIN])) as server:
            await server.run(work)

    asyncio.run(main())


def test_the_asynchronous_client_does_the_same(tmp_path: Path) -> None:
    """The client for asyncio creates an agent, gets an answer and a stream, and lists the messages."""

    async def main() -> None:
        async with letta(tmp_path, Speaker([says("Ahoy"), says("Fine")])) as server, server.client() as client:
            agent = await client.agents.create(name="sam", model="openai/script")
            answer = await client.agents.messages.create(agent.id, input="Hello")
            assert texts(answer.messages) == ["Ahoy"]
            stream = await client.agents.messages.create(
                agent.id, input="How are you?", streaming=True, stream_tokens=True
            )
            assert "".join(texts([event async for event in stream])) == "Fine"
            said = [one async for one in client.agents.messages.list(agent.id, order="asc", limit=3)]
            assert texts(said)[-2:] == ["Ahoy", "Fine"]

    asyncio.run(main())


def test_a_message_in_the_background_is_a_run_that_can_be_streamed_and_cancelled(tmp_path: Path) -> None:
    """A message that is sent in the background is a run at once. Its stream can be read later, by any reader, and a
    run that works is cancelled by a call; cancelling nothing is a conflict.
    """

    def begun(client: Letta) -> tuple[str, str]:
        agent = created(client)
        run = client.agents.messages.create_async(agent, messages=USER)
        assert (run.status, run.background, run.agent_id) == ("running", True, agent)
        assert client.runs.retrieve(run.id).status == "running"
        assert [one.id for one in client.runs.list(agent_id=agent, active=True)] == [run.id]
        return agent, run.id

    def ended(client: Letta, run: str) -> None:
        events: list[Any] = list(client.runs.messages.stream(run))
        assert "".join(texts(letta_messages(events))) == "Ahoy"
        assert client.runs.retrieve(run).status == "completed"
        assert "".join(texts(letta_messages(list(client.runs.messages.stream(run))))) == "Ahoy"

    def cancelled(client: Letta, agent: str) -> None:
        run = client.agents.messages.create_async(agent, messages=USER)
        assert client.agents.messages.cancel(agent) == {run.id: "cancelled"}
        shown = client.runs.retrieve(run.id)
        assert (shown.status, shown.stop_reason) == ("cancelled", "cancelled")
        with pytest.raises(letta_client.ConflictError):
            client.agents.messages.cancel(agent)
        assert client.agents.messages.cancel(agent, run_ids=[run.id]) == {run.id: "failed"}

    async def main() -> None:
        model = Gated([says("Ahoy")])
        async with letta(tmp_path, model) as server:
            agent, run = await server.run(begun)
            model.go.set()
            await server.run(lambda client: ended(client, run))
            model.go.clear()
            await server.run(lambda client: cancelled(client, agent))

    asyncio.run(main())


def letta_messages(events: list[Any]) -> list[Any]:
    """Return events that the client gives as plain values, as messages."""
    return [SimpleNamespace(**event) if isinstance(event, dict) else event for event in events]


def test_instructions_and_several_messages_are_one_input(tmp_path: Path) -> None:
    """Several messages of a user are one, with an empty line between them; messages of the role system go with it as
    instructions, and alone they are an alert.
    """

    async def main() -> None:
        model = Script([])
        async with letta(tmp_path, model) as server:

            def work(client: Letta) -> str:
                agent = created(client)
                said = [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "One", "name": "Chad"},
                    {"role": "user", "content": [{"type": "text", "text": "Two"}]},
                ]
                client.agents.messages.create(agent, messages=said)
                client.agents.messages.create(agent, messages=[{"role": "system", "content": "A storm comes."}])
                return agent

            agent = await server.run(work)
            assert b"One\\\\n\\\\nTwo" in model.asked[0]
            assert b"Be brief." in model.asked[0]
            assert b"system_alert" in model.asked[1]
            said = await server.run(lambda client: list(client.agents.messages.list(agent, order="asc")))
            user = next(one for one in said if one.message_type == "user_message")
            assert (user.content, user.name) == ("One\n\nTwo", "Chad")
            assert "A storm comes." in [one.content for one in said if one.message_type == "system_message"]

    asyncio.run(main())
