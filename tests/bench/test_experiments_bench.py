"""The experiments' shared parts: outcomes are read from what was shown, and a failing model is a wrong answer."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.support import experiments
from everlog.actors.agent.agent_setup import Settings
from everlog.events import ModelError


def page(*lines: str) -> str:
    return f"Showing {len(lines)} of 9 results (page 0/4): {json.dumps(lines)}"


def test_gold_counts_when_the_last_of_it_was_shown() -> None:
    """Pages are counted until every gold text was on one of them; a text that was never shown makes it None."""
    found = experiments.Outcome(pages=[page("a memory: x"), "No results found.", page("b memory: y")])
    assert found.pages_until(["memory: x"]) == 1
    assert found.pages_until(["memory: y", "memory: x"]) == 3
    assert found.pages_until(["memory: x", "memory: z"]) is None


def test_a_reader_stops_at_the_last_page_or_at_its_limit() -> None:
    """A reader that was not shown the gold says so: after the last page of the search, or after its own limit."""
    question = {"role": "user", "content": json.dumps({"type": "user_message", "message": "q"})}
    read = [question, *[{"role": "tool", "content": json.dumps({"message": page("x")})}] * 2]
    for limit, called in ((2, "send_message"), (3, "search")):
        assert experiments.Reader("search", {"q": ["gold"]}, limit).next_call(read)[0] == called
    every = [question, *read[1:2] * 5]
    assert experiments.Reader("search", {"q": ["gold"]}).next_call(every)[1] == {"message": experiments.UNKNOWN}
    assert experiments.Reader("search", {"q": ["x"]}).next_call(read)[1] == {"message": "x"}


@pytest.mark.filterwarnings("ignore")
def test_a_question_on_which_the_model_fails_is_counted_and_ends_nothing(tmp_path: Path) -> None:
    """A model that fails leaves an outcome without an answer; the next question is asked."""
    refused = iter([True])

    def next_call(_: Sequence[dict[str, Any]]) -> experiments.Call:
        if next(refused, False):
            raise ModelError("the endpoint refused the request", kind="rejected")
        return "send_message", {"message": "here"}

    async def ask() -> list[experiments.Outcome]:
        async with experiments.agents(tmp_path / "store", experiments.Chosen(), next_call) as system:
            agents = [await system.agent(name, Settings(model=experiments.SCRIPT)) for name in ("sam", "kim")]
            return [await experiments.pose(agent, "q") for agent in agents]

    first, second = asyncio.run(ask())
    assert (first.failed, first.answer) == (True, "")
    assert (second.failed, second.answer) == (False, "here")
