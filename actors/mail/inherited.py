"""Find in the log the budgets of other agents that a turn works within, and what was used of them for a message.

A message carries the budgets that its sender works within (`AgentMessageSent.budgets`). They hold for all turns of the
message: the one that it opens, and those of answers that its own answer rests on. Used by `Agent` and the postbox.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.mail.letters import budgets_in
from everlog.actors.models.daily_usage import charged_in, plus_used, spent_in, total
from everlog.events import (
    AgentConfigured,
    AgentMessageReceived,
    AgentReplyReceived,
    InheritedBudget,
    Record,
    Usage,
    is_erased,
)


class BudgetedAgent(Protocol):
    """Attributes and methods of an agent that may work within budgets of others."""

    agent_id: str

    async def rows(self, name: str) -> Sequence[Mapping[str, Any]]: ...

    def records(self, from_seq: int) -> Iterator[Record]: ...


async def budgets_of_turn(agent: BudgetedAgent, turn: int) -> Sequence[InheritedBudget]:
    """Return the budgets of other agents that an open turn works within, with what was used of them in it and in the
    earlier turns of the same message.
    """
    for row in await agent.rows("turn_records"):
        if row["turn"] != turn or is_erased(row["payload"]):
            continue
        task, budgets = 0, ""
        if row["type"] == AgentMessageReceived.kind and '"budgets":' in row["payload"]:
            task, budgets = row["seq"], msgspec.json.encode(msgspec.json.decode(row["payload"])["budgets"]).decode()
        elif row["type"] == AgentReplyReceived.kind and '"task":' in row["payload"]:
            asked = msgspec.json.decode(row["payload"])["task"]
            for one in await agent.rows("agent_messages"):
                if one["seq"] == asked and one["direction"] == "received":
                    task, budgets = asked, one["budgets"]
        if budgets:
            used = await used_for(agent, task)
            return [plus_used(one, used) for one in budgets_in(budgets) if one.agent != agent.agent_id]
    return ()


async def used_for(agent: BudgetedAgent, task: int) -> Mapping[str, Usage]:
    """Return the tokens that the turns of a received message took, with those of other agents for them, by model.

    `task`: seq of the `agent_message_received`.
    """
    before = [row["payload"] for row in await agent.rows("configurations") if row["seq"] < task and row["living"]]
    turns: set[int] = set()
    kept = []
    for record in agent.records(task):
        if record.seq == task or _answers(record, task):
            turns.add(record.turn)
        if record.turn in turns or record.type == AgentConfigured.kind:
            kept.append(record)
    return total(spent_in(kept, before[-1] if before else ""), charged_in(kept))


def _answers(record: Record, task: int) -> bool:
    if record.type != AgentReplyReceived.kind or is_erased(record.payload):
        return False
    return bool(msgspec.json.decode(record.payload).get("task") == task)
