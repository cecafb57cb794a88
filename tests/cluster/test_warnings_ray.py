"""Warnings about a damaged log reach the process whose call made a host of the cluster open the log."""

import asyncio
from pathlib import Path

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.api import open_system
from everlog.actors.ports.ports import Ports
from everlog.actors.runtime import Placement

pytestmark = pytest.mark.ray


@pytest.mark.long
@pytest.mark.cluster
def test_warnings_come_through_ray(folder: Path) -> None:
    """A dedicated agent, an agent of a shard and a shared block: each caller is told of the bytes that were cut off."""
    noted: list[str] = []
    offline = Settings(model="offline")

    async def make() -> None:
        async with open_system(folder, runtime="local", shards=1) as system:
            await system.agent("sam", offline, placement="dedicated")
            await system.agent("ann", offline, placement="shared")
            await system.shared.create("team", "The captain is Ann.")

    async def use(name: str, placement: Placement) -> None:
        async with open_system(folder, runtime="ray", ports=Ports(note=noted.append)) as system:
            agent = await system.agent(name, offline, placement=placement)
            assert any("8 damaged bytes" in warning for warning in agent.opened.warnings)

    async def edit() -> None:
        async with open_system(folder, runtime="ray", ports=Ports(note=noted.append)) as system:
            await system.shared.set("team", "The captain is Bob.")

    asyncio.run(make())
    for path in folder.glob("log/*/*.open"):
        with path.open("ab") as file:
            file.write(b"nonsense")
    for work in (use("sam", "dedicated"), use("ann", "shared"), edit()):
        noted.clear()
        asyncio.run(work)
        assert sum("8 damaged bytes" in note for note in noted) == 1, noted
