"""Shared memory blocks in a cluster: agents of several processes edit one block, and its owner is killed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.events import MemoryEdited, StoreError, event_of
from everlog.store import FileStore, stream_of_block
from everlog.testing import ManualClock
from tests.cluster.process_kills import actor, kill
from tests.contract.contract_agents import alive, assert_sound, calls, says
from tests.support.models.loopback_server import Loopback, Reply, serving

pytestmark = pytest.mark.ray

MANY = 50


ASKED = "please sign as "


def answers(endpoint: Loopback) -> dict[str, str]:
    """Let each agent append its name to the block once when asked. Return the last system message of each agent, a dict
    that fills up.
    """
    seen: dict[str, str] = {}

    def answer(_: Any, body: bytes) -> Reply:
        messages = json.loads(body)["messages"]
        asked = [str(message["content"]) for message in messages if ASKED in str(message.get("content"))]
        name = asked[-1].partition(ASKED)[2][:8]
        seen[name] = messages[0]["content"]
        if ASKED in str(messages[-1].get("content")):
            return calls("core_memory_append", {"name": "team", "content": name})
        return says("Signed.")

    endpoint.answer = answer  # type: ignore[method-assign]
    return seen


async def signs(system: AgentSystem, names: list[str]) -> None:
    async for sent in system.send_many([(name, f"{ASKED}{name}") for name in names]):
        assert sent.error is None, sent.error


def authors(system: AgentSystem) -> list[str]:
    """Return the editors of the block in its log, without the person who created it."""
    stream = stream_of_block("team")
    events = [event_of(record) for record in system.store.reader(stream).read(stream)]
    return sorted(event.author for event in events if isinstance(event, MemoryEdited) and event.author)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_fifty_agents_of_a_cluster_edit_one_block_at_once(folder: Path) -> None:
    """Every edit is in the block's log once, and all agents see the newest value, also after the block's owner was
    killed.
    """
    names = [f"agent-{number:02}" for number in range(MANY)]
    with serving(says("Yes.")) as endpoint:
        seen = answers(endpoint)
        options: dict[str, Any] = {"base_url": endpoint.url, "placement": "shared", "shards": 2}
        async with open_system(folder, runtime="ray", **options) as system:
            await system.shared.create("team", limit=10_000)
            settings = Settings(model="scripted", window=16_384, verify_first=False)
            assert [sent.error async for sent in system.create_many(names, settings)] == [None] * MANY
            agents = await asyncio.gather(
                *(system.agent(name, create=False, keep_configuration=True) for name in names)
            )
            await asyncio.gather(*(agent.attach_block("team") for agent in agents))
            await signs(system, names)
            assert authors(system) == names
            assert sorted((await system.shared.show("team")).value.split("\n")) == names
            kill(await actor(system, "blocks").ready.remote())
            await signs(system, names)
            assert authors(system) == sorted(names * 2)
            assert (await system.shared.append("team", "The end.")).version == 2 * MANY + 2
            await signs(system, names[:2])
            assert all("The end." in seen[name] for name in names[:2])
            with pytest.raises(StoreError, match="everlog shared"):
                FileStore(folder, ManualClock(tick_us=1000).now).open(stream_of_block("team"), "test")
            assert await system.unload(stream_of_block("team"))
            FileStore(folder, ManualClock(tick_us=1000).now).open(stream_of_block("team"), "test").close()
            for name in names[::10]:
                assert_sound(system, name)
