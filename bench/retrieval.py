"""Measure how much of the evidence for LoCoMo's questions `conversation_search` finds, by words alone and with meaning.

Run as `python -m bench.retrieval`; docs/explanation/benchmarks.md explains the keys of its figures.

The dev conversations are imported into agents of a store. Each agent is then loaded again, and each question is asked
unchanged, through the searcher that the agent's function uses, from the first question on; no model is involved. Gold
is what the data set names as evidence. Adversarial questions, which have no answer, and questions without evidence are
left out. The floor is MemGPT's own search: the whole question as one substring.
"""

import asyncio
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from bench import nested as nested_bench
from bench.support import hosted, locomo
from bench.support.harness import Figure, Line, Noise, median, noise, options, quantile, show, workspace
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.api import open_system
from everlog.actors.archive.archive_index import local_archive
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.agent_constants import PAGE_RESULTS
from everlog.actors.ports.effects import Searcher
from everlog.actors.ports.real_clock import RealClock
from everlog.projections import HEAD
from everlog.store import FileStore

RESULTS = 10
PAGES = RESULTS // PAGE_RESULTS
"""Pages of the function that hold RESULTS results."""
QUICK_LEAVES_OUT = 5
"""With --quick every fifth question is left out, and not a contiguous part, because the easy ones are next to each
other.
"""
WAYS = ("substring", "lexical", "hybrid")
KEYS = (
    "recall_at_10_lexical", "recall_at_10_hybrid", "ndcg_at_10", "recall_at_5_lexical", "recall_at_5_hybrid",
    "ndcg_at_10_lexical", "cpu_ms_lexical", "cpu_ms_hybrid", "pages_by_words",
)  # fmt: skip
GOALS = {
    "recall_at_10_lexical": "0.69, 0.66 accepted", "recall_at_10_hybrid": "0.74, 0.70 accepted",
    "ndcg_at_10": "at least 0.56 (hybrid)", "pages_by_words": "0",
}  # fmt: skip


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


class Tried(msgspec.Struct, frozen=True):
    """Scores of one question with one search method."""

    conversation: str
    category: str
    recall_5: float
    recall_10: float
    ndcg_10: float
    ms: float
    """CPU milliseconds of a page."""
    by_words: int = 0
    """Number of the agent's pages that words alone had found."""


def scored(found: Sequence[str], gold: Sequence[str]) -> tuple[float, float, float]:
    """Return recall at 5 and at 10, and nDCG at 10, of refs in the order in which they were found."""
    wanted = set(gold)
    gain = sum(1 / math.log2(place + 2) for place, ref in enumerate(found[:RESULTS]) if ref in wanted)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(RESULTS, len(wanted))))
    return len(wanted & set(found[:5])) / len(wanted), len(wanted & set(found[:RESULTS])) / len(wanted), gain / ideal


def substring(messages: Sequence[Mapping[str, Any]], query: str) -> list[str]:
    """Search as MemGPT does: messages that contain the whole query, in the order of the conversation."""
    return [row["ref"] for row in messages if query.lower() in row["text"].lower()]


async def measure(root: Path, plan: Plan) -> dict[str, list[Tried]]:
    """Return the scores of every question with each search method."""
    paths = locomo.conversations(plan.data)
    tried: dict[str, list[Tried]] = {way: [] for way in WAYS}
    async with open_system(root, runtime="local", timers=False) as system:
        for path in paths:
            agent = await system.agent(path.stem, Settings(model="offline", window=1_000_000))
            await agent.import_messages(locomo.said_in(path))
            await agent.unload()
    for path in paths:
        all_of = enumerate(locomo.questions(path), 1)
        asked = islice((one for n, one in all_of if not plan.quick or n % QUICK_LEAVES_OUT), plan.questions)
        await _ask(root, path.stem, list(asked), tried)
    return tried


async def _ask(root: Path, name: str, asked: Sequence[locomo.Question], tried: Mapping[str, list[Tried]]) -> None:
    """Ask the questions of one conversation.

    The agent is loaded as `everlog send` loads it, and its own searcher is asked for the pages that
    `conversation_search` would show; nothing is waited for or prepared before the first question.
    """
    store = FileStore(root, RealClock().now)
    archive = local_archive(store, note=print)
    local = LocalSystem(store, services=AgentServices(archive=archive))
    try:
        async with local.agent(name, create=False) as agent:
            with local.view(name) as view:
                context = view.context()
                lexical = AgentSearcher(view.projections, name, HEAD, context.config.zone)
                hybrid = agent.searcher(context, agent.turn + 1)
                messages = view.rows("recall_memory")
                for one in asked:
                    for way, row in (await _found(lexical, hybrid, messages, one.question)).items():
                        refs, seconds, by_words = row
                        scores = scored(refs, one.evidence)
                        tried[way].append(Tried(name, one.category, *scores, seconds * 1000, by_words))
    finally:
        await archive.close()


