"""Price tokens: by the user's own prices, else by the list that everlog ships (`prices.toml`, which ages). Pure.

Used by the gateway for budgets in money, and by the SQL reports.
"""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Protocol

import msgspec

from everlog.events import BadInput, Usage
from everlog.projections.price_sql import ListedPrice

MILLION = 1_000_000
"""Number of tokens that a price is for."""
DATED = r"(-latest|[-@]\d{4,8}|[-@]\d{4}-\d\d-\d\d)?"
"""Ending of the name of a dated version of a model."""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Price of request tokens that the provider had in its cache; None: the same as `input`."""

    def __post_init__(self) -> None:
        """Raise ValueError for a price that is negative or no finite number."""
        for price in (self.input, self.output, self.cached or 0):
            if not (math.isfinite(price) and price >= 0):
                raise ValueError(f"{price} is no price")

    def cost(self, usage: Usage) -> float:
        """Return the cost of a call.
        Tokens that are neither the prompt's nor the reply's are priced as the prompt's.
        """
        asked = max(usage.total - usage.completion, usage.prompt)
        return self.of(asked, usage.completion, min(usage.cached, asked))

    def of(self, asked: float, answered: float, cached: float = 0) -> float:
        """Return the cost of so many tokens; `cached` is included in `asked`."""
        return ((asked - cached) * self.input + cached * self.cached_or_input + answered * self.output) / MILLION

    @property
    def cached_or_input(self) -> float:
        """Price of request tokens that the provider had in its cache."""
        return self.input if self.cached is None else self.cached


class PriceRow(msgspec.Struct, frozen=True):
    """One row of a price list, as it is shown."""

    model: str
    """Name of the model; empty: all models without a row of their own."""
    pattern: str
    """Regular expression for names of models. The first row that fits a name counts."""
    price: Price
    source: str
    """Origin of the price: `models.toml`, `EVERLOG_GATEWAY_PRICE_IN`, or the shipped list with its date."""


class _Shipped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    date: str
    currency: str
    dates: dict[str, str]
    """Other dates, by the beginning of the models' names."""
    models: dict[str, Price]

    def date_of(self, model: str) -> str:
        """Return the day on which the price of a model was looked up."""
        return next((date for begin, date in self.dates.items() if model.startswith(begin)), self.date)


@cache
def shipped() -> _Shipped:
    """Return the list that everlog ships."""
    text = resources.files(__package__).joinpath("prices.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Shipped)


class PriceList:
    """All known prices: the user's own by name, then the user's price for all models, then the shipped list."""

    def __init__(self, own: Mapping[str, Price] | None = None, other: Price | None = None) -> None:
        """`own`: prices by the exact name of a model. `other`: the price of every model without one of its own."""
        listed = shipped()
        # Longest names first: the row of "gpt-4o-mini" must come before that of "gpt-4o".
        named = sorted(listed.models.items(), key=lambda item: (-len(item[0]), item[0]))
        self.currency = listed.currency
        self.rows: Sequence[PriceRow] = [
            *(
                PriceRow(name, f"^{re.escape(name)}$", price, "models.toml")
                for name, price in sorted((own or {}).items())
            ),
            PriceRow(
                "offline", r"^offline( \(rule-based\))?$", Price(0, 0), "everlog"
            ),  # name in requests, and in replies
            *([PriceRow("", "", other, "EVERLOG_GATEWAY_PRICE_IN and _OUT")] if other else ()),
            *(
                PriceRow(name, f"^{re.escape(name)}{DATED}$", price, f"list of {listed.date_of(name)}")
                for name, price in named
            ),
        ]
        """The first row that fits counts."""
        self._known: dict[str, Price | None] = {}

    @property
    def listed(self) -> list[ListedPrice]:
        """Prices in the form that the fleet views take."""
        return [
            ListedPrice(
                model=row.model, pattern=row.pattern, price_in=row.price.input, price_out=row.price.output,
                price_cached=row.price.cached_or_input, currency=self.currency, source=row.source,
            )
            for row in self.rows
        ]  # fmt: skip

    def of(self, model: str) -> Price | None:
        """Return the price of a model; None if it is unknown."""
        if model not in self._known:
            self._known[model] = next((row.price for row in self.rows if re.search(row.pattern, model)), None)
        return self._known[model]

    def cost(self, spent: Mapping[str, Usage]) -> float:
        """Return the cost of usage by model. Models without a known price count as free."""
        return sum(price.cost(usage) for model, usage in spent.items() if (price := self.of(model)))


class PricedModel(Protocol):
    """Model with prices in the user's description; None: not given."""

    @property
    def price_in(self) -> float | None: ...

    @property
    def price_out(self) -> float | None: ...

    @property
    def price_cached(self) -> float | None: ...


def own_prices(models: Mapping[str, PricedModel]) -> dict[str, Price]:
    """Return the prices in the tables `[models."NAME"]` of `models.toml`: price_in, price_out, price_cached, by name.

    Raise BadInput for an invalid price: prices are numbers of 0 or more, and price_in and price_out come together.
    """
    found: dict[str, Price] = {}
    for name, said in models.items():
        asked, answered, cached = said.price_in, said.price_out, said.price_cached
        if asked is None and answered is None and cached is None:
            continue
        try:
            if asked is None or answered is None:
                raise ValueError("one of price_in and price_out is missing")
            found[name] = Price(asked, answered, cached)
        except ValueError as error:
            raise BadInput(
                f'The prices of [models."{name}"] cannot be used: {error}. Give price_in and price_out, and '
                "price_cached if you like: numbers, for a million tokens, as price_in = 0.15."
            ) from error
    return found
