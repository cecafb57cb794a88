"""Chat completions, through the published client: what is new goes to the agent once, and the answer comes back."""

from pathlib import Path
from typing import Any

import openai
import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.events import ModelError
from tests.support.cli.command_line import Script, says
from tests.support.http.openai_client import assistant, run, said, user
from tests.support.http.served_store import Served


async def ask(client: openai.AsyncOpenAI, *messages: Any, **more: Any) -> str:
    """Return the answer to a conversation."""
    completion = await client.chat.completions.create(model="sam", messages=list(messages), **more)
    return completion.choices[0].message.content or ""


def test_agents_are_models(tmp_path: Path) -> None:
    """Each agent is a model, with the time at which it began; an unknown one is a NotFoundError that names it."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        await server.call("POST", "/agents", {"name": "ann"}, status=201)
        assert [model.id async for model in client.models.list()] == ["ann", "sam"]
        assert (await client.models.retrieve("sam")).created > 1_700_000_000
        with pytest.raises(openai.NotFoundError) as caught:
            await client.models.retrieve("tom")
        assert caught.value.code == "model_not_found"

    run(tmp_path, Script([]), work)


def test_a_conversation_is_told_apart_from_its_repeats(tmp_path: Path) -> None:
    """A longer history appends only its newest message, and the same request again is answered by the same run."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        first = await client.chat.completions.create(model="sam", messages=[user("Hello")])
        assert first.choices[0].message.content == "Ahoy"
        assert (first.object, first.model, first.choices[0].finish_reason) == ("chat.completion", "sam", "stop")
        assert first.usage is not None and first.usage.total_tokens == 1020
        now = server.service.ports.clock.now() // 1_000_000
        assert now - 60 < first.created <= now
        again = await client.chat.completions.create(model="sam", messages=[user("Hello")])
        assert again == first
        history = [user("Hello"), assistant("Ahoy")]
        assert await ask(client, *history, user("And?"), user("Well?")) == "Well."
        assert await ask(client, *history, user("And?"), user("Well?")) == "Well."
        assert await said(server) == ["Hello", "And?\n\nWell?"]

    run(tmp_path, Script([says("Ahoy"), says("Well.")]), work)


def test_an_edited_history_forks_and_the_old_branch_stays(tmp_path: Path) -> None:
    """A history that differs from the log forks the agent there: the fork has the new words, and the agent the old."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        await ask(client, user("Hello"))
        await ask(client, user("Hello"), assistant("One."), user("I like tea"))
        forked = await client.chat.completions.with_raw_response.create(
            model="sam", messages=[user("Hello"), assistant("One."), user("I like coffee")]
        )
        name = forked.headers["x-everlog-agent"]
        assert name.startswith("sam.chat-")
        assert await said(server) == ["Hello", "I like tea"]
        assert await said(server, name) == ["Hello", "I like coffee"]
        three = forked.parse().choices[0].message.content
        more = await client.chat.completions.with_raw_response.create(
            model="sam",
            messages=[user("Hello"), assistant("One."), user("I like coffee"), assistant(three), user("Strong")],
        )
        assert more.headers["x-everlog-agent"] == name
        assert await said(server, name) == ["Hello", "I like coffee", "Strong"]
        assert [model.id async for model in client.models.list()] == ["sam"]

    run(tmp_path, Script([says("One."), says("Two."), says("Three."), says("Four.")]), work)


def test_a_named_conversation_is_kept_apart(tmp_path: Path) -> None:
    """Two conversations with the same words stay apart if their front end names them, and share the agent's memory."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        for chat in ("one", "two"):
            answer = await client.chat.completions.with_raw_response.create(
                model="sam", messages=[user("Hello")], extra_headers={"X-OpenWebUI-Chat-Id": chat}
            )
            assert answer.headers["x-everlog-conversation"] == chat
        assert await said(server) == ["Hello", "Hello"]
        page = await server.call("GET", "/agents/sam/records?limit=1000", status=200)
        asked = [one["payload"]["conversation"] for one in page["records"] if one["type"] == "user_message"]
        assert asked == ["one", "two"]

    run(tmp_path, Script([]), work)


def test_an_unknown_history_is_taken_in_and_then_answered(tmp_path: Path) -> None:
    """A conversation that began elsewhere is imported with its answers, and its newest message opens a turn."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        history = [user("I have a cat"), assistant("Nice."), user("Her name is Ada"), assistant("Noted.")]
        assert await ask(client, *history, user("What is her name?")) == "Ada."
        assert await ask(client, *history, user("What is her name?")) == "Ada."
        assert await said(server) == ["I have a cat", "Her name is Ada", "What is her name?"]
        page = await server.call("GET", "/agents/sam/records?limit=1000", status=200)
        assert [one["text"] for one in page["records"] if one["type"] == "message_sent"] == ["Nice.", "Noted.", "Ada."]

    model = Script([says("Ada.")])
    run(tmp_path, model, work)
    assert len(model.asked) == 1
    assert b"Her name is Ada" in model.asked[0]


def test_histories_with_the_same_question_are_conversations_of_their_own(tmp_path: Path) -> None:
    """Two unknown histories that end with the same words are two conversations, each with its own answer."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        for pet in ("cat", "dog"):
            answer = await ask(client, user(f"I have a {pet}"), assistant("Nice."), user("What is it?"))
            assert answer == f"A {pet}."
        assert await said(server) == ["I have a cat", "What is it?", "I have a dog", "What is it?"]

    run(tmp_path, Script([says("A cat."), says("A dog.")]), work)