async def _found(
    lexical: Searcher, hybrid: Searcher, messages: Sequence[Mapping[str, Any]], question: str
) -> Mapping[str, tuple[Sequence[str], float, int]]:
    """Return, by method, the refs that a question finds, CPU seconds for a page, and the pages by words alone.

    The methods take turns, so that a busy minute affects all.
    """
    begun = time.process_time()
    found = {"substring": (substring(messages, question), time.process_time() - begun, 0)}
    for way, searcher in (("lexical", lexical), ("hybrid", hybrid)):
        begun = time.process_time()
        pages = [await searcher.recall(question, page, PAGE_RESULTS) for page in range(PAGES)]
        seconds = (time.process_time() - begun) / PAGES
        refs = [hit.ref for page in pages for hit in page.results]
        found[way] = (refs, seconds, sum(not page.by_meaning for page in pages))
    return found


def mean(tried: Sequence[Tried], field: str) -> float:
    """Return the mean of a field over questions."""
    return sum(getattr(one, field) for one in tried) / max(len(tried), 1)


def figures(tried: Mapping[str, Sequence[Tried]]) -> list[Figure]:
    """Return the claimed figures. The floors are the recall and the time of MemGPT's search."""
    floor = tried["substring"]
    ms = median([one.ms for one in floor])
    ways = {"lexical": tried["lexical"], "hybrid": tried["hybrid"]}
    values: dict[str, tuple[float, str, float]] = {}
    for way, some in ways.items():
        values[f"recall_at_5_{way}"] = (mean(some, "recall_5"), "ratio", mean(floor, "recall_5"))
        values[f"recall_at_10_{way}"] = (mean(some, "recall_10"), "ratio", mean(floor, "recall_10"))
        values[f"cpu_ms_{way}"] = (median([one.ms for one in some]), "ms", ms)
    values["ndcg_at_10"] = (mean(ways["hybrid"], "ndcg_10"), "ratio", mean(floor, "ndcg_10"))
    values["ndcg_at_10_lexical"] = (mean(ways["lexical"], "ndcg_10"), "ratio", mean(floor, "ndcg_10"))
    values["pages_by_words"] = (float(sum(one.by_words for one in ways["hybrid"])), "pages", 0.0)
    return [Figure(key, *values[key]) for key in KEYS]


def lines(found: Sequence[Figure], tried: Mapping[str, Sequence[Tried]]) -> list[Line]:
    """Return the table: the figures, then R@5, R@10 and nDCG@10 of each method by category and by conversation."""
    rows = [
        Line(one.key, f"{one.value:.3g} {one.unit}", f"{one.floor:.3g}", GOALS.get(one.key, ""), _p90(one.key, tried))
        for one in found
    ]
    for field in ("category", "conversation"):
        for group in sorted({getattr(one, field) for one in tried["lexical"]}):
            for way in WAYS:
                some = [one for one in tried[way] if getattr(one, field) == group]
                parts = " / ".join(f"{mean(some, part) * 100:.1f}" for part in ("recall_5", "recall_10", "ndcg_10"))
                rows.append(Line(f"{group}, {way}", parts, "", "R@5 / R@10 / nDCG@10", f"{len(some)} questions"))
    return rows


def _p90(key: str, tried: Mapping[str, Sequence[Tried]]) -> str:
    """Return the number of questions of a figure, or the p90 of a time."""
    if not key.startswith("cpu_ms_"):
        return f"{len(tried['lexical'])} questions"
    return f"p90 {quantile([one.ms for one in tried[key.removeprefix('cpu_ms_')]], 0.9):.1f}"


def nested(*, quick: bool) -> tuple[list[Figure], list[Line]]:
    """Measure the paper's nested key-value retrieval: the worst level counts."""
    found = nested_bench.nested_kv(nested_bench.Plan(records=1) if quick else nested_bench.Plan())
    figure = Figure("nested_kv", found["nested_kv"], "ratio", 1.0)
    rows = [Line("nested_kv", f"{figure.value:.3g} ratio", "1", "1.0", "worst of 0 to 4 levels")]
    return [figure], [*rows, *(Line(key, f"{value:.3g}") for key, value in found.items() if key != "nested_kv")]


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


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    about = "How much of the evidence of LoCoMo's dev questions a search of recall memory finds."
    args = options(
        "retrieval", about, argv,
        lambda parser: parser.add_argument("--data", metavar="DIR", help="folder with locomo/dev (EVERLOG_DATA)"),
    )  # fmt: skip
    data = args.data or os.environ.get("EVERLOG_DATA")
    plan = Plan(quick=args.quick)
    report(msgspec.structs.replace(plan, data=Path(data)) if data else plan)
    return 0


if __name__ == "__main__":
    sys.exit(main())
