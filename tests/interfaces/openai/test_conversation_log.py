"""Conversations as the server knows them: those of the log, and without a thread where little is new."""

import asyncio
from pathlib import Path
from typing import Any

from everlog.events import UserMessage
from everlog.interfaces.http.conversations.client_history import question_digest
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


def test_requests_that_waited_for_a_reader_read_no_more_than_is_new(tmp_path: Path) -> None:
    """Requests that come while a thread reads a partition are answered when it has ended, without threads of theirs."""

    async def main() -> None:
        async with served(tmp_path, Script([]), placement="shared", shards=1) as server:
            names = [f"agent-{number}" for number in range(4)]
            for name in names:
                agent = await server.system.agent(name)
                await agent.ask(UserMessage(text="Hello", conversation="c"))
                assert await said(server, name) == [question_digest("Hello")]
            (partition,) = server.service.conversations._partitions.values()
            read: list[str] = []
            current = partition.current

            def counted(stream: str) -> Any:
                read.append(stream)
                return current(stream)

            partition.current = counted  # type: ignore[method-assign]
            async with partition.lock:
                waiting = [asyncio.ensure_future(said(server, name)) for name in names]
                await asyncio.sleep(0)
            assert await asyncio.gather(*waiting) == [[question_digest("Hello")]] * 4
            assert read == []

    asyncio.run(main())
