"""Nested key-value retrieval: the script uses only the pages that it is shown, and finds the answer at each level."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bench import nested

KEYS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(4)]

needs_data = pytest.mark.skipif(not nested.DATA.is_dir(), reason=f"the data set is not at {nested.DATA}")


def page(number: int, last: int, *pairs: tuple[str, str]) -> dict[str, Any]:
    """Return a message with the result of a search."""
    lines = [f"timestamp: 2024-01-01 10:00:00 AM UTC+0000, id: {key}, memory: {key}: {value}" for key, value in pairs]
    shown = f"Showing {len(lines)} of 9 results (page {number}/{last}): {json.dumps(lines)}"
    return {"role": "tool", "content": json.dumps({"status": "OK", "message": shown})}


QUESTION = {"role": "user", "content": f"{nested.ASKED} the key {KEYS[0]} lead to?"}
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
    name, arguments = nested.next_call([{"role": "system", "content": nested.ASKED}, QUESTION, *results])
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
    for asked in asyncio.run(nested.run(tmp_path / "store", 1, (0, 4))):
        for question, found in asked:
            assert found.answer == question.answer
            assert found.pages > 1
            assert found.by_words == 0
