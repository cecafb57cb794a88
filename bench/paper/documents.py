"""Run the MemGPT paper's question answering over many documents, with the answer at each depth of the results.

Run as `python -m bench.paper.documents`; docs/explanation/benchmarks.md explains the keys of its figures.

The documents are made here. For each question, DEPTH documents repeat the question without an answer, and so match it
better than the one document that has the answer; the other documents are answers to other questions, with other years.
An agent keeps all of them in archival memory, in random order, and must page through `archival_memory_search` as far as
the answer is deep.
"""

import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

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
from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.agent_system import AgentSystem
from everlog.actors.ports.agent_constants import PAGE_RESULTS

FUNCTION = "archival_memory_search"
DEPTHS = (0, 4, 9, 24, 49)
"""Numbers of documents that match a question better than the one that answers it."""
DOCUMENTS = 100
"""Number of documents of each question."""
WINDOW_SCRIPT = 1_000_000
KEYS = (
    "documents", "documents_shown", *(f"documents_{depth}" for depth in DEPTHS),
    *(f"document_pages_{depth}" for depth in DEPTHS),
)  # fmt: skip
PERSONA = InitialBlock(
    "persona",
    "I answer questions from the documents in my archival memory, and from nothing else. I search for the question, "
    "and read page after page until a document has the answer. Then I send the answer: a year.",
)
"""Persona of the agent, as the paper has one for this task."""

_SYLLABLES = ("bar", "den", "fol", "gar", "hal", "kel", "lor", "mar", "nes", "ost", "pel", "rin", "sal", "tor", "wick")
_SUBJECTS = (
    ("In which year was the lighthouse of {place} lit for the first time?", "The keeper's book of {place}: {year}."),
    ("In which year was the bridge of {place} opened for carts?", "The toll house at {place}: since {year}."),
    ("In which year was the library of {place} given its printing press?", "The printer's bill at {place}: {year}."),
)
"""Question and answer: they share the name of the place and nothing else."""
_ASKED_AGAIN = "Letter {number} to the gazette of {place}: {question} Nobody on the council could tell."


class Question(msgspec.Struct, frozen=True):
    """One question, its documents, and the answer among them."""

    text: str
    documents: Sequence[str]
    gold: str
    """Document that has the answer."""
    year: str


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement."""

    questions: int = 20
    """Number of questions of each depth."""
    depths: Sequence[int] = DEPTHS
    seed: int = 1
    chosen: Chosen = Chosen()


QUICK = Plan(questions=4)

Answered = Sequence[tuple[Question, Outcome]]


def questions(plan: Plan) -> dict[int, list[Question]]:
    """Return the questions of each depth; no two are about the same place. Equal plans have equal questions."""
    chance = random.Random(plan.seed)
    places = iter(_places(chance, plan.questions * len(plan.depths)))
    return {
        depth: [_question(chance, depth, number, next(places)) for number in range(plan.questions)]
        for depth in plan.depths
    }


def _question(chance: random.Random, depth: int, number: int, place: str) -> Question:
    asked, answer = _SUBJECTS[number % len(_SUBJECTS)]
    others = [other for other in _places(chance, DOCUMENTS - depth) if other != place][: DOCUMENTS - depth - 1]
    years = chance.sample(range(1500, 1900), len(others) + 1)
    text = asked.format(place=place)
    gold = answer.format(place=place, year=years[0])
    again = [_ASKED_AGAIN.format(number=n + 1, place=place, question=text) for n in range(depth)]
    rest = [answer.format(place=other, year=year) for other, year in zip(others, years[1:], strict=True)]
    documents = [gold, *again, *rest]
    chance.shuffle(documents)
    return Question(text, documents, gold, str(years[0]))


def _places(chance: random.Random, count: int) -> list[str]:
    """Return different names of places that do not exist."""
    names: dict[str, None] = {}
    while len(names) < count:
        names["".join(chance.sample(_SYLLABLES, 3)).capitalize()] = None
    return list(names)


async def measure(folder: Path, plan: Plan) -> dict[int, Answered]:
    """Ask every question of every depth, each with an agent of its own."""
    made = questions(plan)
    gold = {one.text: [one.gold] for some in made.values() for one in some}
    room = asyncio.Semaphore(AT_ONCE if plan.chosen.scripted else 1)
    settings = Settings(model=plan.chosen.model, steps_max=STEPS_MAX, blocks=[PERSONA])
    if plan.chosen.scripted:
        settings = msgspec.structs.replace(settings, window=WINDOW_SCRIPT)

    async def one(system: AgentSystem, name: str, question: Question) -> tuple[Question, Outcome]:
        async with room:
            agent = await system.agent(name, settings)
            await agent.archive.insert_many(question.documents)
            found = await pose(agent, question.text)
            await agent.unload()
            return question, found

    async with agents(folder, plan.chosen, Reader(FUNCTION, gold).next_call) as system:
        return {
            depth: await asyncio.gather(*(one(system, f"depth-{depth}-{n}", q) for n, q in enumerate(some)))
            for depth, some in made.items()
        }


def is_shown(question: Question, found: Outcome) -> bool:
    """Return True if a page had the document with the answer."""
    return found.pages_until([question.gold]) is not None


def is_right(question: Question, found: Outcome) -> bool:
    """Return True if the answer has the year, and a page had the document: a lucky guess does not count."""
    return question.year in found.answer and is_shown(question, found)


def figures(answered: dict[int, Answered]) -> list[Figure]:
    """Return the part answered at the worst depth, the part shown, the part answered at each depth, and the pages.

    The floor of a part is what the first page alone has; that of the pages, how many the depth needs.
    """
    right = {depth: share([is_right(*one) for one in some]) for depth, some in answered.items()}
    first = {
        depth: share([found.pages_until([question.gold]) == 1 for question, found in some])
        for depth, some in answered.items()
    }
    reached = share([is_shown(*one) for some in answered.values() for one in some])
    pages = {depth: mean([len(found.pages) for _, found in some]) for depth, some in answered.items()}
    return [
        Figure("documents", min(right.values()), "ratio", min(first.values())),
        Figure("documents_shown", reached, "ratio", mean([*first.values()])),
        *(Figure(f"documents_{depth}", right[depth], "ratio", first[depth]) for depth in answered),
        *(Figure(f"document_pages_{depth}", pages[depth], "pages", depth // PAGE_RESULTS + 1.0) for depth in answered),
    ]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    with workspace() as folder:
        before = noise(folder)
        answered = asyncio.run(measure(folder / "store", plan))
    found = figures(answered)
    outcomes = [outcome for some in answered.values() for _, outcome in some]
    rows = [line(one, "1" if one.unit == "ratio" else "", f"{plan.questions} questions") for one in found]
    rows.append(Line("found by words alone", f"{sum(one.by_words for one in outcomes)} pages", "", "0"))
    rows.append(Line("failed", f"{sum(one.failed for one in outcomes)} questions", "", "0", plan.chosen.model))
    show("documents", before, found, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    about = "Questions over documents whose answer is deep in the results of a search."
    args = options("paper.documents", about, argv, model_options)
    plan = QUICK if args.quick else Plan()
    report(msgspec.structs.replace(plan, chosen=Chosen(args.model, args.base_url)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
