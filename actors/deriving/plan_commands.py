"""Make and change plans by command, and divide items shortly before they are due.

A plan and its timers are one commit, and so are a change and the timers that it sets or cancels. The state of the log
says what is divided: a division that was interrupted is made again, and one that was committed is not.
"""

from collections.abc import Sequence

from everlog.actors.agent.agent import Agent
from everlog.actors.derivation import plan_model, plan_rules
from everlog.actors.derivation.conclusions import DerivationReport, check_sources, source_kinds
from everlog.actors.derivation.insight_rules import RULES
from everlog.actors.deriving.derivation_model import DerivationModel
from everlog.actors.deriving.memory_commands import ChangePlan, MakePlan
from everlog.events import Event, MemoriesDerived, PlanChanged, PlanItem, PlanMade, Record

DIVISIONS_MAX = 10
"""Most items that one run divides."""


async def make_plan(agent: Agent, command: MakePlan) -> int:
    """Make a plan with its timers. Return its seq, also for a repeated command. Raise BadInput."""

    async def write() -> Record:
        sources = command.sources or await _newest_message(agent)
        plan = plan_rules.made(
            command.text, command.items, now=agent.now(), level=command.level, sources=sources, deriver=command.deriver
        )
        if command.sources:
            check_sources(plan.sources, agent.head + 1, _kinds(agent, plan.sources))
        events = lambda seq: plan_rules.with_timers(plan, seq)  # noqa: E731
        return (await agent.commit(events, turn=agent.turn, step=0, ids=[command.id]))[0]

    return (await agent.once(command.id, write, PlanMade)).seq


async def change_plan(agent: Agent, command: ChangePlan) -> int:
    """Change an item of a plan with its timers. Return the seq of the change. Raise BadInput."""

    async def write() -> Record:
        timers = {row["timer"] for row in await agent.rows("timers")}
        if command.sources:
            check_sources(command.sources, agent.head + 1, _kinds(agent, command.sources))
        events = plan_rules.changed(
            await agent.rows("plan_items"), command.plan, command.item, command.change, command.reason,
            now=agent.now(), timers=timers, start=command.start or None, sources=command.sources,
            deriver=command.deriver,
        )  # fmt: skip
        return (await agent.commit(events, turn=agent.turn, step=0, ids=[command.id]))[0]

    return (await agent.once(command.id, write, PlanChanged)).seq


def _kinds(agent: Agent, seqs: Sequence[int]) -> dict[int, str]:
    wanted = set(seqs)
    first = max(min(wanted), 1)
    return source_kinds(record for record in agent.records(first) if record.seq in wanted)


async def _newest_message(agent: Agent) -> Sequence[int]:
    """Return the newest message of a user, on which a plan rests that names no source; nothing before any message."""
    rows = await agent.rows("recall_memory")
    return [max(said)] if (said := [row["seq"] for row in rows if row["role"] == "user"]) else []


class PlanDivision:
    """Division of the items of one agent that are due soon."""

    def __init__(self, agent: Agent, deriver: str = "rules", generation: int = 1) -> None:
        """Create the derivation by a `deriver`: "rules", or the name of the model that is asked."""
        self._agent, self._generation = agent, generation
        self._model = None if deriver == "rules" else DerivationModel(agent, "plans", deriver, generation)

    async def run(self) -> DerivationReport:
        """Divide each item that is due within two hours, at most DIVISIONS_MAX, each in one commit. Return what came of
        it. Raise ModelError; divisions before are committed.
        """
        name = self._model.name if self._model is not None else RULES
        noted, refused, last = 0, [], 0
        for _ in range(DIVISIONS_MAX):
            # Read again each time: a part of a division may be due soon itself.
            rows = await self._agent.rows("plan_items")
            due = plan_rules.to_divide(rows, self._agent.now())
            if not due:
                break
            row, cause, items = due[0], None, None
            if self._model is not None:
                items, cause = await plan_model.divide(self._model, row, self._agent.now(), self._agent.zone)
                if items is None:
                    refused.append("Nothing could be taken from an answer of the model; the rules cut the item.")
            await self._commit(row, items, cause, refused=int(self._model is not None and items is None))
            noted, last = noted + 1, row["plan"]
        return DerivationReport(
            derivation="plans", generation=self._generation, deriver=name, read=noted, noted=noted, refused=refused,
            to_seq=last,
        )  # fmt: skip

    async def _commit(
        self, row: plan_rules.PlanRow, items: Sequence[PlanItem] | None, cause: str | None, *, refused: int
    ) -> None:
        now, by_rules = self._agent.now(), items is None
        timers = {one["timer"] for one in await self._agent.rows("timers")}
        parts = plan_rules.parts(row, now) if items is None else items
        deriver = RULES if by_rules or self._model is None else self._model.name
        plan = plan_rules.made(
            plan_rules.division_title(row, by_rules=by_rules), parts, now=min(now, parts[0].start),
            level=plan_rules.BELOW[row["level"]], sources=[row["plan"]], deriver=deriver, generation=self._generation,
            parent=row["plan"], parent_item=row["item"],
        )  # fmt: skip
        cursor = MemoriesDerived(
            derivation="plans", from_seq=row["plan"], to_seq=row["plan"], noted=1, refused=refused, deriver=deriver,
            generation=self._generation,
        )  # fmt: skip

        def events(seq: int) -> list[Event]:
            return [cursor, *plan_rules.divided(row, plan, seq + 1, timers)]

        await self._agent.commit(events, turn=self._agent.turn, step=0, cause=cause)
