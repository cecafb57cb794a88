"""Requests as front ends send them that no registry of packages carries: a chat, its title, and an answer asked afresh.

Open WebUI 0.12 and LibreChat, by their documents: docs/how_to/clients.md says which settings they need.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.support.cli.command_line import Script, says
from tests.support.http.openai_client import assistant, said, user
from tests.support.http.served_store import Served, served

TITLE = (
    '{"choices": [{"message": {"role": "assistant", "content": "{\\"title\\": \\"Cats\\"}"}, "finish_reason": "stop"}]}'
)


async def posted(server: Served, body: Mapping[str, Any], headers: Mapping[str, str] = {}) -> str:
    """Send a chat completion, and return the text of the answer, streamed or not."""
    answer = await server.client.post("/openai/v1/chat/completions", json=dict(body), headers=dict(headers))
    assert answer.status_code == 200, answer.text
    if not body.get("stream"):
        return str(answer.json()["choices"][0]["message"]["content"])
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    chunks = [msgspec.json.decode(line) for line in lines[:-1]]
    return "".join(c["delta"].get("content") or "" for chunk in chunks for c in chunk["choices"])


async def logs_of(server: Served) -> Mapping[str, Sequence[str]]:
    """Return what users said to each agent, by its log."""
    rows = (await server.call("GET", "/agents", status=200))["agents"]
    return {row["agent"]: await said(server, row["agent"]) for row in rows}


def test_open_webui(tmp_path: Path) -> None:
    """Open WebUI streams a chat under its id, asks for a title, tags and questions in the background, sends the last
    answer with the reasoning that it was shown, and asks afresh under a new id of the message.
    """

    async def main() -> None:
        model = Script([says("Meow."), TITLE, TITLE, says("She is Ada."), says("Ada, I think.")])
        async with served(tmp_path, model) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            chat = {"X-OpenWebUI-User-Name": "Chad", "X-OpenWebUI-Chat-Id": "b7c1"}
            first = {"stream": True, "model": "sam", "messages": [user("I have a cat")]}
            assert await posted(server, first, {**chat, "X-OpenWebUI-Message-Id": "m1"}) == "Meow."
            for task in ("### Task:\nGenerate a concise, 3-5 word title", "### Task:\nGenerate 1-3 broad tags"):
                prompt = f"{task}\n### Chat History:\n<chat_history>\nUSER: I have a cat\n</chat_history>"
                background = {"model": "sam", "stream": False, "messages": [user(prompt)]}
                assert "Cats" in await posted(server, background, chat)
            shown = '<details type="reasoning" done="true" duration="1">\n> Hm.\n</details>\nMeow.'
            history = [user("I have a cat"), assistant(shown), user("Who is she?")]
            second = {"stream": True, "model": "sam", "messages": history}
            assert await posted(server, second, {**chat, "X-OpenWebUI-Message-Id": "m2"}) == "She is Ada."
            assert await posted(server, second, {**chat, "X-OpenWebUI-Message-Id": "m2"}) == "She is Ada."
            assert await posted(server, second, {**chat, "X-OpenWebUI-Message-Id": "m3"}) == "Ada, I think."
            logs = dict(await logs_of(server))
            assert logs.pop("sam") == ["I have a cat", "Who is she?"]
            assert list(logs.values()) == [["I have a cat", "Who is she?"]]

    asyncio.run(main())


def test_librechat(tmp_path: Path) -> None:
    """LibreChat streams a chat with the id of its user, whose conversations are no other user's, and asks for a title
    with the same model.
    """

    async def main() -> None:
        model = Script([says("Hello Ann."), TITLE, says("Hello Ben."), says("Still Ann.")])
        async with served(tmp_path, model) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            hello = {"model": "sam", "stream": True, "messages": [user("Hello")]}
            assert await posted(server, {**hello, "user": "66f0a1"}) == "Hello Ann."
            prompt = "Provide a concise, 5-word-or-less title for the conversation, using its same language."
            assert "Cats" in await posted(server, {"model": "sam", "messages": [user(prompt)], "user": "66f0a1"})
            assert await posted(server, {**hello, "user": "77a2b3"}) == "Hello Ben."
            more = [user("Hello"), assistant("Hello Ann."), user("And now?")]
            assert await posted(server, {**hello, "messages": more, "user": "66f0a1"}) == "Still Ann."
            assert await logs_of(server) == {"sam": ["Hello", "Hello", "And now?"]}

    asyncio.run(main())
