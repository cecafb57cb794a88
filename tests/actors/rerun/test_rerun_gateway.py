"""A rerun calls its models through the gateway of its system, and searches the archive of its system."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import ServiceOptions, open_system
from everlog.actors.cluster.gateway_client import GatewayClient
from everlog.actors.gateway.gateway import Gateway, GatewayActor
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.ports.effects import ModelResponse, Page
from everlog.actors.ports.ports import Ports
from everlog.actors.rerun.rerun import RerunOptions
from everlog.events import OverBudget
from everlog.testing import CountingIds, ManualClock
from tests.actors.memory.test_agent_search import FakeArchive
from tests.support.agent_world import completion, say
from tests.support.models.virtual_time_models import SlowModel, gateway

AGAIN = 8
"""Seq of the first record of the rerun."""


MODEL = Settings(model="m", window=200_000)


def dear() -> SlowModel:
    """Return a model whose every answer takes 60,000 tokens."""
    return SlowModel(lambda *_: ModelResponse(say("Hello.", total=60_000), 1), seconds=0)


def here(
    folder: Path, model: SlowModel, limits: GatewayLimits | None = None
) -> AbstractAsyncContextManager[AgentSystem]:
    """Open a system of agents in this process that call this model."""
    ports = Ports(clock=ManualClock(tick_us=1000), ids=CountingIds())
    services = ServiceOptions(models=lambda *_: model, limits=limits)
    return open_system(folder, runtime="local", services=services, ports=ports, timers=False)


def test_a_rerun_counts_for_the_budgets_of_its_system(tmp_path: Path) -> None:
    """After a turn and its rerun exceed the budget of all agents, neither another rerun nor another turn is sent."""

    async def main() -> None:
        model = dear()
        async with here(tmp_path, model, limits=GatewayLimits(all_tokens_max=100_000)) as system:
            agent = await system.agent("sam", MODEL)
            await agent.send("Hi")
            done = await system.rerun(RerunOptions(agent_id="sam", from_seq=AGAIN, fork="tom"))
            assert done.error is None and len(model.asked) == 2
            done = await system.rerun(RerunOptions(agent_id="sam", from_seq=AGAIN, fork="ann"))
            assert isinstance(done.error, OverBudget) and done.error.spent == 120_000
            with pytest.raises(OverBudget):
                await agent.send("And now?")
            assert len(model.asked) == 2

    asyncio.run(main())


class Remote:
    """A method of an actor as a Ray handle offers it: its result must be awaited."""

    def __init__(self, method: Callable[..., Awaitable[Any]]) -> None:
        self.remote = method


class Handle:
    """A handle of a cluster's gateway that runs in this process."""

    def __init__(self, actor: GatewayActor) -> None:
        self.ask = Remote(actor.ask)


def test_on_a_cluster_a_rerun_asks_the_gateway_of_the_cluster(tmp_path: Path) -> None:
    """The rerun's requests go through the cluster's gateway, count for the fork, and are subject to the cluster's
    budgets.
    """

    async def main() -> None:
        model, ports = dear(), Ports(clock=ManualClock(tick_us=1000), ids=CountingIds())
        actor = GatewayActor(str(tmp_path))
        actor._gateway = shared = gateway(model, agent_tokens_max=50_000, all_tokens_max=100_000)
        asker = GatewayClient(str(tmp_path))
        asker._actor = Handle(actor)
        async with here(tmp_path, model) as local:
            system = AgentSystem(
                local.runtime, local.store, capabilities=None, ports=ports, ask=asker.ask, archive=FakeArchive(None)
            )
            await (await system.agent("sam", MODEL)).send("Hi")
            assert shared.status().asked == 0
            done = await system.rerun(RerunOptions(agent_id="sam", from_seq=AGAIN, fork="tom"))
            assert done.error is None and (shared.status().asked, shared.status().tokens) == (1, 60_000)
            with pytest.raises(OverBudget):
                await asker.ask("m", "", b"?", "tom")
            await asker.ask("m", "", b"?", "sam")
            done = await system.rerun(RerunOptions(agent_id="sam", from_seq=AGAIN, fork="ann"))
            assert isinstance(done.error, OverBudget) and done.error.budget == "all tokens"
            assert len(model.asked) == 3

    asyncio.run(main())


def test_a_rerun_searches_in_the_archive_of_its_system(tmp_path: Path) -> None:
    """The rerun's searches are answered by the archive of its system, and no other archive is opened."""
    lines = [say("Hello."), completion(calls=[("archival_memory_search", {"query": "Rex"})]), say("None.")]

    async def main() -> None:
        model, archive = (
            SlowModel(lambda _, before: ModelResponse(lines[before], 1), seconds=0),
            FakeArchive(Page(0, 0, 0, [])),
        )
        async with here(tmp_path, model) as local:
            await (await local.agent("sam", MODEL)).send("Hi")
            ask = Gateway(lambda *_: model).ask
            system = AgentSystem(
                local.runtime, local.store, capabilities=None,
                ports=Ports(clock=ManualClock(tick_us=1000), ids=CountingIds()), ask=ask, archive=archive,
            )  # fmt: skip
            done = await system.rerun(RerunOptions(agent_id="sam", from_seq=AGAIN, fork="tom"))
            assert done.error is None
            assert [(wanted.agent_id, wanted.query) for wanted in archive.asked] == [("tom", "Rex")]

    asyncio.run(main())
