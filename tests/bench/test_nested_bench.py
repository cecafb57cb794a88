"""Nested key-value retrieval: the script uses only the pages that it is shown, and finds the answer at each level."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bench.paper import nested
from bench.support.experiments import Outcome
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.effects import Page

KEYS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(4)]

needs_data = pytest.mark.skipif(not nested.DATA.is_dir(), reason=f"the data set is not at {nested.DATA}")


def page(number: int, last: int, *pairs: tuple[str, str]) -> dict[str, Any]:
    """Return a message with the result of a search."""
    lines = [f"timestamp: 2024-01-01 10:00:00 AM UTC+0000, id: {key}, memory: {key}: {value}" for key, value in pairs]
    shown = f"Showing {len(lines)} of 9 results (page {number}/{last}): {json.dumps(lines)}"
    return {"role": "tool", "content": json.dumps({"status": "OK", "message": shown})}


def user(text: str) -> dict[str, Any]:
    """Return a message of the user."""
    return {"role": "user", "content": json.dumps({"type": "user_message", "message": text})}


QUESTION = user(f"Which value does the key {KEYS[0]} lead to?")
NOTHING = {"role": "tool", "content": json.dumps({"status": "OK", "message": "No results found."})}


@pytest.mark.parametrize(
    ("results", "called"),
    [
        ([], (KEYS[0], 0)),
        ([page(0, 1, (KEYS[2], KEYS[0]))], (KEYS[0], 1)),
        ([page(0, 1, (KEYS[2], KEYS[0])), page(1, 1, (KEYS[0], KEYS[1]))], (KEYS[1], 0)),
        ([page(0, 1, (KEYS[0], KEYS[1])), page(0, 2), page(1, 2)], (KEYS[1], 2)),
        ([page(0, 0, (KEYS[0], KEYS[1])), page(0, 0, (KEYS[0], KEYS[1]))], KEYS[1]),
        ([page(0, 0, (KEYS[0], KEYS[1])), NOTHING], KEYS[1]),
    ],
    ids=["begins", "pages on", "follows", "pages on again", "ends", "ends where nothing is found"],
)
def test_the_script_follows_what_it_is_shown(results: list[dict[str, Any]], called: Any) -> None:
    """The script searches for a value that is a key, and answers with a value that is on no page."""
    name, arguments = nested.next_call([user(f"An earlier question: {KEYS[3]}"), page(0, 0), QUESTION, *results])
    if isinstance(called, str):
        assert (name, arguments) == ("send_message", {"message": called})
    else:
        assert (name, arguments["query"], arguments["page"]) == (nested.FUNCTION, *called)


@needs_data
def test_a_question_is_nested_as_deep_as_its_level() -> None:
    """Among 140 pairs, the key leads to the answer over as many values as the level says; the answer is not a key."""
    for level in nested.LEVELS:
        for question in nested.questions(level, 5):
            pairs = dict(question.pairs)
            assert len(pairs) == 140
            value, steps = pairs[question.key], 0
            while value in pairs:
                value, steps = pairs[value], steps + 1
            assert (value, steps) == (question.answer, level)


@needs_data
@pytest.mark.filterwarnings("ignore")
def test_a_scripted_agent_is_right_at_the_first_and_the_last_level(tmp_path: Path) -> None:
    """The script works over real agents and the archive, with only the functions that every agent has."""
    for asked in asyncio.run(nested.run(tmp_path / "store", nested.Plan(records=2, levels=(0, 4)))):
        assert len(asked) == 2
        for question, found in asked:
            assert nested.is_right(question, found)
            assert found.answer == question.answer
            assert len(found.pages) > 1
            assert found.by_words == 0


@needs_data
@pytest.mark.filterwarnings("ignore")
def test_a_search_that_finds_nothing_leaves_every_question_unanswered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pairs come from the search and from nowhere else: with an empty one the accuracy falls from 1 to 0."""
    plan = nested.Plan(records=1, levels=(0, 2))
    monkeypatch.chdir(tmp_path)
    assert nested.nested_kv(plan)["nested_kv"] == 1

    async def nothing(*_: object) -> Page:
        return Page(total=0, page=0, pages=0, results=())

    monkeypatch.setattr(AgentSearcher, "archival", nothing)
    broken = nested.nested_kv(plan)
    assert (broken["nested_kv_0"], broken["nested_kv_2"]) == (0, 0)


@pytest.mark.parametrize(
    ("said", "right"),
    [(KEYS[1], True), (f"{KEYS[0]} leads to {KEYS[1]}.", True), (f"{KEYS[1]}, {KEYS[0]}", False), ("?", False)],
)
def test_the_last_value_that_an_agent_names_counts(said: str, right: bool) -> None:
    """An answer may be a sentence; its last key or value is what the agent means, and naming all of them is wrong."""
    question = nested.Question([(KEYS[0], KEYS[1])], KEYS[0], KEYS[1])
    assert nested.is_right(question, Outcome(answer=said)) == right
