"""Limit what agents use, each and all together, in tokens and in money.

Used by `Gateway`. Checking and reserving is one step without an `await`, so that concurrent requests cannot exceed a
budget together; every reservation must be settled, also after a failed request.

Before a request is sent, its least possible cost is checked against the budgets and reserved; its real cost counts
after the reply. An agent's own budget, from its configuration, is checked against the usage in its log. So is the
gateway's budget for each agent, which therefore survives a restart of the gateway.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from everlog.actors.gateway.gateway_limits import PREFIX, GatewayLimits, all_prices
from everlog.actors.models.daily_usage import DAY_US
from everlog.actors.models.prices import Price, PriceList
from everlog.actors.ports.effects import NOTHING, Clock, Spent
from everlog.events import OverBudget, Usage
from everlog.events.times import MICROSECONDS


class _Account:
    """Usage of an agent, or of all, and the reservations for requests in progress."""

    __slots__ = ("cost", "held", "held_cost", "tokens")

    def __init__(self) -> None:
        self.tokens = self.held = 0
        self.cost = self.held_cost = 0.0


class BudgetReservation(msgspec.Struct, frozen=True):
    """Reservation for one request."""

    agent_id: str
    tokens: int
    price: Price | None


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
        self._any = any((limits.agent_tokens_max, limits.agent_cost_max, limits.all_tokens_max, limits.all_cost_max))
        self._day = self._period()

    def hold(self, agent_id: str, model: str, tokens: int, spent: Spent = NOTHING) -> BudgetReservation | None:
        """Reserve the least cost of a request, and return the reservation; None if no budget applies.

        `spent`: usage of today according to the agent's log; at least that counts. Raises OverBudget, and ModelError if
        prices cannot be read; nothing is reserved then.
        """
        if not (self._any or spent.tokens_max or spent.cost_max):
            return None
        self._prices = self._priced()
        account = self._account(agent_id)
        if account is not None:
            self._know(account, spent)
        price = self._prices.of(model)
        self._check_own(agent_id, account, model, tokens, spent)
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
        self._set_aside(account, tokens, price)
        return BudgetReservation(agent_id, tokens, price)

    def settle(self, held: BudgetReservation | None, used: Usage) -> None:
        """End a request: release its reservation, and count what it used."""
        if held is None:
            return
        account = self._account(held.agent_id)
        self._set_aside(account, -held.tokens, held.price)
        for one in (account, self._all):
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

    def _set_aside(self, account: _Account | None, tokens: int, price: Price | None) -> None:
        for one in (account, self._all):
            if one is not None:
                one.held += tokens
                one.held_cost += price.of(tokens, 0) if price else 0

    def _know(self, account: _Account, spent: Spent) -> None:
        """Count at least what the agent's log says, if it is of today: after a restart the gateway's own accounts are
        empty.
        """
        if spent.day != self._clock.now() // DAY_US:
            return
        missing = max(spent.tokens - account.tokens, 0)
        missing_cost = max(self._prices.cost(spent.models) - account.cost, 0)
        for one in (account, self._all):
            one.tokens += missing
            one.cost += missing_cost

    def _check_own(self, agent_id: str, account: _Account | None, model: str, tokens: int, spent: Spent) -> None:
        """Check the limits in the agent's configuration, against the usage in its log alone."""
        held, held_cost = (account.held, account.held_cost) if account else (0, 0.0)
        whose, setting = f"the agent {agent_id!r}", "of its configuration"
        if spent.tokens_max:
            budget = _Budget("day tokens", whose, spent.tokens_max, True, f"day_tokens_max {setting}")
            self._check(budget, spent.tokens, held, tokens)
        if spent.cost_max:
            budget = _Budget("day cost", whose, spent.cost_max, True, f"day_cost_max {setting}")
            self._check_priced(budget, list(spent.models))
            self._check_cost(budget, self._prices.cost(spent.models), held_cost, model, tokens)

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
        today = self._period()
        if today > self._day:
            self._day = today
            self._agents = {agent_id: account for agent_id, account in self._agents.items() if account.held}
            for account in (self._all, *self._agents.values()):
                account.tokens, account.cost = 0, 0.0

    def _period(self) -> int:
        return self._clock.now() // DAY_US if self._limits.budget_per == "day" else 0

    def _day_left_s(self) -> float:
        return (DAY_US - self._clock.now() % DAY_US) / MICROSECONDS
