"""Limit what agents use, each and all together, in tokens and in money.

Used by `Gateway`. Checking and reserving is one step without an `await`, so that concurrent requests cannot exceed a
budget together; every reservation must be settled, also after a failed request.

Before a request is sent, its least possible cost is checked against the budgets and reserved; its real cost counts
after the reply. An agent's own budget, from its configuration, is checked against the usage in its log. So is the
gateway's budget for each agent, which therefore survives a restart of the gateway. A request for which another agent's
message was the reason keeps that agent's budget too: against it counts what the message says was used, and at least
what this gateway knows of today.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from everlog.actors.gateway.gateway_limits import PREFIX, GatewayLimits, all_prices
from everlog.actors.models.daily_usage import DAY_US, tokens_of
from everlog.actors.models.prices import Price, PriceList
from everlog.actors.ports.effects import NOTHING, Clock, Spent
from everlog.events import InheritedBudget, OverBudget, Usage
from everlog.events.times import MICROSECONDS


class _Account:
    """Usage of an agent, or of all, and the reservations for requests in progress."""

    __slots__ = ("cost", "held", "held_cost", "tokens")

    def __init__(self) -> None:
        self.tokens = self.held = 0
        self.cost = self.held_cost = 0.0


_NO_ACCOUNT = _Account()
"""Stands for the account of an agent that has none, and never changes."""


def _emptied(accounts: Mapping[str, _Account]) -> dict[str, _Account]:
    """Return the accounts with reservations, and nothing used."""
    kept = {agent_id: account for agent_id, account in accounts.items() if account.held}
    for account in kept.values():
        account.tokens, account.cost = 0, 0.0
    return kept


class BudgetReservation(msgspec.Struct, frozen=True):
    """Reservation for one request."""

    agent_id: str
    tokens: int
    price: Price | None
    others: Sequence[str] = ()
    """Agents whose budgets the request keeps, beside that of its own."""


class _Budget(msgspec.Struct, frozen=True):
    """One limit, and its wording in a refusal."""

    name: str
    whose: str
    limit: float
    daily: bool
    setting: str
    """Name of the setting that changes the limit."""


class Budgets:
    """Accounts of one gateway; none are kept without a budget. Requests without an agent ("") count for all agents
    only.
    """

    def __init__(self, limits: GatewayLimits, clock: Clock, priced: Callable[[], PriceList] | None = None) -> None:
        """Create the accounts. `priced` returns the current prices; None: those of the limits and of the shipped
        list.
        """
        self._limits = limits
        self._clock = clock
        self._priced = priced or partial(all_prices, limits)
        self._prices = PriceList()
        """Prices at the newest request."""
        self._all = _Account()
        self._agents: dict[str, _Account] = {}
        self._charged: dict[str, _Account] = {}
        """Usage of today by others for an agent, in turns that its messages brought about."""
        self._charged_day = clock.now() // DAY_US
        self._any = any((limits.agent_tokens_max, limits.agent_cost_max, limits.all_tokens_max, limits.all_cost_max))
        self._day = self._period()

    def hold(self, agent_id: str, model: str, tokens: int, spent: Spent = NOTHING) -> BudgetReservation | None:
        """Reserve the least cost of a request, and return the reservation; None if no budget applies.

        `spent`: usage of today according to the agent's log; at least that counts. Raises OverBudget, and ModelError if
        prices cannot be read; nothing is reserved then.
        """
        if not (self._any or spent.tokens_max or spent.cost_max or spent.inherited):
            return None
        self._prices = self._priced()
        account = self._account(agent_id)
        if account is not None:
            self._know(agent_id, account, spent)
        price = self._prices.of(model)
        self._check_own(agent_id, account, model, tokens, spent)
        for one in spent.inherited:
            self._check_inherited(agent_id, one, model, tokens)
        limits, daily = self._limits, self._limits.budget_per == "day"
        each = [("agent", f"the agent {agent_id!r}", account, limits.agent_tokens_max, limits.agent_cost_max)]
        whole = ("all", "all agents", self._all, limits.all_tokens_max, limits.all_cost_max)
        for scope, whose, held_against, tokens_max, cost_max in [*each, whole]:
            if held_against is not None:
                named = f"{PREFIX}{scope}_".upper()
                if tokens_max:
                    budget = _Budget(f"{scope} tokens", whose, tokens_max, daily, f"{named}TOKENS_MAX")
                    self._check(budget, held_against.tokens, held_against.held, tokens)
                if cost_max:
                    budget = _Budget(f"{scope} cost", whose, cost_max, daily, f"{named}COST_MAX")
                    self._check_cost(budget, held_against.cost, held_against.held_cost, model, tokens)
        others = [one.agent for one in spent.inherited]
        self._set_aside(account, others, tokens, price)
        return BudgetReservation(agent_id, tokens, price, others)

    def settle(self, held: BudgetReservation | None, used: Usage) -> None:
        """End a request: release its reservation, and count what it used."""
        if held is None:
            return
        account = self._account(held.agent_id)
        self._set_aside(account, held.others, -held.tokens, held.price)
        for one in (account, self._all, *map(self._charged_to, held.others)):
            if one is not None:
                one.tokens += used.total
                one.cost += held.price.cost(used) if held.price else 0

    @property
    def spent(self) -> tuple[int, float]:
        """Tokens and cost that all agents have used in this period; zeros without a budget."""
        return self._all.tokens, self._all.cost

    def _account(self, agent_id: str) -> _Account | None:
        """Return the account of an agent, in the current period; None for a request without an agent."""
        self._begin_day()
        return self._agents.setdefault(agent_id, _Account()) if agent_id else None

    def _charged_to(self, agent_id: str) -> _Account:
        """Return the account of what others use today for an agent."""
        return self._charged.setdefault(agent_id, _Account())

    def _set_aside(self, account: _Account | None, others: Sequence[str], tokens: int, price: Price | None) -> None:
        for one in (account, self._all, *map(self._charged_to, others)):
            if one is not None:
                one.held += tokens
                one.held_cost += price.of(tokens, 0) if price else 0

    def _know(self, agent_id: str, account: _Account, spent: Spent) -> None:
        """Count at least what the agent's log says, if it is of today: after a restart the gateway's own accounts are
        empty.
        """
        if spent.day != self._clock.now() // DAY_US:
            return
        missing = max(tokens_of(spent.models) - account.tokens, 0)
        missing_cost = max(self._prices.cost(spent.models) - account.cost, 0)
        for one in (account, self._all):
            one.tokens += missing
            one.cost += missing_cost
        if spent.charged:
            charged = self._charged_to(agent_id)
            charged.tokens = max(charged.tokens, tokens_of(spent.charged))
            charged.cost = max(charged.cost, self._prices.cost(spent.charged))

    def _check_own(self, agent_id: str, account: _Account | None, model: str, tokens: int, spent: Spent) -> None:
        """Check the limits in the agent's configuration, against the usage in its log, and that of others for it."""
        charged = self._charged.get(agent_id, _NO_ACCOUNT)
        held, held_cost = (account.held, account.held_cost) if account else (0, 0.0)
        whose, setting = f"the agent {agent_id!r}", "of its configuration"
        if spent.tokens_max:
            budget = _Budget("day tokens", whose, spent.tokens_max, True, f"day_tokens_max {setting}")
            used = tokens_of(spent.models) + charged.tokens
            self._check(budget, used, held + charged.held, tokens)
        if spent.cost_max:
            budget = _Budget("day cost", whose, spent.cost_max, True, f"day_cost_max {setting}")
            self._check_priced(budget, [*spent.models, *spent.charged])
            used_cost = self._prices.cost(spent.models) + charged.cost
            self._check_cost(budget, used_cost, held_cost + charged.held_cost, model, tokens)

    def _check_inherited(self, agent_id: str, inherited: InheritedBudget, model: str, tokens: int) -> None:
        """Check the budget of another agent, for which this one works."""
        charged = self._charged.get(inherited.agent, _NO_ACCOUNT)
        own = self._agents.get(inherited.agent, _NO_ACCOUNT) if self._limits.budget_per == "day" else _NO_ACCOUNT
        whose, setting = f"the agent {inherited.agent!r}, for which {agent_id!r} works,", "of its configuration"
        if inherited.tokens_max:
            budget = _Budget("inherited tokens", whose, inherited.tokens_max, True, f"day_tokens_max {setting}")
            used = max(tokens_of(inherited.used), own.tokens + charged.tokens)
            self._check(budget, used, own.held + charged.held, tokens)
        if inherited.cost_max:
            budget = _Budget("inherited cost", whose, inherited.cost_max, True, f"day_cost_max {setting}")
            self._check_priced(budget, list(inherited.used))
            cost = max(self._prices.cost(inherited.used), own.cost + charged.cost)
            self._check_cost(budget, cost, own.held_cost + charged.held_cost, model, tokens)

    def _check_cost(self, budget: _Budget, spent: float, held: float, model: str, tokens: int) -> None:
        self._check_priced(budget, [model])
        price = self._prices.of(model)
        self._check(budget, spent, held, price.of(tokens, 0) if price else 0)

    def _check_priced(self, budget: _Budget, models: list[str]) -> None:
        """Raise OverBudget for a model without a known price: it would count as free."""
        unknown = [model for model in models if self._prices.of(model) is None]
        if unknown:
            raise OverBudget(
                f"The budget of {budget.whose} is in money ({budget.setting}), and no price of {unknown[0]!r} is "
                f"known, so that nothing can be held against it. Nothing was sent. Say what it costs: price_in and "
                f'price_out of [models."{unknown[0]}"] in models.toml (0 where it is free), or {PREFIX}PRICE_IN and '
                f"{PREFIX}PRICE_OUT for all models. Your message is kept, and answered together with the next.",
                budget=budget.name,
                limit=budget.limit,
                spent=0,
            )

    def _check(self, budget: _Budget, spent: float, held: float, wanted: float) -> None:
        if spent + held + wanted <= budget.limit:
            return
        when = "today" if budget.daily else "since the gateway began"
        unit = budget.name.split()[-1]
        raise OverBudget(
            f"The budget of {budget.whose} does not allow this request: {spent:,.10g} of {budget.limit:,.10g} ({unit}) "
            f"are used up {when}, and it takes at least {wanted:,.10g}, beside what is under way. Nothing was sent. "
            f"Raise {budget.setting}{', or wait until 0:00 UTC' if budget.daily else ''}. Your message is kept, and "
            "answered together with the next.",
            budget=budget.name,
            limit=budget.limit,
            spent=spent,
            retry_after_s=self._day_left_s() if budget.daily else 0,
        )

    def _begin_day(self) -> None:
        """Reset all accounts on a new day. Reservations stay, and count when their requests end."""
        day = self._clock.now() // DAY_US
        if day > self._charged_day:
            self._charged_day = day
            self._charged = _emptied(self._charged)
        today = self._period()
        if today > self._day:
            self._day = today
            self._agents = _emptied(self._agents)
            self._all.tokens, self._all.cost = 0, 0.0

    def _period(self) -> int:
        return self._clock.now() // DAY_US if self._limits.budget_per == "day" else 0

    def _day_left_s(self) -> float:
        return (DAY_US - self._clock.now() % DAY_US) / MICROSECONDS
