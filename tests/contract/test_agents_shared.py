"""The contract of agents with shared partitions, run in this process."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.actors.hosting.local_runtime import LocalRuntime
from everlog.actors.hosting.shard import Shard
from tests.contract.agent_contract import AgentContract
from tests.contract.agent_errors import ErrorContract
from tests.contract.agent_functions import FunctionContract


def names_in(contract: type) -> Iterator[str]:
    return (name for name in vars(contract) if name.startswith("test_"))


def shard_of(system: AgentSystem, name: str) -> Shard:
    assert isinstance(system.runtime, LocalRuntime)
    shard = system.runtime.shard(name)
    assert shard is not None, f"{name} shares no partition"
    return shard


class TestSharedAgents(AgentContract):
    runtime = "local"
    shortest_s = 0.0
    LONG = {*names_in(FunctionContract), *names_in(ErrorContract)} - {
        "test_an_agent_that_does_not_exist",
        "test_an_effect_that_may_have_happened_is_not_repeated",
        "test_an_endpoint_that_fails_hurts_its_own_agent_only",
        "test_edited_code_runs_in_an_agent_that_is_open",
        "test_a_function_that_blocks_holds_up_no_other_agent",
        "test_a_turn_is_cancelled_while_its_function_blocks",
    } | {"test_a_summary_is_made_and_taken_back", "test_a_past_conversation_can_be_imported"}  # fmt: skip
    """Tests of code that is the same in each placement."""

    @pytest.fixture
    def opens(self, folder: Path) -> Any:
        """Return a function that opens the test's store, whose new agents share two partitions."""

        def opens(**options: Any) -> AbstractAsyncContextManager[AgentSystem]:
            return open_system(folder, runtime=self.runtime, **{"placement": "shared", "shards": 2, **options})

        return opens

    async def kill(self, system: AgentSystem, name: str) -> None:
        """Interrupt all work of the agent's shard, which comes closest to a crash within one process."""
        await shard_of(system, name).close()

    async def passive(self, system: AgentSystem, name: str) -> None:
        """Let the shard unload idle agents now, instead of waiting for its next round."""
        shard = shard_of(system, name)
        while not (shard._idle() and await shard.passivate(name)):  # noqa: ASYNC110 - real time has to pass
            await asyncio.sleep(0.01)
        assert name not in shard._hosts
