"""The contract suite of agents, run in this process."""

from everlog.actors.agent_system import AgentSystem
from everlog.actors.hosting.local_runtime import LocalRuntime
from tests.contract.agent_contract import AgentContract


class TestLocalAgents(AgentContract):
    runtime = "local"
    shortest_s = 0.0

    async def kill(self, system: AgentSystem, name: str) -> None:
        """Interrupt the host and drop its work, which comes closest to a crash within one process."""
        assert isinstance(system.runtime, LocalRuntime)
        await system.runtime.host(name).close()

    async def passive(self, system: AgentSystem, name: str) -> None:
        assert isinstance(system.runtime, LocalRuntime)
        idle = system.runtime.host(name).idle_time._task
        if idle is not None:
            await idle
        assert not system.runtime.host(name).active
