"""Laws of the views of memories: formats keep order and budget, rankings keep their bounds, summaries always end."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import strategies as st

from everlog.actors.recollection.memory_format import formatted
from everlog.actors.recollection.memory_items import MemoryItem, tokens
from everlog.actors.recollection.memory_levels import (
    LEVELS_MAX,
    KnownSummaries,
    MemoryLevels,
    SummaryLimits,
    cut_text,
    extracted,
    summarized,
)
from everlog.actors.recollection.memory_ranking import (
    INSIGHT_SHARE,
    NUDGE,
    Candidate,
    by_default,
    by_paper,
    closures,
    normalized,
    parts_after,
    recency,
)
from everlog.events import BadInput
from tests.support.law import law

HOUR = 3_600_000_000
TIMES = st.integers(0, 3000 * HOUR)
TEXTS = st.lists(st.text(st.sampled_from("ab é😀\n"), max_size=60), max_size=12)
CANDIDATES = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 10), TIMES), max_size=8)


def item(seq: int, *, text: str = "", importance: int = 5, at: int = 0, **more: object) -> MemoryItem:
    """Return a message as a memory."""
    return MemoryItem(seq, "message", at, "user", "", text, importance, **more)  # type: ignore[arg-type]


def candidates(drawn: Sequence[tuple[float, int, int]]) -> list[Candidate]:
    """Return candidates with these relevances, importances and accesses."""
    return [
        Candidate(item(n, importance=importance), relevance, accessed)
        for n, (relevance, importance, accessed) in enumerate(drawn, 1)
    ]


@law(TIMES, TIMES, TIMES, few=50, many=2000)
def test_recency_falls_with_the_time_since_the_access(one: int, other: int, now: int) -> None:
    """The later access has the higher recency, never the lower; an access now has 1, an hour ago 0.995."""
    early, late = sorted((one, other))
    assert 0 < recency(early, now) <= recency(late, now) <= 1
    if early < late <= now:
        assert recency(early, now) < recency(late, now) or late - early < HOUR
    assert recency(now, now) == 1 and recency(now - HOUR, now) == pytest.approx(0.995)


@law(CANDIDATES, TIMES, few=50, many=2000)
def test_of_two_like_memories_the_later_used_has_the_higher_score(drawn: list[tuple[float, int, int]], at: int) -> None:
    """In both modes: the code of Generative Agents, which ranks the least recently used first, fails here."""
    like = [(0.5, 5, 100 * HOUR), (0.5, 5, 900 * HOUR)]
    now = 1000 * HOUR + at
    for ranked in (by_paper(candidates([*like, *drawn]), now)[0], by_default(candidates([*like, *drawn]), now)):
        scores = {one.item.seq: one.score for one in ranked}
        assert scores[2] >= scores[1]
    alone, _ = by_paper(candidates(like), now)
    assert [one.item.seq for one in alone] == [2, 1]


@law(st.lists(st.floats(-1, 10), max_size=9), few=50, many=2000)
def test_values_are_scaled_to_the_whole_range(values: list[float]) -> None:
    """The smallest becomes 0 and the largest 1; one value or equal values become 0 and are reported; none are none."""
    scaled, same = normalized(values)
    assert len(scaled) == len(values)
    if len(set(values)) < 2:
        assert scaled == [0.0] * len(values) and same == bool(values)
    else:
        assert (min(scaled), max(scaled), same) == (0.0, 1.0, False)
        assert all(0 <= value <= 1 for value in scaled)
        order = sorted(range(len(values)), key=values.__getitem__)
        assert all(scaled[one] <= scaled[other] for one, other in pairwise(order))


@law(CANDIDATES, TIMES, few=50, many=2000)
def test_the_paper_s_score_is_the_sum_of_its_terms(drawn: list[tuple[float, int, int]], now: int) -> None:
    """Each term is from 0 to 1, a constant one is 0 for all; scores fall, and equal ones are in the order of seqs."""
    ranked, constant = by_paper(candidates(drawn), now)
    assert sorted(one.item.seq for one in ranked) == list(range(1, len(drawn) + 1))
    for one in ranked:
        terms = {"relevance": one.relevance, "recency": one.recency, "importance": one.importance}
        assert one.score == pytest.approx(sum(terms.values()), abs=1e-8)
        assert all(0 <= term <= 1 for term in terms.values())
        assert not any(terms[name] for name in constant)
    assert all((-one.score, one.item.seq) < (-other.score, other.item.seq) for one, other in pairwise(ranked))
    if len(drawn) == 1:
        assert sorted(constant) == ["importance", "recency", "relevance"]
    if not drawn:
        assert not constant


@law(CANDIDATES, TIMES, few=50, many=2000)
def test_recency_and_importance_move_a_relevance_by_at_most_a_tenth(
    drawn: list[tuple[float, int, int]], now: int
) -> None:
    """The default mode: a memory that is more relevant by more than both bounds is before the other."""
    ranked = by_default(candidates(drawn), now)
    for one in ranked:
        assert (1 - NUDGE) * one.relevance - 1e-8 <= one.score <= (1 + NUDGE) * one.relevance + 1e-8
    for one, other in pairwise(ranked):
        assert other.relevance * (1 - NUDGE) <= one.relevance * (1 + NUDGE) + 1e-8


@law(
    TEXTS, st.none() | st.integers(0, 5), st.none() | st.integers(0, 30), st.sampled_from(["", "\n", " -- "]),
    st.randoms(use_true_random=False), few=50, many=2000,
)  # fmt: skip
def test_a_format_keeps_order_and_budget(
    texts: list[str], item_limit: int | None, token_limit: int | None, separator: str, chance: object
) -> None:
    """The text is that of some items in order, within both limits; no item that was left out would fit, too; without
    limits all are there.
    """
    items = [item(n, text=text) for n, text in enumerate(texts)]
    priority = list(range(len(items)))
    chance.shuffle(priority)  # type: ignore[attr-defined]
    written: dict[int, str] = {}
    taken = formatted(
        items, priority, lambda one: f"<{one.seq}>{one.text}", separator=separator, item_limit=item_limit,
        token_limit=token_limit,
    )  # fmt: skip
    written = {n: f"<{n}>{text}" for n, text in enumerate(texts)}
    seqs = [n for n in written if f"<{n}>" in taken]
    assert taken == separator.join(written[n] for n in seqs)
    assert token_limit is None or tokens(taken) <= token_limit
    assert item_limit is None or len(seqs) <= item_limit
    if item_limit is None and token_limit is None:
        assert len(seqs) == len(texts)
    for n in set(written) - set(seqs):
        more = separator.join(written[one] for one in sorted({*seqs, n}))
        full = item_limit is not None and len(seqs) >= item_limit
        assert full or (token_limit is not None and tokens(more) > token_limit)


def test_a_limit_below_zero_is_refused() -> None:
    """Both limits are 0 or more; 0 gives nothing."""
    for limit in ("item_limit", "token_limit"):
        assert formatted([item(1, text="abc")], [0], lambda one: one.text, **{limit: 0}) == ""  # type: ignore[arg-type]
        with pytest.raises(BadInput, match=f"{limit} is 0 or more"):
            formatted([item(1)], [0], lambda one: one.text, **{limit: -1})  # type: ignore[arg-type]


async def wordy(texts: Sequence[str], _: int) -> str:
    """Return a summary that is longer than it may be."""
    return " ".join(texts) + " and so on" * 40


@law(
    st.lists(st.text(st.sampled_from("ab é😀 "), max_size=400), max_size=25), st.integers(10, 40), st.integers(10, 40),
    st.integers(0, 60), st.booleans(), few=30, many=500,
)  # fmt: skip
def test_summaries_end_within_the_budget(texts: list[str], one: int, summary: int, spare: int, endless: bool) -> None:
    """The total is never above the limit, whatever a summarizer writes; each memory is in one text, in order; a merged
    text has the time of its first; the newest is never merged.
    """
    separator = "\n\n"
    limits = SummaryLimits(one + summary + tokens(separator) + spare, one, summary, separator)
    said = [(text, 100 + n, n) for n, text in enumerate(texts)]
    levels = asyncio.run(summarized(said, wordy if endless else extracted, limits))
    assert tokens(separator.join(level.text for level in levels)) <= limits.token_limit
    assert [seq for level in levels for seq in level.seqs] == list(range(len(texts)))
    for level in levels:
        assert level.at == 100 + level.seqs[0]
        assert 0 <= level.level <= LEVELS_MAX and (len(level.seqs) == 1) == (level.level == 0)
        assert tokens(level.text) <= one if level.level == 0 else tokens(level.text) <= summary
    if levels:
        assert levels[-1].level == 0
    assert asyncio.run(summarized(said, wordy if endless else extracted, limits)) == levels


def test_a_summary_is_written_once_for_the_same_texts() -> None:
    """The texts of an earlier moment are summarized by no new call, also by a model that never answers the same."""
    asked: list[Sequence[str]] = []

    async def model(texts: Sequence[str], _: int) -> str:
        asked.append(texts)
        return f"summary {len(asked)}"

    known = KnownSummaries(model)
    limits = SummaryLimits(token_limit=40, one_message_limit=12, summary_limit=12)
    said = [(f"message {n} " + "word " * 20, n, n) for n in range(40)]
    before = asyncio.run(summarized(said[:30], known, limits))
    count = len(asked)
    assert asyncio.run(summarized(said[:30], known, limits)) == before and len(asked) == count
    asyncio.run(summarized(said, known, limits))
    assert len(asked) > count and len({tuple(texts) for texts in asked}) == len(asked)


def test_limits_that_cannot_be_kept_are_refused() -> None:
    """The newest memory and one summary must fit; a summary has at least ten tokens."""
    with pytest.raises(BadInput, match="give 751 or more"):
        MemoryLevels(SummaryLimits(token_limit=750))
    with pytest.raises(BadInput, match="at least 10 tokens"):
        MemoryLevels(SummaryLimits(summary_limit=9))


@law(st.text(st.sampled_from("ab é😀 "), max_size=300), st.integers(1, 60), few=50, many=2000)
def test_a_cut_text_is_a_beginning_within_its_limit(text: str, limit: int) -> None:
    """A text that fits stays; a longer one becomes its beginning and dots."""
    cut = cut_text(text, limit)
    assert tokens(cut) <= limit
    if tokens(text) <= limit:
        assert cut == text
    else:
        assert cut.endswith("...") and text.startswith(cut.removesuffix("...").removesuffix(" "))


@law(
    st.lists(st.tuples(st.floats(0.01, 1), st.sets(st.integers(1, 9), max_size=3), st.booleans()), max_size=9),
    st.booleans(), few=50, many=2000,
)  # fmt: skip
def test_an_insight_is_moved_only_before_its_own_parts(
    drawn: list[tuple[float, set[int], bool]],
    leave_out: bool,
) -> None:
    """Combined mode: messages and outdated insights keep their order; an insight stands before a part that is scored
    at most as high, and what is left out is a part of an insight before it.
    """
    items = []
    for n, (_, parts, outdated) in enumerate(drawn, 1):
        sources = tuple(sorted(part for part in parts if part < n))
        kind = "insight" if sources else "message"
        items.append(MemoryItem(n, kind, n, "derived", "", "", 5, sources, 0, outdated and bool(sources)))
    ranked = by_default([Candidate(one, score, 0) for one, (score, _, _) in zip(items, drawn, strict=True)], 0)
    parts_of = closures(items)
    found = parts_after(ranked, parts_of, leave_out=leave_out)
    whole = parts_after(ranked, parts_of)
    assert sorted(one.item.seq for one in whole) == sorted(one.item.seq for one in ranked)

    def kept(order: Sequence[object]) -> list[int]:
        return [one.item.seq for one in order if one.item.kind == "message" or one.item.outdated]  # type: ignore[attr-defined]

    assert kept(whole) == kept(ranked)
    place = {one.item.seq: n for n, one in enumerate(whole)}
    for insight in (one for one in whole if one.item.kind == "insight" and not one.item.outdated):
        for part in parts_of[insight.item.seq] & place.keys():
            score = next(one.score for one in whole if one.item.seq == part)
            plain = next(one for one in whole if one.item.seq == part).item.kind == "message"
            if plain and place[part] < place[insight.item.seq]:
                assert insight.score < INSIGHT_SHARE * score
    covering = [one for one in found if one.item.kind == "insight" and not one.item.outdated]
    for missing in set(place) - {one.item.seq for one in found}:
        assert leave_out and any(missing in parts_of[one.item.seq] for one in covering)
