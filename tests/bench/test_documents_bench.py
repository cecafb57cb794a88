"""Question answering over documents: the answer is found at each depth, and only by an agent that can page."""

import asyncio
import json
from pathlib import Path

import pytest

from bench.paper import documents
from bench.support.experiments import Chosen
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.effects import ANYTHING, Filters, Page

PLAN = documents.Plan(questions=2, depths=(0, 14))


def figures(folder: Path, plan: documents.Plan) -> dict[str, float]:
    return {one.key: one.value for one in documents.figures(asyncio.run(documents.measure(folder / "store", plan)))}


def test_each_question_has_one_answer_among_as_many_documents() -> None:
    """A question has a hundred different documents, one with its place and a year, at no fixed position."""
    made = documents.questions(documents.Plan())
    everything = [one for some in made.values() for one in some]
    assert len({one.text for one in everything}) == len(everything) == 100
    for depth, some in made.items():
        assert len({one.documents.index(one.gold) for one in some}) > 1
        for one in some:
            assert len(set(one.documents)) == documents.DOCUMENTS
            assert sum(one.text in document for document in one.documents) == depth
            assert sum(one.year in document for document in one.documents) == 1


def test_pages_lead_to_the_answer_at_its_depth(tmp_path: Path) -> None:
    """Behind fourteen better matches the answer is on the second page of ten, and the script reads so far."""
    found = figures(tmp_path, PLAN)
    assert found["documents"] == found["documents_0"] == found["documents_14"] == 1
    assert (found["document_pages_0"], found["document_pages_14"]) == (1, 2)


def test_a_search_that_repeats_its_first_page_loses_the_deep_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If paging is broken, the score of the deep answers falls to 0, and the others stay."""
    search = AgentSearcher.archival

    async def first_page(
        self: AgentSearcher, query: str, page: int, count: int = 10, filters: Filters = ANYTHING
    ) -> Page:
        return await search(self, query, 0, count, filters)

    monkeypatch.setattr(AgentSearcher, "archival", first_page)
    found = figures(tmp_path, PLAN)
    assert (found["documents_0"], found["documents_14"], found["documents"]) == (1, 0, 0)


def test_what_is_shown_and_what_is_answered_are_two_scores(tmp_path: Path) -> None:
    """The offline model is asked in place of the script: it reads one page, and does not see an answer on it."""
    found = figures(tmp_path, documents.Plan(questions=2, depths=(0, 14), chosen=Chosen("offline")))
    assert (found["documents_shown"], found["documents_0"]) == (0.5, 0)


def test_the_last_line_has_the_promised_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line is one JSON object with exactly the promised keys, and no file is left."""
    monkeypatch.chdir(tmp_path)
    documents.report(documents.Plan(questions=1))
    said = json.loads(capsys.readouterr().out.strip().split("\n")[-1])
    assert tuple(figure["key"] for figure in said["figures"]) == documents.KEYS
    assert not list(tmp_path.iterdir())
