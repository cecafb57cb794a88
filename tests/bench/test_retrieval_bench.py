"""The benchmark of retrieval measures the search that an agent has."""

import asyncio
from pathlib import Path

import pytest

from bench.retrieval import Plan, mean, measure


@pytest.fixture
def plan(data_dir: Path) -> Plan:
    """Return a small measurement, of twelve questions of each conversation."""
    return Plan(questions=12, data=data_dir)


def test_the_agents_own_search_is_by_meaning_from_the_first_question_on(plan: Plan, tmp_path: Path) -> None:
    """No page of an agent is by words alone, and meaning finds evidence that words do not."""
    tried = asyncio.run(measure(tmp_path / "store", plan))
    assert len(tried["hybrid"]) == 60 and sum(one.by_words for one in tried["hybrid"]) == 0
    assert mean(tried["hybrid"], "recall_10") > 0.6 and mean(tried["substring"], "recall_10") < 0.1
