"""Run the MemGPT paper's deep memory retrieval: questions that only old messages of a long conversation answer.

Run as `python -m bench.paper.deep_memory`; docs/explanation/benchmarks.md explains the keys of its figures.

The paper's conversations and judge are not used: the conversations are LoCoMo's, and evidence takes the place of the
judge. A question counts if the pages of `conversation_search` that the agent read had every message that the data set
names as evidence. Each question is asked of a fork of the agent that had the conversation, so that no question finds
another one.
"""

import argparse
import asyncio
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.support import locomo
from bench.support.experiments import (
    AT_ONCE,
    STEPS_MAX,
    Chosen,
    Outcome,
    Reader,
    agents,
    mean,
    model_options,
    pose,
    share,
)
from bench.support.harness import Figure, Line, line, noise, options, show, workspace
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.agent_system import AgentSystem

FUNCTION = "conversation_search"
PAGES_MAX = 10
"""Pages after which the script stops."""
WINDOW_SCRIPT, WINDOW_PAGES = 8_192, 32_768
"""Context window in tokens of the script's agents during the conversation, which does not fit, and during a question,
whose pages must fit: the script goes by what it sees, and a summary would hide the question.
"""
KEYS = (
    "deep_memory", "deep_memory_any", "deep_memory_pages", "answer_rouge_l",
    *(f"deep_memory_{category}" for category in locomo.CATEGORIES),
)  # fmt: skip

_WORD = re.compile(r"\w+")


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement."""

    questions: int = 30
    """Number of questions of each conversation, at equal distances."""
    conversations: int = 5
    chosen: Chosen = Chosen()
    data: Path = locomo.DATA


QUICK = Plan(questions=4)


class Asked(msgspec.Struct, frozen=True):
    """One question, its evidence as a search shows it, and the outcome."""

    question: locomo.Question
    gold: Sequence[str]
    found: Outcome

    @property
    def pages(self) -> int | None:
        """Number of pages after which all of the evidence had been shown; None if it never was."""
        return self.found.pages_until(self.gold)


def questions(path: Path, said: Sequence[ImportedMessage], count: int) -> list[tuple[locomo.Question, Sequence[str]]]:
    """Return `count` questions about a conversation, at equal distances, and the texts of their evidence."""
    texts = {message.event.ref: _as_shown(message) for message in said}  # type: ignore[attr-defined]
    every = [one for one in locomo.questions(path) if all(ref in texts for ref in one.evidence)]
    some = [every[number * len(every) // count] for number in range(count)] if count < len(every) else every
    return [(one, [texts[ref] for ref in one.evidence]) for one in some]


def _as_shown(message: ImportedMessage) -> str:
    """Return a message as a page of results shows it, without its time."""
    event = message.event
    return f"{event.name} - {event.text}"  # type: ignore[attr-defined]


async def measure(folder: Path, plan: Plan) -> list[Asked]:
    """Ask the plan's questions, each of a fork of its conversation's agent."""
    paths = locomo.conversations(plan.data)[: plan.conversations]
    said = {path: locomo.said_in(path) for path in paths}
    made = {path: questions(path, said[path], plan.questions) for path in said}
    gold = {one.question: texts for some in made.values() for one, texts in some}
    scripted = plan.chosen.scripted
    settings = Settings(model=plan.chosen.model, steps_max=STEPS_MAX, window=WINDOW_SCRIPT if scripted else None)
    wider = Settings(window=WINDOW_PAGES if scripted else None)
    room = asyncio.Semaphore(AT_ONCE if scripted else 1)

    async def one(
        system: AgentSystem, parent: str, number: int, question: locomo.Question, texts: Sequence[str]
    ) -> Asked:
        async with room:
            forked = await system.fork(parent, f"{parent}-{number}")
            agent = await system.agent(forked.agent_id, wider, create=False)
            found = await pose(agent, question.question)
            await agent.unload()
            return Asked(question, texts, found)

    asked: list[Asked] = []
    async with agents(folder, plan.chosen, Reader(FUNCTION, gold, PAGES_MAX).next_call) as system:
        for path, some in made.items():
            agent = await system.agent(path.stem, settings)
            await agent.import_messages(said[path])
            await agent.unload()
            asked += await asyncio.gather(*(one(system, path.stem, n, *each) for n, each in enumerate(some)))
    return asked


def rouge_l(answer: str, wanted: str) -> float:
    """Return the ROUGE-L recall of an answer: its longest common subsequence of words with `wanted`, by the number of
    words of `wanted`; 0 to 1.
    """
    left, right = _WORD.findall(answer.lower()), _WORD.findall(wanted.lower())
    row = [0] * (len(left) + 1)
    for word in right:
        above = row
        row = [0]
        for place, other in enumerate(left):
            row.append(above[place] + 1 if word == other else max(above[place + 1], row[place]))
    return row[-1] / max(len(right), 1)


def figures(asked: Sequence[Asked]) -> list[Figure]:
    """Return the parts found: all of the evidence, any of it, and by category; pages, and ROUGE-L of the answers.

    The floor of a part is what the first page alone has.
    """
    reached = [one.pages for one in asked if one.pages]
    any_of = [any(one.found.pages_until([text]) for text in one.gold) for one in asked]
    first = [any(one.found.pages_until([text]) == 1 for text in one.gold) for one in asked]
    rouge = [rouge_l(one.found.answer, str(one.question.answer)) for one in asked]
    found = [
        Figure("deep_memory", len(reached) / max(len(asked), 1), "ratio", _first_page(asked)),
        Figure("deep_memory_any", share(any_of), "ratio", share(first)),
        Figure("deep_memory_pages", mean(reached), "pages", 1),
        Figure("answer_rouge_l", mean(rouge), "ratio", 0),
    ]
    for category in locomo.CATEGORIES:
        some = [one for one in asked if one.question.category == category]
        part = share([one.pages is not None for one in some])
        found.append(Figure(f"deep_memory_{category}", part, "ratio", _first_page(some)))
    return found


def _first_page(asked: Sequence[Asked]) -> float:
    """Return the part of the questions all of whose evidence is on the first page."""
    return share([one.pages == 1 for one in asked])


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    with workspace() as folder:
        before = noise(folder)
        asked = asyncio.run(measure(folder / "store", plan))
    found = figures(asked)
    rows = [line(one, "", f"{len(asked)} questions") for one in found]
    rows.append(Line("found by words alone", f"{sum(one.found.by_words for one in asked)} pages", "", "0"))
    rows.append(Line("failed", f"{sum(one.found.failed for one in asked)} questions", "", "0", plan.chosen.model))
    show("deep_memory", before, found, rows)


def _more_options(parser: argparse.ArgumentParser) -> None:
    """Add the model, and the folder of the data."""
    model_options(parser)
    parser.add_argument("--data", metavar="DIR", help="folder with locomo/dev (EVERLOG_DATA)")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    about = "Questions that only old messages of a long conversation answer, by evidence."
    args = options("paper.deep_memory", about, argv, _more_options)
    plan = msgspec.structs.replace(QUICK if args.quick else Plan(), chosen=Chosen(args.model, args.base_url))
    data = args.data or os.environ.get("EVERLOG_DATA")
    report(msgspec.structs.replace(plan, data=Path(data)) if data else plan)
    return 0


if __name__ == "__main__":
    sys.exit(main())
