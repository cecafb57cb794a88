"""Count an agent's token usage of a day: from its log when first needed, then from each answer. Messages to other
agents carry the budgets that it works within, and their answers say what was used of them.

Used by the agent's `ModelPool`, which enforces budgets, and by the gateway.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.models.token_usage import usage_of
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import Clock, ModelResponse, Spent
from everlog.actors.ports.journal import Journal
from everlog.events import (
    AgentConfigured,
    AgentForked,
    AgentMessageSent,
    AgentReplyReceived,
    DerivationReplied,
    Event,
    InheritedBudget,
    ModelFailed,
    ModelReply,
    ModelSwitched,
    Record,
    ReplyRejected,
    Summary,
    Usage,
    event_of,
    is_erased,
)

DAY_US = 86_400_000_000
"""Microseconds of a day."""
BYTES_PER_TOKEN = 4
"""Bytes of text for one token: an estimate for requests before they are sent, and for answers without usage figures."""


def usage_of_answer(request: bytes, answer: ModelResponse) -> Usage:
    """Return the usage that an answer reports; an estimate by its bytes if it reports none."""
    answer_usage = usage_of(answer.raw)
    if answer_usage.total:
        return answer_usage
    asked, answered = len(request) // BYTES_PER_TOKEN, len(answer.raw) // BYTES_PER_TOKEN
    return Usage(prompt=asked, completion=answered, total=asked + answered)


def total(*usages: Mapping[str, Usage]) -> dict[str, Usage]:
    """Return the sum of usages by model."""
    found: dict[str, Usage] = {}
    for models in usages:
        for name, usage in models.items():
            found[name] = plus(found.get(name, Usage()), usage)
    return found


def tokens_of(models: Mapping[str, Usage]) -> int:
    """Return the tokens of all models together."""
    return sum(usage.total for usage in models.values())


def plus(one: Usage, other: Usage) -> Usage:
    """Return the sum of two usages."""
    return Usage(
        prompt=one.prompt + other.prompt,
        completion=one.completion + other.completion,
        total=one.total + other.total,
        cached=one.cached + other.cached,
    )


def spent_in(records: Iterable[Record], configuration: str) -> dict[str, Usage]:
    """Return the tokens of the calls in `records`, by the model that was called.

    `records` are those of one agent in order. `configuration` is the payload of the configuration in force before them,
    or empty. Erased records count as nothing. Calls before a fork point count for the parent.
    """
    models: dict[str, Usage] = {}
    own, summarizer = _asks(configuration) if configuration else ("", "")
    switched: dict[int, str] = {}
    for record in records:
        if record.type not in _KINDS or is_erased(record.payload):
            continue
        if record.type == AgentForked.kind:
            # What came before is the parent's usage.
            models.clear()
        elif record.type == AgentConfigured.kind:
            own, summarizer = _asks(record.payload)
        else:
            event = event_of(record)
            if isinstance(event, _Answered) and event.raw:
                of_summary = isinstance(event, Summary) or (
                    isinstance(event, ReplyRejected) and event.purpose == "summary"
                )
                named = event.model if isinstance(event, ModelFailed | ModelSwitched | DerivationReplied) else ""
                name = named or switched.get(record.turn) or (summarizer if of_summary else "") or own
                models[name] = plus(models.get(name, Usage()), _usage(event))
            if isinstance(event, ModelSwitched):
                switched[record.turn] = event.to
    models.pop(OFFLINE, None)
    return models


def charged_in(records: Iterable[Record]) -> dict[str, Usage]:
    """Return the tokens that other agents used for the agent of `records`, as their answers report them, by model.

    Erased answers count as nothing, and those before a fork point for the parent.
    """
    models: dict[str, Usage] = {}
    for record in records:
        if record.type == AgentForked.kind:
            models = {}
        elif record.type == AgentReplyReceived.kind and not is_erased(record.payload):
            event = event_of(record)
            if isinstance(event, AgentReplyReceived):
                models = total(models, event.used)
    return models


def _asks(configuration: str) -> tuple[str, str]:
    """Return the agent's own model and its model for summaries."""
    found = msgspec.json.decode(configuration)
    return found["model"], found.get("summarizer", "")


_Answered = ModelReply | ReplyRejected | ModelFailed | ModelSwitched | Summary | DerivationReplied
_EVENTS = (
    AgentConfigured,
    AgentForked,
    ModelSwitched,
    ModelFailed,
    ModelReply,
    ReplyRejected,
    Summary,
    DerivationReplied,
)
_KINDS = frozenset(kind.kind for kind in _EVENTS)
_COUNTED = _KINDS | {AgentReplyReceived.kind}


