"""Conversations as the server knows them: those of the log, and without a thread where little is new."""

import asyncio
from pathlib import Path
from typing import Any

from everlog.events import UserMessage
from everlog.interfaces.http.conversations.client_history import question_digest
from everlog.interfaces.http.conversations.conversation_log import _PartitionConversations
from tests.support.cli.command_line import Script
from tests.support.http.served_store import Served, served


async def said(server: Served, agent: str) -> list[bytes]:
    """Return the digests of the questions of the conversation `c`."""
    return [exchange.asked for exchange in (await server.service.conversations.of(agent)).exchanges("c")]


def test_an_agent_that_was_asked_for_before_its_first_record_is_read(tmp_path: Path) -> None:
    """An agent that was registered, and was empty when it was asked for, has its conversation as soon as it talks."""

    async def main() -> None:
        async with served(tmp_path, Script([])) as server:
            server.system.store.register("sam")
            assert await said(server, "sam") == []
            agent = await server.system.agent("sam")
            await agent.ask(UserMessage(text="Hello", conversation="c"))
            assert await said(server, "sam") == [question_digest("Hello")]

    asyncio.run(main())


def readings(partition: Any) -> list[Any]:
    """Return a list that gets the wanted agents of each reading of a partition in a thread."""
    made: list[Any] = []
    read = partition._read

    def noted(wanted: Any) -> Any:
        made.append([agent.agent_id for agent in wanted])
        return read(wanted)

    partition._read = noted
    return made


def test_first_requests_of_a_partition_share_one_reading(tmp_path: Path) -> None:
    """Agents that are asked for at once are read together, and later ones of the same open file are read with them."""

    async def main() -> None:
        async with served(tmp_path, Script([]), placement="shared", shards=1) as server:
            names = [f"agent-{number}" for number in range(4)]
            for name in names:
                await (await server.system.agent(name)).ask(UserMessage(text="Hello", conversation="c"))
            log, place = server.service.conversations, server.system.store.partition_of("agent-0")
            partition = log._partitions[place] = _PartitionConversations(log._store, place, log._ports)
            made = readings(partition)
            assert await asyncio.gather(*(said(server, name) for name in names[:3])) == [[question_digest("Hello")]] * 3
            assert made == [names[:3]]
            assert await said(server, names[3]) == [question_digest("Hello")]
            assert made == [names[:3]]

    asyncio.run(main())


def test_an_agent_that_was_created_later_needs_no_reading(tmp_path: Path) -> None:
    """An agent whose first record is written while its partition is followed has its whole conversation at its first
    request, without a thread.
    """

    async def main() -> None:
        async with served(tmp_path, Script([]), placement="shared", shards=1) as server:
            await (await server.system.agent("old")).ask(UserMessage(text="Hello", conversation="c"))
            assert await said(server, "old") == [question_digest("Hello")]
            (partition,) = server.service.conversations._partitions.values()
            made = readings(partition)
            late = await server.system.agent("late")
            for text in ("One", "Two"):
                await late.ask(UserMessage(text=text, conversation="c"))
                assert await said(server, "old") == [question_digest("Hello")]
            assert await said(server, "late") == [question_digest("One"), question_digest("Two")]
            assert made == []

    asyncio.run(main())


def test_a_fork_has_the_conversation_of_its_parent(tmp_path: Path) -> None:
    """A fork, whose first records are those of another agent, is read whole at its first request."""

    async def main() -> None:
        async with served(tmp_path, Script([]), placement="shared", shards=1) as server:
            await (await server.system.agent("old")).ask(UserMessage(text="Hello", conversation="c"))
            assert await said(server, "old") == [question_digest("Hello")]
            await server.system.fork("old", "new", placement="shared")
            await (await server.system.agent("new")).ask(UserMessage(text="Again", conversation="c"))
            assert await asyncio.gather(said(server, "new"), said(server, "old")) == [
                [question_digest("Hello"), question_digest("Again")],
                [question_digest("Hello")],
            ]

    asyncio.run(main())


def test_an_agent_that_moved_away_and_back_has_its_whole_conversation(tmp_path: Path) -> None:
    """An agent that talked in another partition has what it said there, though its first partition was followed."""

    async def main() -> None:
        async with served(tmp_path, Script([]), placement="shared", shards=1) as server:
            agents = {name: await server.system.agent(name) for name in ("asked", "unasked", "other")}
            for agent in agents.values():
                await agent.ask(UserMessage(text="One", conversation="c"))
            assert await said(server, "other") == [question_digest("One")]
            assert await said(server, "asked") == [question_digest("One")]
            for name in ("asked", "unasked"):
                await agents[name].move("dedicated")
                await agents[name].ask(UserMessage(text="Two", conversation="c"))
                await agents[name].move("shared")
                await agents[name].ask(UserMessage(text="Three", conversation="c"))
            expected = [question_digest(text) for text in ("One", "Two", "Three")]
            assert await asyncio.gather(said(server, "asked"), said(server, "unasked")) == [expected] * 2

    asyncio.run(main())


def test_requests_that_wait_for_a_reading_read_no_more_than_is_new(tmp_path: Path) -> None:
    """Requests that come while a thread reads a partition are answered when it has ended, without threads of theirs."""

    async def main() -> None:
        async with served(tmp_path, Script([]), placement="shared", shards=1) as server:
            names = [f"agent-{number}" for number in range(4)]
            for name in names:
                agent = await server.system.agent(name)
                await agent.ask(UserMessage(text="Hello", conversation="c"))
                assert await said(server, name) == [question_digest("Hello")]
            (partition,) = server.service.conversations._partitions.values()
            made = readings(partition)
            partition._reading = asyncio.ensure_future(partition._read_aside())
            waiting = [asyncio.ensure_future(said(server, name)) for name in names]
            assert await asyncio.gather(*waiting) == [[question_digest("Hello")]] * 4
            assert len(made) == 1

    asyncio.run(main())
