"""The client repeats requests by itself, without an id: each message is in the log once, wherever it is cut."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.support.cli.command_line import Script
from tests.support.http.cutting_proxy import cutting
from tests.support.http.openai_client import assistant, openai_client, user
from tests.support.http.served_store import Served, served
from tests.support.seeds import chance as drawn


async def _said(server: Served) -> Sequence[str]:
    page = await server.call("GET", "/agents/sam/records?limit=1000", status=200)
    records = page["records"]
    while page["next"]:
        page = await server.call("GET", f"/agents/sam/records?limit=1000&after={page['next']}", status=200)
        records += page["records"]
    return [one["text"] for one in records if one["type"] == "user_message"]


async def _rounds(tmp_path: Path, count: int, chance: random.Random) -> int:
    """Talk in `count` rounds through a proxy that cuts each first try. Return the number of cuts."""
    sent: list[str] = []
    async with served(tmp_path, Script([])) as server:
        await server.call("POST", "/agents", {"name": "sam"}, status=201)
        cut: list[int | None] = []
        async with cutting(server.address, lambda: cut.pop(0) if cut else None) as proxy:
            history: list[Any] = []
            for number in range(count):
                text = f"message {number}"
                # Before the request, before the answer, within it, and none: each new connection takes the next.
                cut[:] = [chance.choice([-1, 0, 1, chance.randrange(2, 900), None])]
                async with openai_client(server, address=proxy.address, tries=3) as client:
                    if number % 2:
                        made = await client.chat.completions.create(
                            model="sam", messages=[*history[-6:], user(text)],
                            extra_headers={"X-Everlog-Conversation": "c"},
                        )  # fmt: skip
                        answer = made.choices[0].message.content or ""
                        history += [user(text), assistant(answer)]
                    else:
                        answer = (await client.responses.create(model="sam", input=text)).output_text
                assert answer == "Indeed."
                sent.append(text)
        assert await _said(server) == sent
        return proxy.cuts


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client repeat at once: its pauses are for servers that are busy."""
    monkeypatch.setattr(openai.AsyncOpenAI, "_calculate_retry_timeout", lambda *_args, **_more: 0.0)


@pytest.mark.parametrize("rounds", [20, pytest.param(300, marks=[pytest.mark.long, pytest.mark.soak])])
def test_a_repeated_request_is_one_message(tmp_path: Path, rounds: int) -> None:
    """Requests that are cut before, in and after their answer, and repeated by the client, are one message each."""
    assert asyncio.run(_rounds(tmp_path, rounds, drawn("openai repeats"))) > rounds // 4
