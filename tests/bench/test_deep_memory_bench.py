"""Deep memory retrieval: evidence is found with the agent's own search, and only by an agent that can page."""

import asyncio
import json
from pathlib import Path

import pytest

from bench.paper import deep_memory
from bench.support import locomo
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import ANYTHING, Filters, Page


@pytest.fixture
def plan(data_dir: Path) -> deep_memory.Plan:
    """Return a small measurement, of eight questions of one conversation."""
    return deep_memory.Plan(questions=8, conversations=1, data=data_dir)


def figures(folder: Path, plan: deep_memory.Plan) -> dict[str, tuple[float, float]]:
    """Return the value and the floor of each figure."""
    asked = asyncio.run(deep_memory.measure(folder / "store", plan))
    assert sum(one.found.failed for one in asked) == 0
    assert sum(one.found.by_words for one in asked) == 0
    return {one.key: (one.value, one.floor) for one in deep_memory.figures(asked)}


def test_pages_reach_evidence_that_the_first_page_lacks(plan: deep_memory.Plan, tmp_path: Path) -> None:
    """Ten pages have all of the evidence of more questions than the first page has."""
    found = figures(tmp_path, plan)
    value, first_page = found["deep_memory"]
    assert value >= 0.75 and value > first_page > 0
    assert 1 < found["deep_memory_pages"][0] < deep_memory.PAGES_MAX


def test_a_search_that_repeats_its_first_page_scores_what_the_first_page_has(
    plan: deep_memory.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If paging is broken, the score falls to its floor."""
    search = AgentSearcher.recall

    async def first_page(
        self: AgentSearcher, query: str, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING
    ) -> Page:
        return await search(self, query, 0, count, filters)

    monkeypatch.setattr(AgentSearcher, "recall", first_page)
    value, floor = figures(tmp_path, plan)["deep_memory"]
    assert value == floor < 0.9


@pytest.mark.parametrize(
    ("answer", "wanted", "recall"),
    [
        ("On 7 May 2023, I think.", "7 May 2023", 1),
        ("2023, May", "7 May 2023", 1 / 3),
        ("No", "7 May", 0),
        ("", "x", 0),
    ],
)
def test_rouge_l_is_the_part_of_the_words_in_their_order(answer: str, wanted: str, recall: float) -> None:
    """ROUGE-L recall counts the longest common subsequence of words by the number of wanted words."""
    assert deep_memory.rouge_l(answer, wanted) == pytest.approx(recall)


def test_the_last_line_has_the_promised_keys(
    plan: deep_memory.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line is one JSON object with exactly the promised keys, and no file is left."""
    monkeypatch.chdir(tmp_path)
    deep_memory.report(deep_memory.Plan(questions=1, conversations=1, data=plan.data))
    said = json.loads(capsys.readouterr().out.strip().split("\n")[-1])
    assert tuple(figure["key"] for figure in said["figures"]) == deep_memory.KEYS
    assert not list(tmp_path.iterdir())


def test_missing_data_is_said_with_its_cure(tmp_path: Path) -> None:
    """Without the data set the benchmark ends with the folder that it expected, and the option that names another."""
    with pytest.raises(SystemExit, match=r"locomo/dev: set EVERLOG_DATA, or use --data DIR"):
        locomo.conversations(tmp_path)
