"""Ask the offline stand-in questions about imported conversations, and count the answers that quote the right evidence.

Used by `bench.retrieval`. Each question is sent, as `everlog send` sends it, to a fork of the agent that had the
conversation, so that no question finds another one. The stand-in's rules were made on the questions of `TUNED`; those
of `HELD` are asked to see that the rules hold for others.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench.support.experiments import pose, share
from bench.support.harness import Figure, Line
from bench.talk.talk_shapes import Conversation, TalkQuestion, lines
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import conversation
from everlog.actors.api import open_system

QUESTIONS = 50
"""Number of questions of each part, divided among the conversations."""
TUNED, HELD = 0.0, 0.5
"""Parts of the questions: each begins this part of a distance after the first question of a conversation."""
QUOTE_CHARS_MIN = 12
"""A shorter quote may be in a message by chance."""
KEYS = ("stand_in_quotes", "stand_in_quotes_held", "stand_in_quotes_a_message")

_QUOTE = re.compile(r': "(.*?)(?:\.\.\.)?"(?= On \d| \(|\.? Also|\s*\Z)', re.DOTALL)


class Answered(msgspec.Struct, frozen=True):
    """One question, and the answer of the stand-in."""

    question: TalkQuestion
    answer: str
    quoted: Sequence[str]
    """Texts that the answer quotes."""
    right: bool
    """True if a quote is in a message of the evidence."""


def chosen(talk: Conversation, count: int, part: float) -> Sequence[TalkQuestion]:
    """Return `count` questions at equal distances, the first of them `part` of a distance after the start."""
    every = talk.questions
    places = {int((number + part) * len(every) / count) for number in range(min(count, len(every)))}
    return [every[place] for place in sorted(places)]


def quotes(answer: str) -> Sequence[str]:
    """Return the texts that an answer quotes, without the marks of an omission at both ends: "..." of the stand-in, "…"
    of a page.
    """
    return [" ".join(text.split()).removeprefix("...").strip(" …") for text in _QUOTE.findall(answer)]


def quotes_one_of(answer: str, texts: Sequence[str]) -> bool:
    """Return True if a quote of the answer is in one of the texts."""
    flat = [" ".join(text.split()) for text in texts]
    return any(len(quote) >= QUOTE_CHARS_MIN and quote in text for quote in quotes(answer) for text in flat)


async def measure(root: Path, talks: Sequence[Conversation], questions: int, part: float) -> Sequence[Answered]:
    """Return the stand-in's answers to about `questions` questions."""
    answered: list[Answered] = []
    async with open_system(root, runtime="local", timers=False) as system:
        for talk in talks:
            name = f"{talk.name}-{part}"
            agent = await system.agent(name, Settings(model="offline"))
            await agent.import_messages(conversation(lines(talk), talk.name))
            await agent.unload()
            texts = {one.ref: one.text for one in talk.messages}
            for number, one in enumerate(chosen(talk, -(-questions // len(talks)), part)):
                made = await system.fork(name, f"{name}-{number}")
                forked = await system.agent(made.agent_id, create=False)
                found = await pose(forked, one.question)
                await forked.unload()
                right = quotes_one_of(found.answer, [texts[ref] for ref in one.evidence])
                answered.append(Answered(one, found.answer, quotes(found.answer), right))
    return answered


def figures(tuned: Sequence[Answered], held: Sequence[Answered]) -> list[Figure]:
    """Return the part of the answers that quote the right evidence, and how many messages an answer quotes."""
    mean = sum(len(one.quoted) for one in [*tuned, *held]) / max(len(tuned) + len(held), 1)
    return [
        Figure(KEYS[0], share([one.right for one in tuned]), "ratio", 0.0),
        Figure(KEYS[1], share([one.right for one in held]), "ratio", 0.0),
        Figure(KEYS[2], mean, "quotes", 1.0),
    ]


def table(parts: Mapping[str, Sequence[Answered]]) -> list[Line]:
    """Return a row for each category of each part."""
    rows = []
    for part, answered in parts.items():
        for category in sorted({one.question.category for one in answered}):
            some = [one.right for one in answered if one.question.category == category]
            rows.append(Line(f"stand-in, {part}, {category}", f"{share(some):.2f}", "", "", f"{len(some)} questions"))
    return rows
