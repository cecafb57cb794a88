"""Reflect: conclude insights from what an agent remembers, and commit them with the cursor.

A reflection is one commit after the model's answers, each of which is committed when it arrives: an edit must keep
that, because after a crash the recorded answers are read again, and no model is asked twice. Used by `idle_derivation`
and by the command; never in a turn.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from everlog.actors.agent.agent import Agent
from everlog.actors.derivation.conclusions import DerivationReport, Deriver, Evidence, Material
from everlog.actors.derivation.insight_model import NEWEST_MEMORIES, InsightModel
from everlog.actors.derivation.insight_rules import InsightRules
from everlog.actors.deriving.derivation_model import DerivationModel
from everlog.actors.deriving.memory_derivation import MemoryDerivation, evidence_of
from everlog.events import AgentCreated, AgentDeleted, InsightNoted

IMPORTANCE_MAX = 10
"""Largest importance of one message."""
RULES = "rules"
"""Name of a deriver that stands for the rules of this version."""
MESSAGES_PER_QUESTION = 15
INSIGHTS_PER_QUESTION = 5
FACTS_PER_QUESTION = 10
"""Memories that a question is answered from: the messages that a search finds, filled
up with the newest, and the newest insights and facts."""


class Need(NamedTuple):
    """Messages since the last reflection."""

    messages: Sequence[Evidence]
    importance: int
    """Sum of their importance."""


class Reflection:
    """Reflections of one agent, in one generation."""

    def __init__(self, agent: Agent, deriver: str = RULES, generation: int = 1) -> None:
        """Create the derivation by a `deriver`: "rules", or the name of the model that is asked."""
        self._agent, self._generation = agent, generation
        self._by_model = deriver != RULES
        self._deriver: Deriver = InsightRules()
        if self._by_model:
            model = DerivationModel(agent, "reflection", deriver, generation)
            self._deriver = InsightModel(model, self._find)
        self._derivation = MemoryDerivation(agent, "reflection", self._deriver, generation)
        self._insights: Sequence[Evidence] = ()
        self._facts: Sequence[Evidence] = ()

    async def need(self, importance_min: int = 0) -> Need:
        """Return the messages since the last reflection, and the sum of their importance; 0 if there are too few for
        `importance_min`, because importance is looked up for all messages of the agent.
        """
        after = await self._derivation.cursor()
        if self._agent.head <= after:
            return Need([], 0)
        messages = self._messages(after)
        if not messages or len(messages) * IMPORTANCE_MAX < importance_min:
            return Need(messages, 0)
        rated = {row["seq"]: int(row["importance"]) for row in await self._agent.rows("importance")}
        said = [msgspec.structs.replace(one, importance=rated.get(one.seq, 0)) for one in messages]
        return Need(said, sum(one.importance for one in said))

    async def run(self, importance_min: int = 0) -> DerivationReport:
        """Reflect once on what was said since the last reflection. Return what came of it.

        Nothing is committed if nothing was said, or if its importance is below `importance_min`. Raise ModelError, also
        OverBudget: answers so far are in the log, and the next reflection reads them again.
        """
        need = await self.need(importance_min)
        report = DerivationReport(derivation="reflection", generation=self._generation, deriver=self._deriver.name)
        if not need.messages or need.importance < importance_min:
            return report
        facts = self._own(await self._agent.rows("generation_facts"))
        names = {row["alias"]: row["entity"] for row in self._own(await self._agent.rows("generation_names"))}
        self._insights = await self._noted()
        self._facts = [_fact(row) for row in sorted(facts, key=_seq) if row["believed"]]
        messages = self._newest() if self._by_model else need.messages
        derived = [*self._insights, *self._facts] if self._by_model else self._insights
        material = Material(
            agent_id=self._agent.agent_id, generation=self._generation, zone=self._agent.zone, now=self._agent.now(),
            evidence=sorted([*messages, *derived], key=lambda one: one.seq), facts=facts, names=names,
        )  # fmt: skip
        conclusions = await self._deriver.derive(material)
        last = need.messages[-1].seq
        left, refused = await self._derivation.conclude(
            conclusions, need.messages[0].seq, last, evidence=material.evidence, importance=need.importance
        )
        return msgspec.structs.replace(
            report, read=len(need.messages), noted=len(left) - 1, refused=refused, to_seq=last
        )

    def _own(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return the rows of this generation, which may not be in use; before it has any, those of all generations."""
        own = [row for row in rows if row["view"] == self._generation]
        return own or [row for row in rows if row["view"] == 0]

    async def _noted(self) -> list[Evidence]:
        """Return the insights of this generation, which may not be in use, by seq."""
        rows = [row for row in await self._agent.rows("derived_records") if row["type"] == InsightNoted.kind]
        counted = (row for row in rows if row["generation"] in (0, self._generation) and not row["withdrawn"])
        return [_insight(row) for row in sorted(counted, key=_seq)]

    def _messages(self, after: int) -> list[Evidence]:
        """Return the messages after a seq, of this incarnation of the agent."""
        found: list[Evidence] = []
        for record in self._agent.records(after + 1):
            if record.type in (AgentCreated.kind, AgentDeleted.kind):
                found = []
            elif (said := evidence_of(record)) is not None:
                found.append(said)
        return found

    def _newest(self) -> list[Evidence]:
        """Return the newest messages, at most NEWEST_MEMORIES, looking back until there are enough."""
        span = NEWEST_MEMORIES * 4
        while True:
            after = max(self._agent.head - span, 0)
            found = self._messages(after)
            if len(found) >= NEWEST_MEMORIES or not after:
                return found[-NEWEST_MEMORIES:]
            span *= 4

    async def _find(self, question: str) -> Sequence[Evidence]:
        """Return the memories that a question is answered from, by seq."""
        page = await self._agent.searcher(None, self._agent.turn).recall(question, 0, MESSAGES_PER_QUESTION)
        said = {hit.seq: Evidence(hit.seq, hit.at, hit.role, hit.name, hit.text) for hit in page.results}
        # A question need not share a word with what answers it: the newest messages fill the rest.
        for one in reversed(self._newest()):
            if len(said) < MESSAGES_PER_QUESTION:
                said.setdefault(one.seq, one)
        derived = [*self._insights[-INSIGHTS_PER_QUESTION:], *self._facts[-FACTS_PER_QUESTION:]]
        return sorted([*said.values(), *derived], key=lambda one: one.seq)


def _seq(row: Mapping[str, Any]) -> int:
    return int(row["seq"])


def _insight(row: Mapping[str, Any]) -> Evidence:
    event = msgspec.json.decode(row["payload"], type=InsightNoted)
    return Evidence(row["seq"], row["recorded_at"], "derived", "", row["text"], event.depth, event.importance)


def _fact(row: Mapping[str, Any]) -> Evidence:
    return Evidence(row["seq"], row["noted_at"], "derived", "", row["sentence"])
