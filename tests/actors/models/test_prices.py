"""Costs of tokens: which price applies to a model, and how prices and tokens are read."""

import json
import re
from datetime import date

import msgspec
import pytest

from everlog.actors.models import prices
from everlog.actors.models.offline.offline_model import MODEL
from everlog.actors.models.prices import Price, PriceList, own_prices, shipped
from everlog.actors.models.token_usage import usage_of
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.events import BadInput, Usage


class Said(msgspec.Struct, frozen=True):
    """Return the prices of a models.toml table."""

    price_in: float | None = None
    price_out: float | None = None
    price_cached: float | None = None


def test_the_shipped_list_has_a_day_and_a_currency() -> None:
    """The shipped list has its date and currency; a cached token never costs more than another."""
    listed = prices.shipped()
    assert date.fromisoformat(listed.date).year >= 2025 and re.fullmatch("[A-Z]{3}", listed.currency)
    assert all((price.cached or 0) <= price.input <= price.output for price in listed.models.values())


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4.1", "gpt-4.1"),
        ("claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("gpt-4o-audio-preview", None),
        ("gpt-4-32k", None),
        ("my-gpt-4o", None),
        ("", None),
    ],
)
def test_a_name_stands_for_its_dated_versions_and_for_nothing_else(model: str, name: str | None) -> None:
    """A model whose name only begins like a listed one has no known price."""
    assert PriceList().of(model) == (prices.shipped().models[name] if name else None)


def test_prices_have_an_order_of_precedence() -> None:
    """Prices are taken from the exact name in models.toml, then the variables, then the shipped list; the offline model
    is free.
    """
    known = PriceList({"gpt-4o": Price(1, 2)}, Price(3, 4))
    assert [known.of(name) for name in ("gpt-4o", "gpt-4o-2024-08-06", "offline")] == [
        Price(1, 2),
        Price(3, 4),
        Price(0, 0),
    ]


def test_prices_of_models_toml() -> None:
    """A table without a price gives none, a price of 0 is a price, and the error for an invalid price names the
    table.
    """
    assert own_prices({"a": Said(0, 0), "b": Said()}) == {"a": Price(0, 0)}
    assert own_prices({"c": Said(1, 2, 0.5)}) == {"c": Price(1, 2, 0.5)}


@pytest.mark.parametrize("said", [Said(1), Said(None, 1), Said(None, None, 1), Said(-1, 1), Said(1, float("inf"))])
def test_invalid_prices_are_refused(said: Said) -> None:
    """Half a price, a negative price and an infinite price are refused."""
    with pytest.raises(BadInput, match=r'\[models\."c"\]'):
        own_prices({"c": said})


def test_cached_tokens_cost_their_own_price() -> None:
    """Cached tokens have their own price; tokens of neither prompt nor reply cost as much as prompt tokens."""
    assert Price(10, 20, 1).cost(Usage(prompt=100, completion=10, total=120, cached=50)) == pytest.approx(
        (60 * 10 + 50 * 1 + 10 * 20) / 1e6
    )
    assert Price(10, 20).cost(Usage(prompt=100, completion=0, total=100, cached=50)) == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("usage", "more", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 60}}, {}, 60),
        ({"prompt_tokens_details": {"cached_tokens": None}}, {}, 0),
        ({"prompt_tokens_details": None}, {}, 0),
        ({"prompt_tokens_details": [1]}, {}, 0),
        ({"prompt_cache_hit_tokens": 61}, {}, 61),
        ({"cache_read_input_tokens": 62}, {}, 62),
        ({}, {"timings": {"cache_n": 63}}, 63),
        ({"prompt_tokens_details": {"cached_tokens": 60}}, {"timings": {"cache_n": 63}}, 60),
        ({"prompt_tokens_details": {"cached_tokens": 6000}}, {}, 100),
        ({"prompt_cache_hit_tokens": -5}, {}, 0),
        ({"prompt_cache_hit_tokens": "many"}, {}, 0),
        ({"prompt_cache_hit_tokens": True}, {}, 0),
        ({}, {"timings": "quick"}, 0),
    ],
)
def test_cached_tokens_go_by_many_names(usage: dict[str, object], more: dict[str, object], cached: int) -> None:
    """The names of OpenAI, DeepSeek, proxies and llama.cpp's timings are read; an invalid count is ignored, and a count
    is at most the prompt's tokens.
    """
    told = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107, **usage}
    assert usage_of(json.dumps({"usage": told, **more})) == Usage(prompt=100, completion=7, total=107, cached=cached)


@pytest.mark.parametrize("name", [OFFLINE, MODEL])
def test_the_offline_model_is_free_by_whichever_name(name: str) -> None:
    """The offline model costs nothing, under the name `offline` and under the name in its replies."""
    assert PriceList(other=Price(1, 2)).of(name) == Price(0, 0)


def test_each_price_says_when_it_was_looked_up() -> None:
    """A price has the date of its vendor's models, else that of the whole list."""
    sources = {row.model: row.source for row in PriceList().rows}
    assert sources["claude-opus-5-5"] == "list of 2026-10-24"
    assert sources["gpt-5.4-mini"] == "list of 2026-03-01"
    assert sources["gpt-4o"] == f"list of {shipped().date}"
    assert all(any(name.startswith(begin) for name in shipped().models) for begin in shipped().dates)
