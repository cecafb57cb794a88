"""Requests whose connection is lost, and which the published client sends again by itself: each is carried out once."""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import letta_client._base_client as base_client
import pytest
from letta_client import Letta

from everlog.actors.ports.effects import ModelResponse
from tests.support.cli.command_line import Script, says
from tests.support.http.breaking_proxy import WHOLE, Break, breaking
from tests.support.http.letta_server import created, letta, texts
from tests.support.seeds import chance


class Echo(Script):
    """A model that answers each message with a number of its own, after a moment or at once."""

    def __init__(self, chance: Random) -> None:
        super().__init__([])
        self._chance = chance

    async def ask(self, request: bytes, **_: object) -> ModelResponse:
        """Count the calls."""
        self.asked.append(request)
        for _ in range(self._chance.choice((0, 0, 50))):
            await asyncio.sleep(0)
        return ModelResponse(says(f"Answer {len(self.asked)}"), 5)


def _break(chance: Random) -> Break:
    kind = chance.choice(("lost", "half", "at once", "unseen", "cut", "whole"))
    if kind == "lost":
        return Break(request=0)
    if kind == "half":
        return Break(request=chance.randrange(1, 500))
    if kind == "at once":
        return Break(at_once=True)
    if kind == "unseen":
        return Break(answer=0)
    return Break(answer=chance.randrange(1, 1500)) if kind == "cut" else WHOLE


async def _rounds(root: Path, count: int, chance: Random) -> None:
    """Send messages over connections that are lost, and compare what the log has."""
    plan: list[Break] = []
    taken: list[Break] = []

    def next_break() -> Break:
        taken.append(plan.pop(0) if plan else WHOLE)
        return taken[-1]

    async with letta(root, Echo(chance)) as server, breaking(server.url, next_break) as way:

        def work(client: Letta) -> tuple[str, list[list[str]]]:
            agent, answers = created(client), []
            for number in range(count):
                plan[:] = [_break(chance), _break(chance)]
                way_of = chance.choice(("messages", "messages", "async", "passages"))
                said = f"Message {number}"
                if way_of == "async":
                    client.agents.messages.create_async(agent, messages=[{"role": "user", "content": said}])
                elif way_of == "passages":
                    client.agents.passages.create(agent, text=said)
                    continue
                else:
                    answers.append(texts(client.agents.messages.create(agent, input=said).messages))
                sent.append(said)
            plan.clear()
            return agent, answers

        sent: list[str] = []
        options = {"url": f"{way}/letta", "max_retries": 4}
        agent, answers = await server.run(work, **options)
        listed = await server.run(lambda client: list(client.agents.messages.list(agent, limit=500)))
        heard = Counter(one.content for one in listed if one.message_type == "user_message")
        assert heard == Counter(sent)
        assert all(len(answer) == 1 for answer in answers)
        assert len({answer[0] for answer in answers}) == len(answers)
        stored = await server.run(lambda client: [one.text for one in client.agents.passages.list(agent, limit=500)])
        assert len(stored) == len(set(stored))
        assert len(stored) + len(sent) == count
        assert sum(one != WHOLE for one in taken) > count


@pytest.fixture(autouse=True)
def quick_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the client repeat at once, where a program would wait for half a second."""
    monkeypatch.setattr(base_client, "INITIAL_RETRY_DELAY", 0.001)


def test_a_message_that_the_client_repeats_is_in_the_log_once(tmp_path: Path) -> None:
    """A request may be lost before it arrives, within it, or with its answer: after the client has sent it again by
    itself, the log has the message once, and the client has the answer to it.
    """
    asyncio.run(_rounds(tmp_path, 20, chance("letta repeats")))


@pytest.mark.long
@pytest.mark.effects
def test_a_message_that_the_client_repeats_is_in_the_log_once_at_length(tmp_path: Path) -> None:
    """The same for 300 requests."""
    asyncio.run(_rounds(tmp_path, 300, chance("letta repeats at length")))


def test_an_agent_and_a_block_whose_creation_is_repeated_exist_once(tmp_path: Path) -> None:
    """A repeat of a request that creates an agent or a shared block, at any place at which the first one was lost,
    returns the one that the first created.
    """

    async def main() -> None:
        plan: list[Break] = []
        async with (
            letta(tmp_path, Script([])) as server,
            breaking(server.url, lambda: plan.pop(0) if plan else WHOLE) as way,
        ):

            def work(client: Letta) -> None:
                places = (Break(request=0), Break(at_once=True), Break(answer=0), Break(answer=200))
                for number, place in enumerate(places):
                    plan[:] = [place]
                    assert client.agents.create(name=f"sam-{number}x").name == f"sam-{number}x"
                    plan[:] = [place]
                    assert client.blocks.create(label=f"block-{number}", value="x").label == f"block-{number}"
                plan.clear()
                assert len(list(client.agents.list())) == len(places)
                assert len(list(client.blocks.list())) == len(places)
                assert client.agents.create(name="sam-0x").name == "sam-0x-2"

            await server.run(work, url=f"{way}/letta")

    asyncio.run(main())


def test_an_otid_or_a_key_of_the_client_sends_once_and_only_the_same_words(tmp_path: Path) -> None:
    """Two requests with one otid, or one Idempotency-Key, are one message with one answer; other words under the same
    id are refused. Without an id, two requests are two messages, even with the same words.
    """

    async def main() -> None:
        model = Script([says("One"), says("Two"), says("Three"), says("Four")])
        async with letta(tmp_path, model) as server:

            def work(client: Letta) -> None:
                agent = created(client)
                said = [{"role": "user", "content": "Hello", "otid": "5e6a3b1c-0000-4000-8000-000000000001"}]
                first = client.agents.messages.create(agent, messages=said)
                again = client.agents.messages.create(agent, messages=said)
                assert (first.messages, first.usage) == (again.messages, again.usage)
                assert texts(first.messages) == ["One"]
                key = {"extra_headers": {"Idempotency-Key": "mine"}}
                third = client.agents.messages.create(agent, input="Hello", **key)
                assert texts(third.messages) == ["Two"]
                assert client.agents.messages.create(agent, input="Hello", **key).messages == third.messages
                with pytest.raises(base_client.APIStatusError, match="used for another message"):
                    client.agents.messages.create(agent, input="Other words", **key)
                assert texts(client.agents.messages.create(agent, input="Hello").messages) == ["Three"]
                assert texts(client.agents.messages.create(agent, input="Hello").messages) == ["Four"]

            await server.run(work)
            assert len(model.asked) == 4

    asyncio.run(main())
