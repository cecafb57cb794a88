"""Responses and conversations, through the published client: stored, chained, in the background, resumed anywhere."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import openai
import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.ports.effects import ModelResponse
from everlog.events import ModelError
from tests.support.agent_world import say
from tests.support.cli.command_line import Script, says
from tests.support.http.openai_client import openai_client, run, said
from tests.support.http.served_store import Served, served
from tests.support.models.streaming_model import Streamer


class HeldModel(Script):
    """A model that answers when it is released."""

    def __init__(self, answers: list[str | ModelError]) -> None:
        super().__init__(answers)
        self.release = asyncio.Event()
        self.begun = asyncio.Event()

    async def ask(self, request: bytes, **options: object) -> ModelResponse:
        self.begun.set()
        await self.release.wait()
        return await super().ask(request, **options)


def test_a_response_is_answered_stored_and_found_again(tmp_path: Path) -> None:
    """A response can be read again by its id, with its text, its tokens and what it answered."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        first = await client.responses.create(model="sam", input="Hello", instructions="Be brief.")
        now = server.service.ports.clock.now() // 1_000_000
        assert now - 60 < first.created_at <= now
        assert (first.output_text, first.status, first.model) == ("Ahoy", "completed", "sam")
        assert first.usage is not None and first.usage.total_tokens == 1020
        again = await client.responses.retrieve(first.id)
        assert again == first
        items = await client.responses.input_items.list(first.id)
        assert [part.text for item in items.data for part in item.content] == ["Hello"]
        with pytest.raises(openai.APIStatusError, match="everlog erase") as caught:
            await client.responses.delete(first.id)
        assert caught.value.status_code == 501

    run(tmp_path, Script([says("Ahoy")]), work)


def test_responses_follow_each_other_and_part_where_the_client_goes_back(tmp_path: Path) -> None:
    """A response after another continues its conversation; a second one after the same forks the agent there; the same
    request again is the same response.
    """

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        one = await client.responses.create(model="sam", input="One")
        two = await client.responses.create(model="sam", input="Two", previous_response_id=one.id)
        assert two.previous_response_id == one.id
        assert await client.responses.create(model="sam", input="Two", previous_response_id=one.id) == two
        other = await client.responses.create(model="sam", input="Three", previous_response_id=one.id)
        assert await said(server) == ["One", "Two"]
        after = await client.responses.create(model="sam", input="Four", previous_response_id=other.id)
        assert (await client.responses.retrieve(after.id)).previous_response_id == other.id
        names = [row["agent"] for row in (await server.call("GET", "/agents", status=200))["agents"]]
        branch = next(name for name in names if name != "sam")
        assert await said(server, branch) == ["One", "Three", "Four"]
        with pytest.raises(openai.NotFoundError):
            await client.responses.create(model="sam", input="Five", previous_response_id="resp_" + "0" * 48)

    run(tmp_path, Script([]), work)


def test_a_conversation_on_the_server_holds_what_was_said(tmp_path: Path) -> None:
    """A conversation takes items from elsewhere, then messages without their history, and lists all of it in pages."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        brought: Any = [
            {"type": "message", "role": "user", "content": "I have a cat"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Nice."}]},
        ]
        made = await client.conversations.create(items=brought, metadata={"topic": "cats"})
        assert made.metadata == {"topic": "cats"}
        answer = await client.responses.create(model="sam", input="Her name is Ada", conversation=made.id)
        assert answer.conversation is not None and answer.conversation.id == made.id
        await client.responses.create(model="sam", input="Who is Ada?", conversation=made.id)
        assert await said(server) == ["I have a cat", "Her name is Ada", "Who is Ada?"]
        listed: list[str] = []
        async for item in client.conversations.items.list(made.id, limit=2, order="asc"):
            listed += [part.text for part in item.content]
        assert listed == ["I have a cat", "Nice.", "Her name is Ada", "Indeed.", "Who is Ada?", "Indeed."]
        assert (await client.conversations.update(made.id, metadata={"topic": "pets"})).metadata == {"topic": "pets"}
        assert (await client.conversations.delete(made.id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.conversations.retrieve(made.id)

    run(tmp_path, Script([]), work)


def test_a_background_response_is_polled_and_cancelled(tmp_path: Path) -> None:
    """A response in the background is answered at once and read later; cancelling it twice is cancelling it once."""

    async def work(_: Served, client: openai.AsyncOpenAI) -> None:
        first = await client.responses.create(model="sam", input="Hello", background=True)
        assert first.status == "in_progress"
        await model.begun.wait()
        assert (await client.responses.cancel(first.id)).status == "cancelled"
        assert (await client.responses.cancel(first.id)).status == "cancelled"
        model.release.set()
        second = await client.responses.create(model="sam", input="Again", background=True)
        stream = await client.responses.retrieve(second.id, stream=True)
        kinds = [event.type async for event in stream]
        assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
        assert (await client.responses.retrieve(second.id)).output_text == "Ahoy"

    async def main() -> None:
        nonlocal model
        model = HeldModel([says("Ahoy")])
        async with served(tmp_path, model) as server, openai_client(server) as client:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            await work(server, client)

    model: HeldModel
    asyncio.run(main())


def test_a_stream_is_resumed_after_each_of_its_events(tmp_path: Path) -> None:
    """A reader that was cut anywhere and comes back with its last number has every event and every character once."""

    async def work(_: Served, client: openai.AsyncOpenAI) -> None:
        whole = []
        stream = await client.responses.create(model="sam", input="Hello", stream=True)
        async for event in stream:
            whole.append(event)
        numbers = [event.sequence_number for event in whole]
        assert numbers == sorted(set(numbers))
        response_id = whole[0].response.id
        assert "".join(e.delta for e in whole if e.type == "response.output_text.delta") == "Ahoy there"
        for number in range(-1, numbers[-1] + 1):
            rest = [e async for e in await client.responses.retrieve(response_id, stream=True, starting_after=number)]
            assert [e.sequence_number for e in rest] == [n for n in numbers if n > number]
            had = max(0, min(number - 3, len("Ahoy there")))
            text = "".join(e.delta for e in rest if e.type == "response.output_text.delta")
            assert text == "Ahoy there"[had:]

    run(tmp_path, Script([says("Ahoy there")]), work)


def test_a_stream_that_fails_says_so_in_its_last_event(tmp_path: Path) -> None:
    """A failing model ends a stream by `response.failed` with the reason, and a request by an error of the client."""

    async def work(_: Served, client: openai.AsyncOpenAI) -> None:
        stream = await client.responses.create(model="sam", input="Hello", stream=True)
        last = [event async for event in stream][-1]
        assert last.type == "response.failed"
        assert last.response.error is not None and "went away" in last.response.error.message
        with pytest.raises(openai.InternalServerError, match="went away"):
            await client.responses.create(model="sam", input="Bye")

    run(tmp_path, Script([ModelError("The endpoint went away.", kind="connection") for _ in range(2)]), work)


@pytest.mark.parametrize(
    ("sent", "says_so"),
    [
        ({"conversation": "conv_1", "previous_response_id": "resp_1"}, "not both"),
        ({"text": {"format": {"type": "json_object"}}}, "answers in words"),
        ({"tools": [{"type": "function", "name": "f"}]}, "functions of its own"),
        ({"input": []}, "last message must be the user's"),
        ({"input": [{"type": ["message"], "content": "Hello"}]}, "which is none"),
        ({"text": {"format": "json"}}, "not what it should be"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "text only"),
    ],
)
def test_what_a_response_cannot_be_is_refused_in_words(tmp_path: Path, sent: dict[str, Any], says_so: str) -> None:
    """A request that cannot be carried out as meant is a BadRequestError that says why, and leaves nothing."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        asked = {"model": "sam", "input": "Hello", **sent}
        with pytest.raises(openai.BadRequestError, match=says_so):
            await client.responses.create(**asked)
        assert await said(server) == []

    run(tmp_path, Script([]), work)


