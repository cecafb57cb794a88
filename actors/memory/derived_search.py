"""Find insights, facts and items of plans: a place of its own in the searches of an agent.

Their relevance is that of `joint_search`, the covered share of the query and the similarity in meaning, so they compare
with messages and documents. An insight is shown with what it rests on, and says if that is outdated. A fact that has
ended is hidden, unless it is asked for. Used by `agent_search.py`.
"""

from collections.abc import Mapping, Sequence

from everlog.actors.memory.joint_search import DIGITS, covered, relevance, span_of
from everlog.actors.ports.agent_constants import PASSAGE_CHARS
from everlog.actors.ports.effects import Filters, Hit, Page
from everlog.events import FunctionError
from everlog.projections.hot.rows import Row
from everlog.store import SaidMessages
from everlog.store.base.stemming import phrases_in
from everlog.store.embedding.best_passage import passage_around

KINDS = ("insight", "fact", "plan")
"""Kinds of derived memories that are found."""
NEAREST = 20
"""Most results because of their meaning alone."""


def embedded(rows: Sequence[Row]) -> SaidMessages:
    """Return the records of these rows as texts to embed, each seq once: the items of a plan are one text."""
    texts: dict[int, tuple[str, str, str]] = {}
    for row in rows:
        kind, _, before = texts.get(row["seq"], (row["kind"], "", ""))
        texts[row["seq"]] = kind, "", f"{before}; {row['text']}" if before else row["text"]
    seqs = sorted(texts)
    return SaidMessages(seqs, lambda place: texts[seqs[place]])


def passing(rows: Sequence[Row], filters: Filters, after: int | None, before: int | None) -> list[Row]:
    """Return the rows that pass the filters. `after` (inclusive) and `before` (exclusive): times of noting.

    Raises FunctionError for a kind that there is not.
    """
    check_kinds(filters.kinds)
    return [
        row
        for row in rows
        if (filters.ended or not row["ended"])
        and (not filters.kinds or row["kind"] in filters.kinds)
        and (after is None or row["time"] >= after)
        and (before is None or row["time"] < before)
    ]


def check_kinds(kinds: Sequence[str]) -> None:
    """Raise FunctionError for a kind that there is not."""
    if unknown := sorted(set(kinds) - set(KINDS)):
        raise FunctionError(f"There is no kind of derived memories {unknown[0]!r}. Kinds are: {', '.join(KINDS)}.")


def found_among(
    rows: Sequence[Row], query: str, weights: Mapping[str, float], near_of: Mapping[int, float] | None
) -> list[Hit]:
    """Return the rows that answer the query as hits, most relevant first, equally relevant ones in their order; for a
    query without words all of them, newest first.

    `weights`: weight of each stem of the query. `near_of`: similarity in meaning of each record, by seq; None:
    words alone decide. Each result contains the phrases in quotes; if none does and the query has other words, these
    decide.
    """
    if not query.strip():
        return [_hit(row, 0.0, None) for row in reversed(rows)]
    phrases, rest = phrases_in(query)
    exact = [row for row in rows if phrases and all(phrase in row["text"].lower() for phrase in phrases)]
    if phrases and not exact and not rest:
        return []
    found = []
    for row in exact or rows:
        passage = passage_around(row["text"], weights, PASSAGE_CHARS, phrases)
        found.append((row, covered(passage, row["name"], weights), near_of[row["seq"]] if near_of else None))
    nearest = sorted((near for _, _, near in found if near is not None and near > 0), reverse=True)[:NEAREST]
    least = nearest[-1] if nearest else 2.0
    hits = [
        _hit(row, relevance(share, near, by_meaning=near is not None), near)
        for row, share, near in found
        if exact or share > 0 or (near is not None and near >= least)
    ]
    return sorted(hits, key=lambda hit: -hit.score)


def derived_page(
    rows: Sequence[Row],
    query: str,
    page: int,
    count: int,
    filters: Filters,
    zone: str,
    weights: Mapping[str, float],
    near: Mapping[int, float] | None,
    *,
    archive_down: bool,
) -> Page:
    """Return a page of insights, facts and items of plans. `near`: similarity of each record, by seq, if it is known.

    Raises FunctionError for invalid filters.
    """
    after, before = span_of(filters.start, filters.end, zone)
    hits = found_among(passing(rows, filters, after, before), query, weights, near)
    by_meaning = bool(hits) and near is not None
    results = hits[page * count :][:count]
    return Page(len(hits), page, -(-len(hits) // count), results, by_meaning=by_meaning, archive_down=archive_down)


def _hit(row: Row, score: float, near: float | None) -> Hit:
    ref = f"{row['seq']}.{row['part']}" if row["kind"] == "plan" else str(row["seq"])
    return Hit(
        seq=row["seq"], at=row["time"], role="derived", name=row["name"], text=row["text"], ref=ref,
        score=round(score, DIGITS), near=near, kind=row["kind"], sources=tuple(row["sources"]),
        outdated=row["outdated"], until=row["until"],
    )  # fmt: skip
