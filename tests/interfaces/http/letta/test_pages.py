"""Lists for clients of Letta, page by page: everything once, in order, and no page ends inside an id."""

import asyncio
from pathlib import Path

import letta_client
import pytest
from letta_client import Letta

from tests.support.cli.command_line import Script, completion, says
from tests.support.http.letta_server import created, kinds, letta, texts

PIN = completion(("archival_memory_insert", {"content": "A pin", "request_heartbeat": True}), thought="Keep it.")


def test_messages_are_listed_page_by_page_in_both_orders_and_directions(tmp_path: Path) -> None:
    """The client's own pages, of any size, have each message once and in order; the messages of one id are always on
    one page; and a page before a cursor has what comes before it in the order of the list.
    """

    def work(client: Letta) -> None:
        agent = created(client)
        for number in range(6):
            client.agents.messages.create(agent, input=f"Message {number}")
        whole = client.agents.messages.list(agent, limit=1000, order="asc").items
        order = list(dict.fromkeys(one.id for one in whole))
        runs = {run.id for run in client.runs.list(agent_id=agent)}
        assert {one.run_id for one in whole if one.run_id} == runs
        assert {one.run_id for one in client.agents.messages.list(agent, limit=1)} - {None} == runs
        for size in (1, 2, 3, 7, 1000):
            for direction in ("asc", "desc"):
                pages = client.agents.messages.list(agent, limit=size, order=direction)
                found, ids = [], set()
                for page in pages.iter_pages():
                    assert not ids & {one.id for one in page.items}
                    ids |= {one.id for one in page.items}
                    found += page.items
                assert [one.otid for one in found] == [
                    one.otid for one in (whole if direction == "asc" else whole[::-1])
                ]
        middle = order[len(order) // 2]
        newer = client.agents.messages.list(agent, before=middle, limit=3).items
        assert list(dict.fromkeys(one.id for one in newer)) == order[len(order) // 2 + 1 :][:3][::-1]
        older = client.agents.messages.list(agent, before=middle, limit=3, order="asc").items
        assert list(dict.fromkeys(one.id for one in older)) == order[: len(order) // 2][-3:]
        backwards = [one.id for one in client.agents.messages.list(agent, before=order[0], limit=2, order="desc")]
        assert set(backwards) == set(order[1:])
        only = client.agents.messages.list(agent, include_return_message_types=["assistant_message"], limit=1)
        assert set(kinds(only)) == {"assistant_message"}
        assert len(texts(only)) == 7

    async def main() -> None:
        answers = [PIN, says("One"), PIN, says("Two"), says("Three"), says("Four"), says("Five"), says("Six")]
        async with letta(tmp_path, Script(answers)) as server:
            await server.run(work)

    asyncio.run(main())


@pytest.mark.parametrize(
    "sizes", [(2,), pytest.param((1, 2, 5), marks=[pytest.mark.long, pytest.mark.clients])], ids=str
)
def test_agents_runs_blocks_and_steps_are_listed_page_by_page(sizes: tuple[int, ...], tmp_path: Path) -> None:
    """The client's own pages of other lists have each item once, whatever their size, and end with an empty page."""

    def work(client: Letta) -> None:
        agents = [created(client, f"sam-{number}") for number in range(5)]
        for number in range(5):
            client.agents.messages.create(agents[0], input=f"Message {number}")
            client.blocks.create(label=f"block-{number}", value="x")
        for size in sizes:
            assert [one.id for one in client.agents.list(limit=size)] == agents[::-1]
            assert [one.id for one in client.agents.list(limit=size, order="asc")] == agents
            runs = [one.id for one in client.runs.list(agent_id=agents[0], limit=size)]
            assert len(runs) == len(set(runs)) == 5
            assert [one.label for one in client.blocks.list(limit=size, order="asc")] == [
                f"block-{number}" for number in range(5)
            ]
            assert len(list(client.agents.tools.list(agents[0], limit=size))) > 5
            assert len(list(client.runs.messages.list(runs[0], limit=size))) == 3
        assert [one.id for one in client.agents.list(query_text="SAM-3")] == [agents[3]]
        assert [one.id for one in client.agents.list(name="sam-3")] == [agents[3]]
        with pytest.raises(letta_client.NotFoundError):
            client.agents.list(after="agent-00000000-0000-4000-8000-000000000000")
        with pytest.raises(letta_client.UnprocessableEntityError):
            client.agents.list(limit=0)

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())


def test_a_new_agent_of_an_old_name_has_only_its_own_messages(tmp_path: Path) -> None:
    """After an agent was deleted and another one got its name, the list has the messages of the new one, in both
    orders.
    """

    def work(client: Letta) -> None:
        first = created(client)
        client.agents.messages.create(first, input="Old words")
        client.agents.delete(first)
        second = created(client)
        client.agents.messages.create(second, input="New words")
        for order in ("asc", "desc"):
            said = [one.content for one in client.agents.messages.list(second, order=order, limit=2)
                    if one.message_type == "user_message"]  # fmt: skip
            assert said == ["New words"]

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())
