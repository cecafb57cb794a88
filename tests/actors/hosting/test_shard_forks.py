"""An agent and its forks in one shard: each continues on its own from the shared past."""

import asyncio

from everlog.actors.agent.commands import SessionCapabilities
from everlog.events import GENESIS, extend
from tests.support import virtual_time
from tests.support.agent_world import say
from tests.support.agents.journal_world import SHARD
from tests.support.agents.virtual_time_shard import SharedHome


class Asked(SharedHome):
    """Keeps the last request of each agent."""

    async def ask(self, name, base_url, request, agent_id, *_, **__):
        self.asked = {**getattr(self, "asked", {}), agent_id: request.decode()}
        self.lines = [say(f"I am {agent_id}.")]
        return await super().ask(name, base_url, request, agent_id)

    def fork(self, parent: str, name: str) -> None:
        """Fork the agent at its head and move the fork to the shard."""
        self._system_of(SessionCapabilities()).fork(parent, name)
        log = self.store.open(name, "test")
        self.store.begin_move(log, name, SHARD)
        log.close()


def test_a_parent_and_its_forks_in_one_shard_continue_apart() -> None:
    """A fork is activated with its inherited past, also after it was unloaded and its parent has continued."""

    async def main() -> None:
        home = Asked(idle_s=60)
        await home.open_all("ada")
        await home.ref("ada").send("the cat is called Tom")
        home.fork("ada", "tom")
        await home.ref("ada").send("the dog is called Rex")
        for text in ("Are you there?", "And now?"):
            await home.ref("tom").send(text)
            assert "the cat is called Tom" in home.asked["tom"] and "Rex" not in home.asked["tom"]
            await asyncio.sleep(100)
        home.fork("tom", "max")
        await asyncio.gather(home.ref("max").send("Who are you?"), home.ref("ada").send("And you?"))
        assert "And now?" in home.asked["max"] and "the cat is called Tom" in home.asked["max"]
        assert "Are you there?" not in home.asked["ada"]
        assert home.said("max") == ["the cat is called Tom", "Are you there?", "And now?", "Who are you?"]
        assert home.answers("max") == ["I am ada.", "I am tom.", "I am tom.", "I am max."]
        assert home.said("ada") == ["the cat is called Tom", "the dog is called Rex", "And you?"]
        for name in ("ada", "tom", "max"):
            assert home.store.partition_of(name) == SHARD
            chain = GENESIS
            for record in home.log(name):
                chain = extend(chain, record)
            assert home.store.reader(name).head(name).chain == chain
        await home.leave()
        assert home.notes == []

    virtual_time.run(main)
