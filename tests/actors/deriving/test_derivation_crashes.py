"""A derivation that is killed at any step of the disk: after recovery and a second derivation nothing is lost or
doubled.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.derivation.model_facts import ModelFacts
from everlog.actors.derivation.rule_facts import RuleFacts
from everlog.actors.deriving.derivation_model import DerivationModel
from everlog.actors.deriving.memory_derivation import MemoryDerivation
from everlog.actors.ports.ports import Ports
from everlog.events import UserMessage
from everlog.testing import CountingIds, ManualClock
from tests.support.agent_world import Line, ScriptedModel, completion
from tests.support.seeds import few_and_all, pick
from tests.support.store.faulty_disk import Crash, FaultyDisk
from tests.support.store.memory_disk_store import begun, store_on

SAID = (
    "My name is Ann Maier, call me Ann. I live in Kiel.", "Good morning!",
    "I work at Bosch. My sister Lea lives in Bonn.", "I moved to Rome in 2022.", "I love tea and coffee.",
    "I quit my job.", "Lea lives in Kiel now.", "I live in Rome.",
)  # fmt: skip
TABLES = ("facts", "derivations", "memory_sources", "entity_names", "outdated")
ASKS = 4
"""Batches of two of these messages."""


class Quoting(ScriptedModel):
    """A model that notes each word with a capital as a fact about the speaker, by the request alone."""

    def default_summary(self, seen: Any) -> Line:
        body = json.loads(seen.messages[1]["content"])
        facts = [
            {"subject": "user", "predicate": "names", "object": word, "sentence": f"User: {word}.", "messages": [n]}
            for n, message in enumerate(body["messages"], start=1)
            for word in dict.fromkeys(word.strip(".,!") for word in message["text"].split() if word[0].isupper())
        ]  # fmt: skip
        ended = [{"fact": 1, "messages": [1], "reason": "Said once."}] if body["known"] else []
        return completion(json.dumps({"facts": facts, "ended": ended}))


class Life:
    """One process that has the store open, and derives."""

    def __init__(self, disk: FaultyDisk, by: str, ids: CountingIds) -> None:
        self.disk, self.by, self.model = disk, by, Quoting()
        ports = Ports(clock=ManualClock(), ids=ids)
        self.system = LocalSystem(store_on(disk), models=lambda _: self.model, ports=ports)

    def derivation(self, agent: Agent) -> MemoryDerivation:
        model = ModelFacts(DerivationModel(agent, "facts", "wise", 1))
        deriver = RuleFacts() if self.by == "rules" else model
        return MemoryDerivation(agent, "facts", deriver, messages_max=2)

    def derive(self, said: Sequence[str] = ()) -> dict[str, Any]:
        """Derive what is new, after the agent was told something. Return the rows of the tables."""

        async def work() -> dict[str, Any]:
            async with self.system.agent("sam", Settings(model="scripted", window=8192)) as agent:
                if said:
                    await agent.commit([UserMessage(text=text) for text in said], turn=0, step=0)
                    self.begun = len(self.disk.log)
                await self.derivation(agent).run()
                return {table: list(await agent.rows(table)) for table in TABLES}

        return asyncio.run(work())


@pytest.mark.parametrize("by", ["rules", "model"])
@pytest.mark.parametrize("count", few_and_all(3, part="agents"))
def test_a_derivation_that_is_killed_at_any_step_ends_as_an_undisturbed_one(by: str, count: int | None) -> None:
    """Rows of facts, cursors, sources and names are equal, row for row; a recorded answer is not asked for again."""
    disk, _ = begun()
    calm = Life(disk, by, CountingIds())
    expected = calm.derive(SAID)
    assert len(expected["derivations"]) == ASKS and len(expected["facts"]) > ASKS
    steps = range(calm.begun, len(disk.log))
    assert len(steps) >= (12 if by == "rules" else 24)
    for step in pick(steps, count, label=f"derivation {by}"):
        broken, _ = begun()
        ids = CountingIds()
        life = Life(broken, by, ids)
        broken.crash_at = step
        with pytest.raises(Crash):
            life.derive(SAID)
        broken.crash_at = None
        after = Life(broken.killed(), by, ids)
        assert after.derive() == expected, step
        asked = len(life.model.requests) + len(after.model.requests)
        # Only an answer that was not durable yet is asked for again.
        assert asked <= (ASKS + 1 if by == "model" else 0)


@pytest.mark.parametrize("by", ["rules", "model"])
def test_the_same_derivation_twice_adds_nothing(by: str) -> None:
    """Neither a record nor a request: the cursor is past every message."""
    disk, _ = begun()
    first = Life(disk, by, CountingIds())
    expected = first.derive(SAID)
    again = Life(disk.killed(), by, CountingIds())
    head = again.system.store.reader("sam").head("sam").seq
    assert again.derive() == expected and not again.model.requests
    assert again.system.store.reader("sam").head("sam").seq == head