def _usage(event: _Answered) -> Usage:
    """Return the recorded usage. Without one, return that of the raw reply, or an estimate by its bytes."""
    if event.usage.total:
        return event.usage
    return usage_of_answer(b" " * event.context_bytes, ModelResponse(event.raw, 0))


LoggedUsage = tuple[Mapping[str, Usage], Mapping[str, Usage]]
"""Usage of an agent, and that of others for it, both by the model that was called."""


class Spender(Protocol):
    """Attributes and methods of an agent whose usage is counted."""

    agent_id: str

    async def rows(self, name: str, as_of: int | None = None) -> Sequence[Mapping[str, Any]]: ...


async def logged_usage(agent: Spender, journal: Journal, since: int) -> LoggedUsage:
    """Return an agent's usage since a time (microseconds UTC) from its log, and that of others for it."""
    first = journal.seq_at(agent.agent_id, since - 1) + 1
    before = [row["payload"] for row in await agent.rows("configurations") if row["seq"] < first and row["living"]]
    kept = [record for record in journal.read(agent.agent_id, first) if record.type in _COUNTED]
    return spent_in(kept, before[-1] if before else ""), charged_in(kept)


class Ledger:
    """Usage of one agent. The log is read before the first call of a model that may cost something,
    and once each day.
    """

    __slots__ = ("_charged", "_clock", "_cost_max", "_inherited", "_log", "_models", "_today", "_tokens_max")

    def __init__(self, clock: Clock, log: Callable[[int], Awaitable[LoggedUsage]]) -> None:
        """`log` returns the usage since a time (microseconds UTC) from the agent's log."""
        self._clock = clock
        self._log = log
        self._models: dict[str, Usage] = {}
        self._charged: dict[str, Usage] = {}
        self._inherited: Sequence[InheritedBudget] = ()
        """Budgets of other agents that the running turn works within."""
        self._today = -1
        self._tokens_max = 0
        self._cost_max = 0.0

    def begin(self) -> None:
        """Start from zero for an agent that was just created: its log has no usage to read."""
        self._today = self._day()

    def limit(self, configured: AgentConfigured) -> None:
        """Apply the limits of a configuration."""
        self._tokens_max, self._cost_max = configured.day_tokens_max, configured.day_cost_max

    def inherit(self, budgets: Sequence[InheritedBudget]) -> None:
        """Work within budgets of other agents from now on; none: within the agent's own only."""
        self._inherited = budgets

    async def spent(self) -> Spent:
        """Return today's usage and its limits."""
        today = self._day()
        if today != self._today:
            models, charged = await self._log(today * DAY_US)
            self._models, self._charged, self._today = dict(models), dict(charged), today
        return Spent(
            today, dict(self._models), self._tokens_max, self._cost_max, dict(self._charged), tuple(self._inherited)
        )

    def add(self, name: str, request: bytes, answer: ModelResponse) -> None:
        """Add the usage of an answer."""
        used = {name: usage_of_answer(request, answer)}
        self._models = total(self._models, used)
        self._inherited = [plus_used(budget, used) for budget in self._inherited]

    def charge(self, used: Mapping[str, Usage]) -> None:
        """Add what another agent used for this one, as its answer reports it, which is in the log already."""
        self._charged = total(self._charged, used)

    async def carried(self, agent_id: str, events: Sequence[Event]) -> Sequence[Event]:
        """Return events of the agent of which messages to others carry the budgets that it works within."""
        limited = self._tokens_max or self._cost_max
        if not (limited or self._inherited) or not any(isinstance(event, AgentMessageSent) for event in events):
            return events
        spent = await self.spent()
        budgets = list(spent.inherited)
        if limited:
            used = total(spent.models, spent.charged)
            own = InheritedBudget(agent=agent_id, tokens_max=self._tokens_max, cost_max=self._cost_max, used=used)
            budgets.insert(0, own)
        return [
            msgspec.structs.replace(event, budgets=budgets) if isinstance(event, AgentMessageSent) else event
            for event in events
        ]

    def _day(self) -> int:
        return self._clock.now() // DAY_US


def plus_used(budget: InheritedBudget, used: Mapping[str, Usage]) -> InheritedBudget:
    """Return a budget of which more is used."""
    return msgspec.structs.replace(budget, used=total(budget.used, used))