def test_responses_of_a_tenant_are_unknown_to_others(tmp_path: Path) -> None:
    """With another tenant's key, a response and a conversation do not exist."""

    async def main() -> None:
        async with served(tmp_path) as server:
            acme, other = (server.key("admin", tenant)["Authorization"][7:] for tenant in ("acme", "other"))
            async with openai_client(server, key=acme) as mine, openai_client(server, key=other) as theirs:
                headers = {"Authorization": f"Bearer {acme}"}
                await server.call("POST", "/agents", {"name": "sam"}, status=201, headers=headers)
                answer = await mine.responses.create(model="sam", input="Hello")
                made = await mine.conversations.create()
                assert answer.model == "sam"
                assert [model.id async for model in theirs.models.list()] == []
                for call in (
                    theirs.responses.retrieve(answer.id),
                    theirs.responses.cancel(answer.id),
                    theirs.conversations.retrieve(made.id),
                    theirs.responses.create(model="sam", input="Hello"),
                ):
                    with pytest.raises(openai.NotFoundError):
                        await call
                assert "acme" not in msgspec.json.encode(answer.model_dump(mode="json")).decode()

    asyncio.run(main())


def test_a_live_stream_that_is_cut_at_any_byte_continues_where_it_was(tmp_path: Path) -> None:
    """A reader keeps the whole events of what it received of a live stream; what it gets after the last of them, from
    the log, makes the same text, however the words were divided the first time.
    """
    words = "Once upon a time there was a log, and its readers knew all that had ever been said."

    async def main() -> None:
        async with served(tmp_path, Streamer(say("Hi."), say(words))) as server:
            agent = await server.system.agent("sam", Settings(model="streamer", stream=True, window=8192))
            await agent.ask("Hi")  # the first answer of a life is shown when it is complete
            asked = {"model": "sam", "input": "Hello", "stream": True}
            whole = (await server.client.post("/openai/v1/responses", json=asked)).content
            events = _events(whole)
            assert sum(kind == "response.output_text.delta" for kind, _ in events) > 1
            rests: dict[int, str] = {}
            path = f"/openai/v1/responses/{events[0][1]['response']['id']}"
            for cut in range(len(whole) + 1):
                had = _events(whole[:cut])
                last = had[-1][1]["sequence_number"] if had else -1
                if last not in rests:
                    query = {"stream": "true", "starting_after": last}
                    rest = (await server.client.get(path, params=query)).content
                    rests[last] = _text(_events(rest))
                    ended = last == events[-1][1]["sequence_number"]
                    assert ended or _events(rest)[-1][0] == "response.completed"
                assert _text(had) + rests[last] == words

    asyncio.run(main())


def _events(body: bytes) -> list[tuple[str, Any]]:
    """Return kind and data of the whole events of a stream."""
    found = []
    for block in body.split(b"\n\n")[:-1]:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":"))
        if b"data" in fields:
            found.append((fields[b"event"].decode(), msgspec.json.decode(fields[b"data"])))
    return found


def _text(events: Sequence[tuple[str, Any]]) -> str:
    return "".join(data["delta"] for kind, data in events if kind == "response.output_text.delta")
