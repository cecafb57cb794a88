"""What a gateway may do: how much at once, how fast, for how much: from arguments or EVERLOG_GATEWAY_ variables."""

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
    """The limits of one gateway. 0 is no limit, unless the field says otherwise."""

    asks_max: AtLeastOne = ASKS_MAX
    """Requests under way at once, at all endpoints together; at least 1."""
    waiting_max: AtLeastOne = ASKS_WAITING_MAX
    """Requests that may wait, of all agents; at least 1. A further one is refused."""
    agent_waiting_max: AtLeastOne = ASKS_WAITING_AGENT_MAX
    """Requests that may wait, of one agent; at least 1. A further one is refused."""
    attempts_max: AtLeastOne = GATEWAY_ATTEMPTS_MAX
    """Tries of one request, for failures where trying again can help; at least 1."""
    requests_per_minute: AtLeastZero = 0
    """At each endpoint, sent evenly."""
    tokens_per_minute: AtLeastZero = 0
    """At each endpoint: of requests, estimated before, and of replies, as it counts them after."""
    agent_tokens_max: AtLeastZero = 0
    """Tokens that one agent may use up."""
    all_tokens_max: AtLeastZero = 0
    """Tokens that all agents together may use up."""
    agent_cost_max: Money = 0.0
    """What one agent may cost, in the currency of the prices."""
    all_cost_max: Money = 0.0
    """What all agents together may cost, in the currency of the prices."""
    price_in: Money = 0.0
    """Of a million tokens of requests, of every model without a price of its own. With `price_out` 0: not known."""
    price_out: Money = 0.0
    """Of a million tokens of replies."""
    budget_per: Literal["day", "life"] = "day"
    """Budgets begin anew every day at 0:00 UTC, or never while the gateway lives."""

    def __post_init__(self) -> None:
        """Raises BadInput for amounts that no sum can be held against."""
        for name in ("agent_cost_max", "all_cost_max", "price_in", "price_out"):
            if not math.isfinite(getattr(self, name)):
                raise BadInput(f"{name} is {getattr(self, name)}; it is a number, or 0 for none.")


def all_prices(limits: GatewayLimits, own: Mapping[str, Price] | None = None) -> PriceList:
    """All prices: the user's `own` by the name of a model, that of the variables, and the list that everlog ships."""
    given = limits.price_in or limits.price_out
    return PriceList(own, Price(limits.price_in, limits.price_out) if given else None)


def limits_from(environment: Mapping[str, str]) -> GatewayLimits:
    """The limits that variables like EVERLOG_GATEWAY_ASKS_MAX set; the rest is as it is without. Empty is not set.

    Raises BadInput for a value that cannot be, and for a variable of that kind that does not exist: a budget that is
    misspelt would hold nobody.
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
    """What msgspec says of a field, of its variable."""
    said, _, field = fault.partition(" - at `$.")
    return f"{PREFIX}{field.rstrip('`').upper()}: {said[:1].lower()}{said[1:]}" if field else said
