"""Derive what is due while an agent is idle, as its settings want it, and stop as soon as a command arrives.

A host runs it between turns and before it unloads the agent. It may be cancelled at any point: a commit in progress is
finished first, and the cursors are in the log, so the next time continues there. Nothing here keeps state of its own
but the head at which nothing was left to do. What derives is imported when something is derived: most agents derive
nothing by themselves.
"""

import asyncio
from typing import Any, cast

from everlog.actors.agent.agent import Agent
from everlog.events import ModelError

FACT_BATCHES_MAX = 20
"""Most batches of messages from which facts are derived at one time; the next time continues."""


class IdleDerivation:
    """Derivation of one activated agent."""

    __slots__ = ("_agent", "_done_at")

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._done_at = 0
        """Head after which nothing new was written since the agent had a long rest."""

    @property
    def wanted(self) -> bool:
        """True if the agent's settings name a deriver."""
        return bool(self._agent.deriving.deriver)

    async def run(self, *, rested: bool) -> str:
        """Derive what is due. Return the reason in words if it ended early; empty if it did not.

        Between two turns only a full measure of importance makes the agent reflect; `rested`: anything new does.
        """
        settings, agent = self._agent.deriving, cast("Agent", _Unbroken(self._agent))
        if not settings.deriver:
            return ""
        try:
            async with self._agent.derivation_lock:
                if self._agent.head != self._done_at:
                    await self._think(agent, rested=rested)
                if await self._agent.timers():
                    from everlog.actors.deriving.plan_commands import PlanDivision

                    await PlanDivision(agent, settings.deriver, await generation_in_use(agent)).run()
        except ModelError as error:
            return f"{self._agent.agent_id!r} could not derive memories while it was idle; nothing is lost. {error}"
        if rested:
            self._done_at = self._agent.head
        return ""

    async def _think(self, agent: Agent, *, rested: bool) -> None:
        from everlog.actors.deriving.block_edits import BlockDerivation
        from everlog.actors.deriving.derived_commands import fact_derivation
        from everlog.actors.deriving.importance_rating import rate_messages
        from everlog.actors.deriving.reflection import RULES, Reflection

        settings = self._agent.deriving
        generation = await generation_in_use(agent)
        reflection = Reflection(agent, settings.deriver, generation)
        need = await reflection.need(0 if rested else settings.reflect_at)
        if not rested and need.importance < settings.reflect_at:
            return
        model = "" if settings.deriver == RULES else settings.deriver
        await fact_derivation(agent, model, generation).run(FACT_BATCHES_MAX)
        if settings.rate_importance and settings.deriver != RULES and need.messages:
            await rate_messages(agent, settings.deriver, need.messages[0].seq - 1, generation)
        if need.messages:
            await reflection.run()
        if settings.blocks:
            await BlockDerivation(agent, settings.blocks, settings.deriver, generation).run()


async def generation_in_use(agent: Agent) -> int:
    """Return the generation of derived memories that was chosen last; 1 before any choice."""
    return int(next(row["generation"] for row in await agent.rows("generations") if row["in_use"]))


class _Unbroken:
    """The agent as a derivation sees it: cancelling the derivation does not interrupt a commit."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    async def commit(self, *arguments: Any, **named: Any) -> Any:
        """Commit like the agent. If the caller is cancelled meanwhile, wait until the commit has ended."""
        work = asyncio.ensure_future(self._agent.commit(*arguments, **named))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if not work.done():
                await asyncio.wait([work])
            if not work.cancelled():
                work.exception()  # mark as retrieved: the next use of the log meets the same failure
            raise
