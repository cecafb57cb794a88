"""Run the MemGPT paper's nested key-value retrieval: 140 pairs; some values are keys of others, 0 to 4 levels deep.

`bench.retrieval` prints the figure too. docs/explanation/benchmarks.md explains it.

Each pair is a memory of an agent. The agent's model is a script that sees nothing but the requests: it searches for the
key with archival_memory_search, requests the next page while the key is not found, follows the value until no memory
has that value as a key, and sends it with send_message. Everything else is the normal agent: the loop, the log on the
disk, the archive with its vectors. `--model` asks a real model in place of the script.
"""

import argparse
import asyncio
import gzip
import json
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from bench.support.experiments import (
    AT_ONCE,
    STEPS_MAX,
    Call,
    Chosen,
    Outcome,
    agents,
    mean,
    model_options,
    pose,
    results,
    share,
    shown,
    since_input,
)
from bench.support.harness import ROOT, Figure, Line, noise, options, show, workspace
from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.agent_system import AgentSystem
from everlog.interfaces.common.argument_values import count

DATA = ROOT.parent / "shared" / "data" / "nested_kv"
LEVELS = range(5)
"""Levels 0 to 4, as in the paper."""
FUNCTION = "archival_memory_search"
WINDOW_SCRIPT = 1_000_000
PERSONA = InitialBlock(
    "persona",
    "My archival memory holds pairs `key: value`. Asked what a key leads to, I search for the key until a memory "
    "begins with it, page after page. Then I search for its value in the same way, because a value may be a key of "
    "another pair. The answer is the first value that no memory has as its key, and I send that value alone.",
)
"""Persona of the agent, as the paper has one for this task."""

_PAIR = re.compile(r"memory: ([0-9a-f-]{36}): ([0-9a-f-]{36})$")
_KEY = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement."""

    records: int = 30
    """Number of records of each level, as in the paper."""
    levels: Sequence[int] = LEVELS
    chosen: Chosen = Chosen()


QUICK = Plan(records=4)


class Question(msgspec.Struct, frozen=True):
    """One record of one level."""

    pairs: Sequence[tuple[str, str]]
    key: str
    answer: str


Answered = Sequence[tuple[Question, Outcome]]


def next_call(messages: Sequence[dict[str, Any]]) -> Call:
    """Return the function that follows from the chat messages of a request, and its arguments."""
    question, later = since_input(messages)
    key, page = _KEY.findall(question)[0], 0
    for result in results(later):
        pages, pairs = read(result)
        if key in pairs:
            key, page = pairs[key], 0
        elif page < pages:
            page += 1
        else:
            return "send_message", {"message": key}
    return FUNCTION, {"query": key, "page": page, "request_heartbeat": True}


def read(result: str) -> tuple[int, dict[str, str]]:
    """Return the number of the last page, and the pairs that a page shows."""
    last, lines = shown(result)
    return last, dict(pair.groups() for line in lines if (pair := _PAIR.search(line)))


def questions(level: int, records: int) -> list[Question]:
    """Return the first `records` records of a level: the value of each pair of the ordering is the key of the next."""
    orderings = DATA / f"random_orderings_100_samples_140_indices_{level + 1}_levels.jsonl"
    made = []
    with gzip.open(DATA / "kv-retrieval-140_keys.jsonl.gz", "rt") as samples, orderings.open() as lines:
        for _, record, line in zip(range(records), samples, lines, strict=False):
            pairs, ordering = json.loads(record)["ordered_kv_records"], json.loads(line)
            for here, there in pairwise(ordering):
                pairs[here][1] = pairs[there][0]
            made.append(Question([(key, value) for key, value in pairs], pairs[ordering[0]][0], pairs[ordering[-1]][1]))
    return made


async def run(folder: Path, plan: Plan) -> list[Answered]:
    """Ask every question of the plan's levels, each with an agent of its own."""
    settings = Settings(model=plan.chosen.model, steps_max=STEPS_MAX, blocks=[PERSONA])
    if plan.chosen.scripted:
        settings = msgspec.structs.replace(settings, window=WINDOW_SCRIPT)
    room = asyncio.Semaphore(AT_ONCE if plan.chosen.scripted else 1)

    async def one(system: AgentSystem, level: int, number: int, question: Question) -> tuple[Question, Outcome]:
        async with room:
            agent = await system.agent(f"level-{level}-{number}", settings)
            await agent.archive.insert_many([f"{key}: {value}" for key, value in question.pairs])
            asked = f"Which value does the key {question.key} lead to? Follow values that are keys."
            found = await pose(agent, asked)
            await agent.unload()
            return question, found

    async with agents(folder, plan.chosen, next_call) as system:
        return [
            await asyncio.gather(*(one(system, level, n, q) for n, q in enumerate(questions(level, plan.records))))
            for level in plan.levels
        ]


def is_right(question: Question, found: Outcome) -> bool:
    """Return True if the last key or value that the agent named is the answer."""
    return _KEY.findall(found.answer)[-1:] == [question.answer]


def nested_kv(plan: Plan) -> dict[str, float]:
    """Return the accuracy of each level and of the worst, and the pages per question. Raises OSError without the
    data.
    """
    with workspace() as folder:
        levels = dict(zip(plan.levels, asyncio.run(run(folder / "store", plan)), strict=True))
    accuracies = {level: share([is_right(*one) for one in some]) for level, some in levels.items()}
    found = {"nested_kv": min(accuracies.values())}
    for level, some in levels.items():
        found[f"nested_kv_{level}"] = accuracies[level]
        found[f"pages_{level}"] = mean([len(one.pages) for _, one in some])
    outcomes = [one for some in levels.values() for _, one in some]
    found["pages_by_words"] = float(sum(one.by_words for one in outcomes))
    return {**found, "failed": float(sum(one.failed for one in outcomes))}


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    with workspace() as folder:
        before = noise(folder)
    found = nested_kv(plan)
    figures = [Figure("nested_kv", found["nested_kv"], "ratio", 1.0)]
    rows = [
        Line("nested_kv", f"{found['nested_kv']:.3g} ratio", "1", "1.0 (GPT-4 alone: 0 at 3 levels)", "worst level")
    ]
    for level in plan.levels:
        pages, right = found[f"pages_{level}"], f"{found[f'nested_kv_{level}']:.0%} of {plan.records} right"
        figures.append(Figure(f"pages_{level}", pages, "pages", level + 2.0))
        rows.append(Line(f"pages_{level}", f"{pages:.3g} pages", f"{level + 2}", "", right))
    rows.append(Line("found by words alone", f"{found['pages_by_words']:.0f} pages", "", "0"))
    rows.append(Line("failed", f"{found['failed']:.0f} questions", "", "0", plan.chosen.model))
    show("nested", before, figures, rows)


def _more_options(parser: argparse.ArgumentParser) -> None:
    """Add the model, and the number of records."""
    model_options(parser)
    parser.add_argument("--records", metavar="N", type=count, help=f"records of each level (default: {Plan().records})")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("paper.nested", __doc__ or "", argv, _more_options)
    if not DATA.is_dir():
        print(f"bench.paper.nested needs {DATA}", file=sys.stderr)
        return 1
    plan = QUICK if args.quick else Plan()
    chosen = Chosen(args.model, args.base_url)
    report(msgspec.structs.replace(plan, records=args.records or plan.records, chosen=chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
