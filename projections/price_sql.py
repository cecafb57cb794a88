"""Price calls in SQL: a list of prices as macros and as a view. Only queries that use prices compute them.

Used by `actors/models/prices.py` and `fleet_views`.
"""

from collections.abc import Sequence

import msgspec


class ListedPrice(msgspec.Struct, frozen=True):
    """One price of a million tokens."""

    model: str
    """Name of the model; empty: every model that no earlier price fits."""
    pattern: str
    """Regular expression for names of models."""
    price_in: float
    price_out: float
    price_cached: float
    """Price of request tokens that the provider had in its cache."""
    currency: str
    source: str
    """Origin of the price."""


VIEW = "CREATE VIEW prices AS SELECT * EXCLUDE (place) FROM price_list ORDER BY place"
"""Prices in the order in which they apply: the first that fits a model counts."""
COST_AT = """CREATE MACRO cost_at(price, prompt, completion, total, cached) AS (
    (greatest(total - completion, prompt) - least(cached, greatest(total - completion, prompt))) * price.i
    + least(cached, greatest(total - completion, prompt)) * price.c + completion * price.o) / 1e6"""
"""Cost of a call's tokens at the price of its model. A query over many calls asks for the price of each model once: it
is found by a regular expression for each listed price.
"""
COST = """CREATE MACRO cost_of(model, prompt, completion, total, cached) AS
    cost_at(price_of(model), prompt, completion, total, cached)"""
"""Cost of a call's tokens; null if no price fits. Tokens of neither prompt nor reply count as the prompt's."""


_NO_ROWS = "SELECT 0, '', 0::DOUBLE, 0::DOUBLE, 0::DOUBLE, '', '' LIMIT 0"


def price_list(prices: Sequence[ListedPrice]) -> str:
    """Return the statement that makes the view `price_list`. SQL and no Arrow table: Arrow would load pandas first."""
    rows = ", ".join(
        f"({place}, {_text(price.model)}, {price.price_in!r}::DOUBLE, {price.price_out!r}::DOUBLE, "
        f"{price.price_cached!r}::DOUBLE, {_text(price.currency)}, {_text(price.source)})"
        for place, price in enumerate(prices)
    )
    columns = "place, model, price_in, price_out, price_cached, currency, source"
    return f"CREATE VIEW price_list AS FROM ({f'VALUES {rows}' if rows else _NO_ROWS}) listed({columns})"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def price_of(prices: Sequence[ListedPrice]) -> str:
    """Return the statement that makes the macro `price_of(model)`:
    a struct of the prices for input, output and cached input.
    """
    cases = [
        f"WHEN regexp_matches(model, {_text(price.pattern)}) THEN "
        f"{{'i': {price.price_in!r}::DOUBLE, 'o': {price.price_out!r}::DOUBLE, 'c': {price.price_cached!r}::DOUBLE}}"
        for price in prices
    ]
    nothing = "{'i': NULL::DOUBLE, 'o': NULL::DOUBLE, 'c': NULL::DOUBLE}"
    found = f"CASE {' '.join(cases)} ELSE {nothing} END" if cases else nothing
    return f"CREATE MACRO price_of(model) AS {found}"
