"""Measure how much of the evidence for questions about a conversation `conversation_search` finds, by kind of talk.

Run as `python -m bench.retrieval`; docs/explanation/benchmarks.md explains the keys of its figures.

The kinds are those of `bench.talk.talk_kinds`: LoCoMo's dev conversations, meetings, and scripted chats with an
assistant. Each question is asked unchanged, by words alone and with meaning; no model is involved. Gold is what the
data names as evidence. LoCoMo's adversarial questions, which have no answer, are left out.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from bench.paper import nested as nested_bench
from bench.support import hosted, locomo
from bench.support.harness import Figure, Line, Noise, line, median, noise, options, quantile, show, workspace
from bench.talk import stand_in_answers
from bench.talk.search_scores import WAYS, Tried, groups, mean, of_kind
from bench.talk.search_scores import measure as measure_kinds
from bench.talk.talk_kinds import ASSISTANT, LOCOMO, MEETINGS, kinds, public
from bench.talk.talk_shapes import Conversation, TalkQuestion
from bench.talk.vocabulary import LANGUAGES

QUICK_CONVERSATIONS, QUICK_EACH = 1, 3
"""With --quick, conversations of every kind but LoCoMo, and the distance of the questions of each. A contiguous part
would not do, because the easy questions are next to each other.
"""
CHATS = tuple(f"{ASSISTANT}_{language}" for language in LANGUAGES)
KINDS = (LOCOMO, MEETINGS, *CHATS)
LOCOMO_KEYS = (
    "recall_at_10_lexical", "recall_at_10_hybrid", "ndcg_at_10", "recall_at_5_lexical", "recall_at_5_hybrid",
    "ndcg_at_10_lexical", "cpu_ms_lexical", "cpu_ms_hybrid", "pages_by_words", "recall_at_20_lexical",
    "recall_at_20_hybrid",
)  # fmt: skip
CHAT_SCORES = ("recall_at_10", "recall_at_20", "ndcg_at_10")
MEETING_SCORES = ("precision_at_10", "any_at_10")
KEYS = (
    *LOCOMO_KEYS,
    *(f"{MEETINGS}_{score}_{way}" for score in MEETING_SCORES for way in ("lexical", "hybrid")),
    *(f"{kind}_{score}_{way}" for kind in CHATS for score in CHAT_SCORES for way in ("lexical", "hybrid")),
    "page_chars",
)
GOALS = {
    "recall_at_10_lexical": "0.765", "recall_at_10_hybrid": "0.785", "ndcg_at_10": "0.65 (hybrid)",
    "recall_at_5_hybrid": "0.71", "recall_at_20_hybrid": "0.84", "pages_by_words": "0", "page_chars": "3,500",
}  # fmt: skip
STAND_IN_GOAL = "0.7 of the answers"


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement."""

    questions: int | None = None
    """Number of questions of each conversation; None: all."""
    quick: bool = False
    nested: bool = True
    """True if the nested key-value retrieval is measured as well."""
    hosted: int = 500
    """Number of agents in the host in which searches are timed."""
    data: Path = locomo.DATA
    kinds: Sequence[str] = KINDS


async def measure(root: Path, plan: Plan) -> dict[str, list[Tried]]:
    """Return the scores by search method. Raise SystemExit if LoCoMo is asked for and absent."""
    if LOCOMO in plan.kinds:
        locomo.conversations(plan.data)
    chosen = {kind: some for kind, some in kinds(plan.data).items() if kind in plan.kinds}
    if plan.quick:
        chosen = {kind: some if kind == LOCOMO else some[:QUICK_CONVERSATIONS] for kind, some in chosen.items()}

    def asked(talk: Conversation) -> Sequence[TalkQuestion]:
        return list(islice(talk.questions[:: QUICK_EACH if plan.quick else 1], plan.questions))

    return await measure_kinds(root, chosen, asked)


def figures(tried: Mapping[str, Sequence[Tried]]) -> list[Figure]:
    """Return the claimed figures of the kinds that were measured."""
    values = {**_of_locomo(tried), **_of_other_kinds(tried)}
    return [Figure(key, *values[key]) for key in KEYS if key in values]


def _of_locomo(tried: Mapping[str, Sequence[Tried]]) -> dict[str, tuple[float, str, float]]:
    """Return value, unit and floor of LoCoMo's figures. The floors are the recall and the time of MemGPT's search."""
    own = {way: of_kind(some, LOCOMO) for way, some in tried.items()}
    if not own["hybrid"]:
        return {}
    floor = own["substring"]
    ms = median([one.ms for one in floor])
    values: dict[str, tuple[float, str, float]] = {}
    for way in ("lexical", "hybrid"):
        for count in (5, 10, 20):
            field = f"recall_{count}"
            values[f"recall_at_{count}_{way}"] = (mean(own[way], field), "ratio", mean(floor, field))
        values[f"cpu_ms_{way}"] = (median([one.ms for one in own[way]]), "ms", ms)
    values["ndcg_at_10"] = (mean(own["hybrid"], "ndcg_10"), "ratio", mean(floor, "ndcg_10"))
    values["ndcg_at_10_lexical"] = (mean(own["lexical"], "ndcg_10"), "ratio", mean(floor, "ndcg_10"))
    values["pages_by_words"] = (float(sum(one.by_words for one in tried["hybrid"])), "pages", 0.0)
    return values


