"""The benchmark of retrieval measures the search that an agent has, on every kind of talk."""

import asyncio
import math
from pathlib import Path

import pytest

from bench.retrieval import CHATS, KEYS, Plan, figures, measure
from bench.talk.search_scores import RESULTS, Scored, mean, scored
from bench.talk.talk_kinds import LOCOMO
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import ANYTHING, Filters, Page

ENGLISH = Plan(quick=True, questions=6, kinds=CHATS[:1])
"""A small measurement that needs no data: six questions of one scripted chat."""


def test_the_agents_own_search_is_by_meaning_from_the_first_question_on(data_dir: Path, tmp_path: Path) -> None:
    """No page of an agent is by words alone, and meaning finds evidence that words do not."""
    tried = asyncio.run(measure(tmp_path / "store", Plan(questions=6, data=data_dir, kinds=[LOCOMO])))
    assert len(tried["hybrid"]) == 30 and sum(one.by_words for one in tried["hybrid"]) == 0
    assert mean(tried["hybrid"], "recall_10") > 0.6 and mean(tried["substring"], "recall_10") < 0.1


def test_a_chat_with_an_assistant_is_measured_without_any_data(tmp_path: Path) -> None:
    """Scripted chats need no data set: all figures of the kind exist, and a page of long replies is counted."""
    tried = asyncio.run(measure(tmp_path / "store", ENGLISH))
    found = {one.key: one for one in figures(tried)}
    assert list(found) == [key for key in KEYS if key.startswith(CHATS[0]) or key == "page_chars"]
    assert 0.2 < found["assistant_en_recall_at_10_hybrid"].value <= 1
    assert found["page_chars"].value > RESULTS * 100


def test_a_broken_search_scores_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the search shows its last results first, the scores fall below both floors."""
    search = AgentSearcher.recall

    async def far_down(
        self: AgentSearcher, query: str, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING
    ) -> Page:
        return await search(self, query, page + 100, count, filters)

    monkeypatch.setattr(AgentSearcher, "recall", far_down)
    tried = asyncio.run(measure(tmp_path / "store", ENGLISH))
    floor = min(mean(tried[way], "recall_20") for way in ("bm25", "cosine"))
    assert mean(tried["hybrid"], "recall_20") < 0.1 < floor


def test_results_are_scored_with_standard_metrics() -> None:
    """The scores are recall at 5, 10 and 20, nDCG at 10 with a gain of 1 for each piece of evidence, the part of the
    first 10 that is evidence, and whether there is any.
    """
    found = [*"abcdefghij", "x"]
    gain = (1 + 1 / math.log2(7)) / sum(1 / math.log2(place + 2) for place in range(3))
    assert scored(found, ["a", "f", "x"]) == pytest.approx(Scored(1 / 3, 2 / 3, 1, gain, 0.2, 1))
    assert scored(found, ["x"]) == Scored(0, 0, 1, 0, 0, 0)
    assert scored([], ["x"]) == Scored(0, 0, 0, 0, 0, 0)
