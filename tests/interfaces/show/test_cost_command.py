"""`everlog cost`: the cost of models by day and model, and the rest of a budget."""

import json
from typing import Any

import msgspec
import pytest

from tests.support.cli.command_line import Line, completion


def answer(model: str, prompt: int, cached: int = 0) -> str:
    """Return a reply of ten tokens to a request of `prompt` tokens, some of them cached."""
    body: dict[str, Any] = json.loads(completion(("send_message", {"message": "Indeed."})))
    usage = {"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10}
    body |= {"model": model, "usage": {**usage, "prompt_tokens_details": {"cached_tokens": cached}}}
    return msgspec.json.encode(body).decode()


@pytest.fixture
def asked(cli: Line) -> Line:
    """Let Sam ask gpt-4o twice and a model without a price once, and let Ann ask gpt-4o on the next day."""

    def make(line: Line) -> None:
        line.script.answers += [
            answer("gpt-4o-2024-08-06", 1000), answer("gpt-4o-2024-08-06", 2000, 1500), answer("house", 500),
            answer("gpt-4o", 100),
        ]  # fmt: skip
        for _ in range(3):
            line.ok("send", "sam", "Hi", "--model", "gpt-4o")
        line.world.clock.at += 86_400_000_000
        line.ok("send", "ann", "Hi", "--model", "gpt-4o")

    cli.begin("costs", make)
    return cli


def test_money_is_reported_by_day_and_model(asked: Line) -> None:
    """Cached tokens have their own price, an unknown model has none; the sums cover the known prices."""
    found = asked.json("cost", "sam")
    rows = {row["model"]: row for row in found["rows"]}
    assert rows["gpt-4o-2024-08-06"]["cost"] == pytest.approx((1500 * 2.5 + 1500 * 1.25 + 20 * 10) / 1e6)
    assert rows["gpt-4o-2024-08-06"]["cached_tokens"] == 1500 and rows["house"]["cost"] is None
    assert found["total"]["cost"] == rows["gpt-4o-2024-08-06"]["cost"] and found["total"]["unpriced"] == 1
    assert found["spent_today"]["calls"] == 0 and found["budget"] == {"tokens": 0, "cost": 0}
    everyone = asked.json("cost")
    assert {row["day"] for row in everyone["rows"]} == {"2023-11-14", "2023-11-15"} and everyone["budget"] is None
    assert everyone["spent_today"]["cost"] == pytest.approx((100 * 2.5 + 10 * 10) / 1e6)
    assert [row["day"] for row in asked.json("cost", "--days", "1")["rows"]] == ["2023-11-15"]


def test_a_price_of_the_variables_counts_for_all(asked: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A price from the environment takes precedence over the shipped list, and `prices` names its origin."""
    monkeypatch.setenv("EVERLOG_GATEWAY_PRICE_IN", "1000")
    asked.release()
    rows = {row["model"]: row["cost"] for row in asked.json("cost", "sam")["rows"]}
    assert rows == {"gpt-4o-2024-08-06": pytest.approx(3.0), "house": pytest.approx(0.5)}
    sources = [row[0] for row in asked.json("sql", "SELECT source FROM prices LIMIT 2")["rows"]]
    assert sources == ["everlog", "EVERLOG_GATEWAY_PRICE_IN and _OUT"]


def test_the_page_shows_what_is_known_and_what_is_not(asked: Line) -> None:
    """The table has a row for each model, a question mark for an unknown price, and the sum."""
    said = asked.ok("cost", "sam")
    assert "gpt-4o-2024-08-06" in said and "USD" in said and "1,500" in said
    assert "?" in said and "no known price" in said and "0.0058" in said
    asked.world.clock.at += 10 * 86_400_000_000
    assert "No model calls with tokens" in asked.ok("cost", "ann")


def uncounted(tokens: int | None = None) -> str:
    """Return a reply of the model `house` without usage; with `tokens`, one that reports this number everywhere."""
    body: dict[str, Any] = json.loads(completion(("send_message", {"message": "Indeed."})))
    usage = {"usage": dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), tokens)}
    return json.dumps({**body, "model": "house"} | (usage if tokens is not None else {"usage": None}))


@pytest.mark.parametrize("tokens", [None, 0, 2**63 - 1, 10**30])
def test_calls_without_a_credible_count_are_estimated_as_budgets_do(cli: Line, tokens: int | None) -> None:
    """A call whose endpoint reports no tokens, or impossible ones, is in the rows with the estimate that the agent's
    budget refuses by; the parts add up.
    """
    cli.script.answers += [uncounted(tokens)]
    cli.ok("send", "sam", "Hi", "--model", "gpt-4o", "--day-tokens", "5000")
    found = cli.json("cost", "sam")
    assert [(row["model"], row["calls"], row["estimated"], row["unpriced"]) for row in found["rows"]] == [
        ("house", 1, 1, 1)
    ]
    spent = found["spent_today"]
    assert spent["tokens"] == spent["prompt_tokens"] + spent["completion_tokens"] > 2000
    assert "1 call without a token count: estimated" in cli.ok("cost", "sam")
    refused = cli.fails("send", "sam", "hello " * 4000)
    assert f"{spent['tokens']:,} of 5,000" in refused
    assert cli.json("pressure", "sam")["tokens"] < 8192


def test_pressure_says_what_was_cached(cli: Line) -> None:
    """`pressure` shows the cached tokens of the last call as the provider reported them."""
    cli.script.answers.append(answer("gpt-4o", 2000, 1500))
    cli.ok("send", "sam", "Hi", "--model", "gpt-4o")
    assert cli.json("pressure", "sam")["cached"] == 1500
    assert "1,500 of them cached" in cli.ok("pressure", "sam")
