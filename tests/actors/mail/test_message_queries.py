"""Queries for messages: agents of a shard that write at the same time are answered together."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.api import open_system
from everlog.projections import Projections

AGENTS = 40


def test_agents_that_write_at_once_share_their_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of messages are checked with rows of a query for many agents: one query for each would be most of what
    a message costs.
    """
    asked: list[int] = []
    columns = Projections._columns

    def counting(engine: Projections, name: str, wanted: Sequence[Any]) -> Any:
        asked.extend([len(wanted)] * (name == "agent_messages"))
        return columns(engine, name, wanted)

    monkeypatch.setattr(Projections, "_columns", counting)

    async def main() -> None:
        names = [f"a{number}" for number in range(AGENTS)]
        writes = Settings(optional_functions=("message_agent",))
        async with open_system(tmp_path, runtime="local", placement="shared", shards=1, timers=False) as system:
            async for made in system.create_many(names, writes):
                assert made.error is None
            orders = [(name, f"Tell @{names[number - 1]} that it rains") for number, name in enumerate(names)]
            async for sent in system.send_many(orders):
                assert sent.error is None
                assert [record.type for record in sent.records].count("agent_message_sent") == 1

    asyncio.run(main())
    assert sum(asked) >= AGENTS
    assert len(asked) < AGENTS / 2, f"{len(asked)} queries"
