"""Measure how much of the evidence for LoCoMo's questions `conversation_search` finds, by words alone and with meaning.

Run as `python -m bench.retrieval`; docs/explanation/benchmarks.md explains the keys of its figures.

The dev conversations are imported into agents of a store, and each question is asked unchanged, through the searcher
that the function uses; no model is involved. Gold is what the data set names as evidence. Adversarial questions, which
have no answer, and questions without evidence are left out. The floor is MemGPT's own search: the whole question as one
substring.
"""

import asyncio
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from bench.nested import nested_kv
from bench.support import hosted
from bench.support.harness import ROOT, Figure, Line, Noise, median, noise, options, quantile, show, workspace
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import ImportedMessage, conversation
from everlog.actors.agent.local_system import AgentView
from everlog.actors.api import open_system
from everlog.actors.archive.archive_index import local_archive
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.effects import ArchiveClient
from everlog.projections import HEAD

CATEGORIES = ("single-hop", "multi-hop", "temporal", "open-domain")
"""Categories of LoCoMo's questions that can be answered."""
RESULTS = 10
QUICK_LEAVES_OUT = 5
"""With --quick every fifth question is left out, and not a contiguous part, because the easy ones are next to each
other.
"""
WAYS = ("substring", "lexical", "hybrid")
KEYS = (
    "recall_at_10_lexical", "recall_at_10_hybrid", "ndcg_at_10", "recall_at_5_lexical", "recall_at_5_hybrid",
    "ndcg_at_10_lexical", "cpu_ms_lexical", "cpu_ms_hybrid",
)  # fmt: skip
GOALS = {
    "recall_at_10_lexical": "0.69, 0.66 accepted", "recall_at_10_hybrid": "0.74, 0.70 accepted",
    "ndcg_at_10": "at least 0.56 (hybrid)",
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
    data: Path = ROOT.parent / "shared" / "data"


class Question(msgspec.Struct):
    """A line of the data set."""

    question: str
    category: str
    evidence: list[str]


class Tried(msgspec.Struct, frozen=True):
    """Scores of one question with one search method."""

    conversation: str
    category: str
    recall_5: float
    recall_10: float
    ndcg_10: float
    ms: float
    """CPU milliseconds, for which an event loop is blocked."""


def questions(path: Path) -> Iterator[Question]:
    """Yield the questions of a file that have an answer and evidence."""
    for line in path.read_bytes().splitlines():
        if (one := msgspec.json.decode(line, type=Question)).category in CATEGORIES and one.evidence:
            yield one


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
    folder = plan.data / "locomo" / "dev"
    paths = sorted(path for path in folder.glob("*.jsonl") if not path.name.endswith(".questions.jsonl"))
    if not paths:
        raise SystemExit(f"no conversations in {folder}: set EVERLOG_DATA, or use --data DIR, the folder of locomo/dev")
    tried: dict[str, list[Tried]] = {way: [] for way in WAYS}
    async with open_system(root, runtime="local", timers=False) as system:
        archive = local_archive(system.store, "wait", note=print)
        for path in paths:
            agent = await system.agent(path.stem, Settings(model="offline", window=1_000_000))
            await agent.import_messages(said_in(path))
            await agent.unload()
            view = system.view(path.stem)
            all_of = enumerate(questions(path.with_suffix(".questions.jsonl")), 1)
            asked = islice((one for n, one in all_of if not plan.quick or n % QUICK_LEAVES_OUT), plan.questions)
            await _ask(view, archive, path.stem, list(asked), tried)
            view.close()
        await archive.close()
    return tried


def said_in(path: Path) -> Sequence[ImportedMessage]:
    """Return the messages of a conversation."""
    return conversation(path.read_bytes().splitlines(), path.name)


async def _ask(
    view: AgentView, archive: ArchiveClient, name: str, asked: Sequence[Question], tried: Mapping[str, list[Tried]]
) -> None:
    """Ask the questions with each method in turns, so that a busy minute affects all."""
    messages = view.rows("recall_memory")
    zone = view.context().config.zone
    lexical = AgentSearcher(view.projections, name, HEAD, zone)
    hybrid = AgentSearcher(view.projections, name, HEAD, zone, archive=archive)
    for searcher in (lexical, hybrid):  # the first search builds the postings, and makes the archive follow the log
        await searcher.recall("first", 0, RESULTS)
    for one in asked:
        begun = time.process_time()
        refs = {"substring": substring(messages, one.question)}
        took = {"substring": time.process_time() - begun}
        for way, searcher in (("lexical", lexical), ("hybrid", hybrid)):
            begun = time.process_time()
            page = await searcher.recall(one.question, 0, RESULTS)
            took[way] = time.process_time() - begun
            refs[way] = [hit.ref for hit in page.results]
        for way, found in refs.items():
            tried[way].append(Tried(name, one.category, *scored(found, one.evidence), took[way] * 1000))


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
    found = nested_kv(quick)
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
