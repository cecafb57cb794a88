"""Queries for messages: agents of a shard that write at the same time are answered together."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.api import open_system
from everlog.projections import Projections
from tests.support import virtual_time
from tests.support.agents.writing_agents import Town

AGENTS = 40


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Return the queries from now on: name of the projection, and number of agents."""
    made: list[tuple[str, int]] = []
    columns = Projections._columns

    def counting(engine: Projections, name: str, wanted: Sequence[Any]) -> Any:
        made.append((name, len(wanted)))
        return columns(engine, name, wanted)

    monkeypatch.setattr(Projections, "_columns", counting)
    return made


def test_agents_that_write_at_once_share_their_queries(tmp_path: Path, queries: list[tuple[str, int]]) -> None:
    """The limits of messages are checked with rows of a query for many agents: one query for each would be most of what
    a message costs.
    """

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
    asked = [agents for name, agents in queries if name == "message_limits"]
    assert sum(asked) >= AGENTS
    assert len(asked) < AGENTS / 2, f"{len(asked)} queries"


def test_an_agent_whose_messages_are_over_is_asked_for_none(queries: list[tuple[str, int]]) -> None:
    """The open messages are not queried in an activation that saw the first one, and later ones are delivered too."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        await sam.send("ask bob (say (yes))")
        await asyncio.sleep(10)
        assert (town.states("sam"), town.states("bob")) == (["answered"], ["answered"])
        queries.clear()
        await sam.send("say (one)")
        await sam.send("say (two)")
        await asyncio.sleep(10)
        assert [name for name, _ in queries if name == "unfinished_messages"] == []
        await sam.send("ask bob (say (no))")
        await asyncio.sleep(10)
        assert (town.states("sam"), town.states("bob")) == (["answered"] * 2, ["answered"] * 2)
        await town.leave()

    virtual_time.run(main)