def test_instructions_of_the_program_are_beside_the_message(tmp_path: Path) -> None:
    """A system prompt goes to the model with the message that it came with, is in the log, and is not repeated."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        rule = {"role": "system", "content": "Answer in French."}
        history: list[Any] = [rule]
        for text in ("Hello", "Again", "And again"):
            history.append(user(text))
            history.append(assistant(await ask(client, *history)))
        page = await server.call("GET", "/agents/sam/records?limit=1000", status=200)
        notes = [one["payload"].get("note", "") for one in page["records"] if one["type"] == "user_message"]
        assert notes == ["Answer in French.", "", ""]

    model = Script([])
    run(tmp_path, model, work)
    assert b"Answer in French." in model.asked[0]


def test_titles_are_made_without_the_agent(tmp_path: Path) -> None:
    """A front end's prompt for a title is answered by the model, and leaves nothing in the agent's log."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        prompt = "### Task:\nGenerate a concise title.\n### Chat History:\nUSER: Hello"
        assert await ask(client, user(prompt)) == "A title"
        assert await said(server) == []

    title = '{"choices": [{"message": {"role": "assistant", "content": "A title"}, "finish_reason": "stop"}]}'
    run(tmp_path, Script([title]), work)


def test_a_stream_has_the_text_once_and_the_tokens_at_its_end(tmp_path: Path) -> None:
    """Streamed, the parts joined are the answer, the thoughts are apart, and the usage comes last."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        text, thoughts, ends, usage = "", "", [], None
        stream = await client.chat.completions.create(
            model="sam", messages=[user("Hello")], stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                thoughts += (choice.delta.model_extra or {}).get("reasoning_content", "")
                ends += [choice.finish_reason] if choice.finish_reason else []
            usage = chunk.usage or usage
        assert (text, ends, thoughts.strip()) == ("Ahoy", ["stop"], "I think.")
        assert usage is not None and usage.prompt_tokens == 1000

    run(tmp_path, Script([says("Ahoy")]), work)


def test_a_key_of_an_attempt_says_what_is_a_repeat(tmp_path: Path) -> None:
    """The same Idempotency-Key is the same run, another key for the same words asks afresh, and the same key with other
    words is refused.
    """

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        async def keyed(key: str, *messages: Any) -> str:
            return await ask(client, *messages, extra_headers={"Idempotency-Key": key, "X-Everlog-Conversation": "c"})

        assert await keyed("one", user("Hello")) == "One."
        assert await keyed("one", user("Hello")) == "One."
        assert await keyed("two", user("Hello")) == "Two."
        assert await keyed("two", user("Hello")) == "Two."
        with pytest.raises(openai.UnprocessableEntityError, match="another message"):
            await keyed("one", user("Bye"))
        assert await said(server) == ["Hello"]

    run(tmp_path, Script([says("One."), says("Two.")]), work)


@pytest.mark.parametrize(
    ("sent", "said_to_client"),
    [
        ({"n": 2}, "`n` is 1"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "functions of its own"),
        ({"response_format": {"type": "json_object"}}, "answers in words"),
        ({"messages": []}, "last message must be the user's"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "text only"),
        ({"messages": "Hello"}, "not what it should be"),
        ({"messages": [{"role": ["user"], "content": "Hello"}]}, "which is none"),
        ({"messages": [{"role": "user", "content": [{"type": ["text"], "text": "Hello"}]}]}, "text only"),
    ],
)
def test_what_an_agent_cannot_do_is_refused_in_words(tmp_path: Path, sent: dict[str, Any], said_to_client: str) -> None:
    """A request that cannot be carried out as meant is a BadRequestError that says why, and leaves nothing."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        asked = {"model": "sam", "messages": [user("Hello")], **sent}
        with pytest.raises(openai.BadRequestError, match=said_to_client) as caught:
            await client.chat.completions.create(**asked)
        assert caught.value.type == "invalid_request_error"
        assert await said(server) == []

    run(tmp_path, Script([]), work)


def test_each_failure_is_the_error_that_clients_know(tmp_path: Path) -> None:
    """An unknown agent, a failing model, an unknown address and a wrong key are errors of the client's own classes, and
    none is repeated by the client.
    """

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        repeating = client.with_options(max_retries=2)
        with pytest.raises(openai.NotFoundError, match="tom") as caught:
            await repeating.chat.completions.create(model="tom", messages=[user("Hello")])
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.InternalServerError, match="went away"):
            await repeating.chat.completions.create(model="sam", messages=[user("Hello")])
        stream = await repeating.chat.completions.create(model="sam", messages=[user("Bye")], stream=True)
        with pytest.raises(openai.APIError, match="went away"):
            async for _ in stream:
                pass
        with pytest.raises(openai.NotFoundError, match="no embeddings"):
            await repeating.embeddings.create(model="sam", input="Hello")
        server.key("read")
        with pytest.raises(openai.AuthenticationError) as wrong:
            await repeating.models.list()
        assert wrong.value.code == "invalid_api_key"

    gone = [ModelError("The endpoint went away.", kind="connection") for _ in range(2)]
    model = Script(list(gone))
    run(tmp_path, model, work)
    assert len(model.asked) == 2


def test_tokens_are_streamed_as_the_model_writes_them(tmp_path: Path) -> None:
    """An agent that streams hands its words on before the answer is complete, and each of them once."""

    async def work(server: Served, client: openai.AsyncOpenAI) -> None:
        agent = await server.system.agent("sam", Settings(stream=True))
        assert agent.opened.model
        parts = []
        stream = await client.chat.completions.create(model="sam", messages=[user("Hello")], stream=True)
        async for chunk in stream:
            parts += [c.delta.content for c in chunk.choices if c.delta.content]
        assert "".join(parts) == "One two three."

    run(tmp_path, Script([says("One two three.")]), work)
