"""Define the limits of a gateway (concurrency, rates, budgets), from arguments or EVERLOG_GATEWAY_ variables.

Used by the gateway's files, by `open_system`, and by the commands that show costs. The names of the variables are
derived from the names of the fields, so a renamed field is a renamed variable.
"""

import difflib
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from everlog.actors.models.prices import Price, PriceList
from everlog.actors.ports.agent_constants import (
    ASKS_MAX,
    ASKS_WAITING_AGENT_MAX,
    ASKS_WAITING_MAX,
    GATEWAY_ATTEMPTS_MAX,
)
from everlog.events import BadInput

PREFIX = "EVERLOG_GATEWAY_"

AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
AtLeastZero = Annotated[int, msgspec.Meta(ge=0)]
Money = Annotated[float, msgspec.Meta(ge=0)]


class GatewayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one gateway. 0 means no limit, unless the field says otherwise."""

    asks_max: AtLeastOne = ASKS_MAX
    """Requests in progress at once, at all endpoints together; at least 1."""
    waiting_max: AtLeastOne = ASKS_WAITING_MAX
    """Requests of all agents that may wait; at least 1. A further one is refused."""
    agent_waiting_max: AtLeastOne = ASKS_WAITING_AGENT_MAX
    """Requests of one agent that may wait; at least 1. A further one is refused."""
    attempts_max: AtLeastOne = GATEWAY_ATTEMPTS_MAX
    """Tries of one request, for failures that may pass; at least 1."""
    requests_per_minute: AtLeastZero = 0
    """Requests per minute at each endpoint, sent evenly."""
    tokens_per_minute: AtLeastZero = 0
    """Tokens per minute at each endpoint: an estimate before a request, corrected by the endpoint's count after the
    reply.
    """
    agent_tokens_max: AtLeastZero = 0
    """Tokens that one agent may use in the period of the budgets."""
    all_tokens_max: AtLeastZero = 0
    """Tokens that all agents together may use in the period of the budgets."""
    agent_cost_max: Money = 0.0
    """Cost that one agent may cause in the period of the budgets, in the currency of the prices."""
    all_cost_max: Money = 0.0
    """Cost that all agents together may cause in the period of the budgets, in the currency of the prices."""
    price_in: Money = 0.0
    """Price of a million request tokens, for models without a price of their own. Unknown if `price_out` is 0 too."""
    price_out: Money = 0.0
    """Price of a million reply tokens."""
    budget_per: Literal["day", "life"] = "day"
    """Period of the budgets: a day (from 0:00 UTC), or the life of the gateway's process."""

    def __post_init__(self) -> None:
        """Raise BadInput for amounts that are infinite or no number."""
        for name in ("agent_cost_max", "all_cost_max", "price_in", "price_out"):
            if not math.isfinite(getattr(self, name)):
                raise BadInput(f"{name} is {getattr(self, name)}; expected a finite number, or 0 for no limit.")


def all_prices(limits: GatewayLimits, own: Mapping[str, Price] | None = None) -> PriceList:
    """Return all prices: the user's `own` by model name, that of the variables, and the list that everlog ships."""
    given = limits.price_in or limits.price_out
    return PriceList(own, Price(limits.price_in, limits.price_out) if given else None)


def limits_from(environment: Mapping[str, str]) -> GatewayLimits:
    """Return the limits that variables like EVERLOG_GATEWAY_ASKS_MAX set, with defaults for the rest. Empty means not
    set.

    Raises BadInput for an unusable value, and for an unknown variable with this prefix: a misspelt budget would limit
    nothing.
    """
    given: dict[str, Any] = {}
    for variable, value in environment.items():
        if variable.startswith(PREFIX) and value.strip():
            given[_field(variable)] = value.strip()
    try:
        return msgspec.convert(given, GatewayLimits, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(f"The variables {PREFIX}... cannot be used: {_in_variables(str(error))}.") from error


def _field(variable: str) -> str:
    field = variable.removeprefix(PREFIX).lower()
    if field not in GatewayLimits.__struct_fields__:
        near = (
            difflib.get_close_matches(field, GatewayLimits.__struct_fields__, n=1, cutoff=0.5)
            or GatewayLimits.__struct_fields__
        )
        known = ", ".join(PREFIX + name.upper() for name in near)
        raise BadInput(f"There is no limit {variable}: it may be {known}. Nothing was sent.")
    return field


def _in_variables(fault: str) -> str:
    """Return a message of msgspec about a field as one about its variable."""
    said, _, field = fault.partition(" - at `$.")
    return f"{PREFIX}{field.rstrip('`').upper()}: {said[:1].lower()}{said[1:]}" if field else said
