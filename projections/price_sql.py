"""Price calls in SQL: a list of prices as macros and as a view. Only queries that use prices compute them.

Used by `actors/models/prices.py` and `fleet_views`.
"""

from collections.abc import Sequence

import msgspec
import pyarrow as pa


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


_COLUMNS = ("model", "price_in", "price_out", "price_cached", "currency", "source")
_SCHEMA = pa.schema([
    ("place", pa.int64()), ("model", pa.string()), ("price_in", pa.float64()), ("price_out", pa.float64()),
    ("price_cached", pa.float64()), ("currency", pa.string()), ("source", pa.string()),
])  # fmt: skip
VIEW = "CREATE VIEW prices AS SELECT * EXCLUDE (place) FROM price_list ORDER BY place"
"""Prices in the order in which they apply: the first that fits a model counts."""
COST = """CREATE MACRO cost_of(model, prompt, completion, total, cached) AS (
    (greatest(total - completion, prompt) - least(cached, greatest(total - completion, prompt))) * price_of(model).i
    + least(cached, greatest(total - completion, prompt)) * price_of(model).c + completion * price_of(model).o) / 1e6"""
"""Cost of a call's tokens; null if no price fits. Tokens of neither prompt nor reply count as the prompt's."""


def price_list(prices: Sequence[ListedPrice]) -> pa.Table:
    """Return the prices as a table."""
    rows = [
        {"place": place, **{column: getattr(price, column) for column in _COLUMNS}}
        for place, price in enumerate(prices)
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)


def price_of(prices: Sequence[ListedPrice]) -> str:
    """Return the statement that makes the macro `price_of(model)`:
    a struct of the prices for input, output and cached input.
    """
    cases = [
        f"WHEN regexp_matches(model, '{price.pattern.replace(chr(39), chr(39) * 2)}') THEN "
        f"{{'i': {price.price_in!r}::DOUBLE, 'o': {price.price_out!r}::DOUBLE, 'c': {price.price_cached!r}::DOUBLE}}"
        for price in prices
    ]
    nothing = "{'i': NULL::DOUBLE, 'o': NULL::DOUBLE, 'c': NULL::DOUBLE}"
    found = f"CASE {' '.join(cases)} ELSE {nothing} END" if cases else nothing
    return f"CREATE MACRO price_of(model) AS {found}"
