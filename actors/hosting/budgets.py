"""How much agents may use up, each and all together: in tokens, and in money where prices are known.

A request is held against a budget before it is sent, by what it will cost at least; what it did cost counts after.
"""

from actors.effects import Clock
from actors.hosting.limits import PREFIX, Limits
from events import OverBudget, Usage

DAY_US = 86_400_000_000
MILLION = 1_000_000


class _Account:
    """What somebody has used up, and the tokens set aside for their requests on the way."""

    __slots__ = ("cost", "held", "tokens")

    def __init__(self) -> None:
        self.tokens = self.held = 0
        self.cost = 0.0


class Budgets:
    """The accounts of one gateway; none are kept without a budget. Requests of nobody, "", count for all only."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._all = _Account()
        self._agents: dict[str, _Account] = {}
        self._any = any((limits.agent_tokens_max, limits.agent_cost_max, limits.all_tokens_max, limits.all_cost_max))
        self._day = self._today()

    def know(self, agent_id: str, tokens: int) -> None:
        """An agent's log says that it used up so many tokens in the time of the budget: at least that counts.

        They are priced as those of requests.
        """
        if not self._any:
            return
        for account in self._accounts(agent_id)[:1]:
            missing = tokens - account.tokens
            if missing > 0:
                self._count(account, missing, 0)
                self._count(self._all, missing, 0)

    def hold(self, agent_id: str, tokens: int) -> None:
        """Set aside what a request will cost at least. Raises OverBudget, and then nothing is set aside."""
        if not self._any:
            return
        limits, accounts = self._limits, [*self._accounts(agent_id), self._all]
        for account in accounts:
            if account is self._all:
                self._check(account, "all agents", "all", limits.all_tokens_max, limits.all_cost_max, tokens)
            else:
                whose = f"the agent {agent_id!r}"
                self._check(account, whose, "agent", limits.agent_tokens_max, limits.agent_cost_max, tokens)
        for account in accounts:
            account.held += tokens

    def settle(self, agent_id: str, held: int, used: Usage) -> None:
        """A request has ended: what was set aside for it is free again, and what it used up counts."""
        if not self._any:
            return
        for account in (*self._accounts(agent_id), self._all):
            account.held -= held
            self._count(account, max(used.total - used.completion, 0), used.completion)

    @property
    def spent(self) -> tuple[int, float]:
        """Tokens and money that all agents have used up, where there is any budget; else zeros."""
        return self._all.tokens, self._all.cost

    def _accounts(self, agent_id: str) -> list[_Account]:
        """The account of an agent, where there is one, as it is on this day."""
        self._begin_day()
        return [self._agents.setdefault(agent_id, _Account())] if agent_id else []

    def _count(self, account: _Account, tokens_in: int, tokens_out: int) -> None:
        account.tokens += tokens_in + tokens_out
        account.cost += (tokens_in * self._limits.price_in + tokens_out * self._limits.price_out) / MILLION

    def _check(self, account: _Account, whose: str, scope: str, tokens_max: int, cost_max: float, tokens: int) -> None:
        price = self._limits.price_in / MILLION
        if tokens_max and account.tokens + account.held + tokens > tokens_max:
            raise self._refusal(whose, scope, "tokens", tokens_max, account.tokens, tokens)
        if cost_max and account.cost + (account.held + tokens) * price > cost_max:
            raise self._refusal(whose, scope, "cost", cost_max, account.cost, tokens * price)

    def _refusal(self, whose: str, scope: str, unit: str, limit: float, spent: float, wanted: float) -> OverBudget:
        daily = self._limits.budget_per == "day"
        variable = f"{PREFIX}{scope}_{unit}_max".upper()
        when = "today" if daily else "since the gateway began"
        return OverBudget(
            f"The budget of {whose} does not allow this request: {spent:,.10g} of {limit:,.10g} ({unit}) are used up "
            f"{when}, and it takes at least {wanted:,.10g}, beside what is under way. Nothing was sent. Raise "
            f"{variable}{', or wait until 0:00 UTC' if daily else ''}. Your message is kept, and answered together "
            "with the next.",
            budget=f"{scope} {unit}",
            limit=limit,
            spent=spent,
            retry_after_s=self._day_left_s() if daily else 0,
        )

    def _begin_day(self) -> None:
        """On a new day nobody has used up anything; what is under way stays set aside, and counts when it ends."""
        today = self._today()
        if today > self._day:
            self._day = today
            self._agents = {agent_id: account for agent_id, account in self._agents.items() if account.held}
            for account in (self._all, *self._agents.values()):
                account.tokens, account.cost = 0, 0.0

    def _today(self) -> int:
        return self._clock.now() // DAY_US if self._limits.budget_per == "day" else 0

    def _day_left_s(self) -> float:
        return (DAY_US - self._clock.now() % DAY_US) / MILLION