def _of_other_kinds(tried: Mapping[str, Sequence[Tried]]) -> dict[str, tuple[float, str, float]]:
    """Return value, unit and floor of the other kinds' figures.

    The floor of words is plain BM25, and that of hybrid the better one of plain BM25 and bare cosine.
    """
    values: dict[str, tuple[float, str, float]] = {}
    for kind in (MEETINGS, *CHATS):
        own = {way: of_kind(some, kind) for way, some in tried.items()}
        for score in (MEETING_SCORES if kind == MEETINGS else CHAT_SCORES) if own["hybrid"] else ():
            field = score.replace("_at_", "_")
            words, meaning = mean(own["bm25"], field), mean(own["cosine"], field)
            values[f"{kind}_{score}_lexical"] = (mean(own["lexical"], field), "ratio", words)
            values[f"{kind}_{score}_hybrid"] = (mean(own["hybrid"], field), "ratio", max(words, meaning))
    if long := [one.chars for one in tried["hybrid"] if one.kind in CHATS[:1]]:
        values["page_chars"] = (sum(long) / len(long), "characters", 0.0)
    return values


def lines(found: Sequence[Figure], tried: Mapping[str, Sequence[Tried]]) -> list[Line]:
    """Return the table: the figures, then the scores of each method by kind, by category and by conversation."""
    rows = [
        Line(one.key, f"{one.value:.3g} {one.unit}", f"{one.floor:.3g}", GOALS.get(one.key, ""), _p90(one.key, tried))
        for one in found
    ]
    for group, ways in groups(tried):
        meeting = ways["hybrid"][0].kind == MEETINGS
        fields = ("precision_10", "any_10") if meeting else ("recall_5", "recall_10", "recall_20", "ndcg_10")
        heads = "P@10 / any@10" if meeting else "R@5 / R@10 / R@20 / nDCG@10"
        for way in WAYS:
            parts = " / ".join(f"{mean(ways[way], part) * 100:.1f}" for part in fields)
            rows.append(Line(f"{group}, {way}", parts, "", heads, f"{len(ways[way])} questions"))
    return rows


def _p90(key: str, tried: Mapping[str, Sequence[Tried]]) -> str:
    """Return the p90 of a time; empty for other figures."""
    if not key.startswith("cpu_ms_"):
        return ""
    return f"p90 {quantile([one.ms for one in of_kind(tried[key.removeprefix('cpu_ms_')], LOCOMO)], 0.9):.1f}"


def nested(*, quick: bool) -> tuple[list[Figure], list[Line]]:
    """Measure the paper's nested key-value retrieval: the worst level counts."""
    found = nested_bench.nested_kv(nested_bench.Plan(records=1) if quick else nested_bench.Plan())
    figure = Figure("nested_kv", found["nested_kv"], "ratio", 1.0)
    rows = [Line("nested_kv", f"{figure.value:.3g} ratio", "1", "1.0", "worst of 0 to 4 levels")]
    return [figure], [*rows, *(Line(key, f"{value:.3g}") for key, value in found.items() if key != "nested_kv")]


async def stand_in(folder: Path, plan: Plan) -> tuple[list[Figure], list[Line]]:
    """Measure the answers of the offline stand-in about LoCoMo's conversations."""
    talks, count = public(plan.data, LOCOMO), stand_in_answers.QUESTIONS
    if not talks:
        locomo.conversations(plan.data)
    tuned = await stand_in_answers.measure(folder, talks, count, stand_in_answers.TUNED)
    held = await stand_in_answers.measure(folder, talks, count, stand_in_answers.HELD)
    found = stand_in_answers.figures(tuned, held)
    goals = (STAND_IN_GOAL, STAND_IN_GOAL, "")
    rows = [line(one, goal) for one, goal in zip(found, goals, strict=True)]
    return found, [*rows, *stand_in_answers.table({"tuned": tuned, "held": held})]


def report_stand_in(plan: Plan) -> None:
    """Measure the offline stand-in alone and print it."""
    with workspace() as folder:
        before: Noise = noise(folder)
        found, rows = asyncio.run(stand_in(folder / "store", plan))
    show("retrieval", before, found, rows)


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    with workspace() as folder:
        before: Noise = noise(folder)
        tried = asyncio.run(measure(folder / "store", plan))
    found = figures(tried)
    costs = hosted.figures(plan.hosted)
    more, rows = nested(quick=plan.quick) if plan.nested else ([], [])
    table = [*lines(found, tried), *hosted.lines(costs, plan.hosted), *rows]
    show("retrieval", before, [*found, *costs, *more], table)


def _more_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", help="folder with locomo/dev and meetings/dev (EVERLOG_DATA)")
    parser.add_argument("--stand-in", action="store_true", help="measure the answers of the offline stand-in instead")
    parser.add_argument("--kind", action="append", choices=KINDS, help="measure this kind of talk only; repeatable")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    about = "How much of the evidence a search of recall memory finds, in each kind of talk."
    args = options("retrieval", about, argv, _more_options)
    data = args.data or os.environ.get("EVERLOG_DATA")
    plan = Plan(quick=args.quick, kinds=args.kind or KINDS)
    plan = msgspec.structs.replace(plan, data=Path(data)) if data else plan
    if args.stand_in:
        report_stand_in(plan)
    else:
        report(plan)
    return 0


if __name__ == "__main__":
    sys.exit(main())
