"""docs/explanation/search.md explains the ranking by an example: its numbers are those of the code."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from bench.talk.train_ranking import SHARES
from everlog.events.times import since_epoch
from everlog.projections.recall_search import described, known_dates
from everlog.projections.search.features import MEANING_FEATURES, WORD_FEATURES, measure
from everlog.projections.search.ranking import NEAREST, RESULTS_MIN, RecallQuery, rank, weights
from everlog.projections.search.talk_index import TalkIndex, TalkView, Utterance

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "search.md"
TEXT = PAGE.read_text(encoding="utf-8")


def example() -> tuple[TalkView, str]:
    """Return the talk of the page, and its query."""
    rows = [json.loads(line) for line in re.search(r"```jsonl\n(.*?)```", TEXT, re.DOTALL)[1].splitlines()]  # type: ignore[index]
    index = TalkIndex()
    for number, row in enumerate(rows, start=1):
        time = since_epoch(datetime.fromisoformat(row["time"]).replace(tzinfo=UTC))
        index.append([Utterance(number, time, row["role"], row["name"], row["content"], "")])
    return index.view(), re.search(r"query `(.*?)`", TEXT)[1]  # type: ignore[index]


def expected_rows() -> str:
    """Return the table of the page: each feature that is not 0 everywhere, its weight, its values, and the scores."""
    talk, query = example()
    found = measure(talk, described(query, talk), None, known_dates(query, talk)).features
    by = weights(by_meaning=False)
    rows = [
        f"| `{name}` | {by[name]:g} | " + " | ".join(f"{value:.2f}" for value in found[name]) + " |"
        for name in WORD_FEATURES
        if by[name] and found[name].any()
    ]
    places, scores = rank(talk, RecallQuery(query.lower(), (), described(query, talk)), None, known_dates(query, talk))
    totals = dict(zip(places.tolist(), scores.tolist(), strict=True))
    last = " | ".join(f"**{totals[at]:.2f}**" for at in range(len(talk)))
    return "\n".join([*rows, f"| **score** | | {last} |"])


def test_the_worked_example_has_the_numbers_of_the_code() -> None:
    """Each row of the page's table is what the search computes."""
    assert expected_rows() in TEXT, f"put these rows into {PAGE.name}:\n{expected_rows()}"


def test_the_page_names_every_feature_and_the_limits() -> None:
    """A feature without an explanation cannot be judged by a reader."""
    assert [name for name in (*WORD_FEATURES, *MEANING_FEATURES) if f"`{name}`" not in TEXT] == []
    words = " ".join(TEXT.split())
    assert f"the {NEAREST} nearest" in words and f"up to {RESULTS_MIN}" in words


def test_the_page_names_every_kind_of_talk_that_was_learned_from() -> None:
    """The page says how each kind of talk is ranked."""
    assert [kind for kind in SHARES if f"`{kind}`" not in TEXT] == []
