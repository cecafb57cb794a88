"""Conclude insights with a model: questions about the newest memories, memories for each question, insights from these.

A reflection asks for questions once and for insights once a question, so it always ends. Nothing that the model says
is believed: an insight names the numbers of the memories that it rests on, and one that cannot is refused. Pure but for
the two effects that it is given, `ask` and `find`. Used by `actors/deriving`.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from everlog.actors.derivation.conclusions import Conclusions, Evidence, Material
from everlog.actors.derivation.insight_checks import (
    INSIGHT_SOURCES_MAX,
    QUESTION_CHARS_MAX,
    check_insight,
    depth_of,
    plain,
)
from everlog.actors.prompt.message_format import format_time
from everlog.events import BadInput, BadReply, InsightNoted

QUESTIONS_MAX = 3
"""Questions of one reflection."""
INSIGHTS_PER_QUESTION_MAX = 5
"""Insights that are read from one answer; later ones are refused."""
NEWEST_MEMORIES = 100
"""Memories that the questions are asked about."""
_STATEMENT_CHARS_MAX = 400
"""Characters of a memory that the model is shown."""

QUESTIONS_PROMPT = (
    "You help an assistant to reflect on what it remembers. Given its newest memories, name the 3 most salient "
    "questions that they can answer about the people and subjects in them. Answer with JSON only: "
    '{"questions": [text, text, text]}'
)
INSIGHTS_PROMPT = (
    "You help an assistant to reflect on what it remembers. Given numbered statements and a question, infer up to 5 "
    "insights that the statements support together and that none of them says alone. Name the numbers of the "
    "statements that each insight rests on, and invent nothing. Answer with JSON only: "
    '{"insights": [{"text": one sentence, "because_of": [number, number]}]}'
)

T = TypeVar("T")


class Asks(Protocol):
    """A model that answers on the record."""

    name: str

    async def ask(
        self, purpose: Any, messages: Sequence[tuple[str, str]], read: Callable[[str], T], shown: Sequence[int]
    ) -> tuple[T | None, str]:
        """Return what was read from the answer, or None, and the event id of the answer's record.

        `shown`: seqs of the records that the request shows.
        """
        ...


MemoryFinder = Callable[[str], Awaitable[Sequence[Evidence]]]
"""Finds the memories that a question is about."""


class _Questions(msgspec.Struct, frozen=True):
    questions: list[str]


class _Insight(msgspec.Struct, frozen=True):
    text: str
    because_of: list[int]


class _Insights(msgspec.Struct, frozen=True):
    insights: list[_Insight]


class InsightModel:
    """A model as a deriver of insights."""

    def __init__(self, model: Asks, find: MemoryFinder) -> None:
        self._model, self._find = model, find

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._model.name

    async def derive(self, material: Material) -> Conclusions:
        """Return insights that pass the checks, and the reasons for which others do not. Raise ModelError."""
        newest = material.evidence[-NEWEST_MEMORIES:]
        told = "\n".join(statement(one, material.zone) for one in newest)
        messages = [("system", QUESTIONS_PROMPT), ("user", told)]
        questions, event_id = await self._model.ask("questions", messages, read_questions, [one.seq for one in newest])
        if questions is None:
            return Conclusions(refused=["The model named no questions."], replies=[event_id])
        found = InsightReader(material, self._model.name)
        replies = [event_id]
        for question in questions:
            memories = await self._find(question)
            if not memories:
                continue
            listed = "\n".join(f"{n}. {statement(one, material.zone)}" for n, one in enumerate(memories, 1))
            messages = [("system", INSIGHTS_PROMPT), ("user", f"{listed}\n\nQuestion: {question}")]
            read = found.reader(question, memories)
            taken, event_id = await self._model.ask("insights", messages, read, [one.seq for one in memories])
            replies.append(event_id)
            found.take(taken)
        return Conclusions(found.events, found.refused, replies)


class InsightReader:
    """Reader of the answers of one reflection. It refuses what an earlier answer said already."""

    def __init__(self, material: Material, deriver: str) -> None:
        self._material, self._deriver = material, deriver
        self._known = {plain(one.text) for one in material.evidence if one.role == "derived"}
        self._asked: list[str] = [QUESTIONS_PROMPT, INSIGHTS_PROMPT]
        self.events: list[InsightNoted] = []
        self.refused: list[str] = []

    def reader(
        self, question: str, memories: Sequence[Evidence]
    ) -> Callable[[str], tuple[list[InsightNoted], list[str]]]:
        """Return the function that reads the answer to a question about these memories, in their numbers from 1. It
        raises BadReply for an answer of which nothing can be taken.
        """
        self._asked.append(question)

        def read(text: str) -> tuple[list[InsightNoted], list[str]]:
            taken: list[InsightNoted] = []
            refused: list[str] = []
            proposed = decoded(text, _Insights).insights
            for number, one in enumerate(proposed):
                try:
                    if number >= INSIGHTS_PER_QUESTION_MAX:
                        raise BadInput(f"An answer has at most {INSIGHTS_PER_QUESTION_MAX} insights.")
                    taken.append(self._insight(one, question, memories, [plain(other.text or "") for other in taken]))
                except BadInput as error:
                    refused.append(str(error))
            if not taken:
                raise BadReply(" ".join(refused[:3]) or "The answer has no insights.", text)
            return taken, refused

        return read

    def take(self, found: tuple[list[InsightNoted], list[str]] | None) -> None:
        """Add what was read from an answer; None: nothing could be."""
        if found is None:
            self.refused.append("Nothing could be taken from an answer of the model.")
            return
        events, refused = found
        self.events += events
        self.refused += refused
        self._known |= {plain(event.text or "") for event in events}

    def _insight(
        self, one: _Insight, question: str, memories: Sequence[Evidence], before: Sequence[str]
    ) -> InsightNoted:
        numbers = list(dict.fromkeys(one.because_of))
        wrong = [number for number in numbers if not 1 <= number <= len(memories)]
        if wrong or not numbers:
            raise BadInput(
                f"The insight names {'no statement' if not numbers else f'statement {wrong[0]}'}; there are 1 to "
                f"{len(memories)}: {one.text[:60]!r}."
            )
        said = [memory.text for memory in memories]
        text = check_insight(one.text, question, self._known | set(before), said, self._asked)
        sources = sorted(memories[number - 1].seq for number in numbers)[-INSIGHT_SOURCES_MAX:]
        return InsightNoted(
            text=text, question=question, sources=sorted(set(sources)), depth=depth_of(sources, memories),
            deriver=self._deriver, generation=self._material.generation,
        )  # fmt: skip


def read_questions(text: str) -> list[str]:
    """Return the questions of an answer, at most QUESTIONS_MAX. Raise BadReply if there is none."""
    found: dict[str, str] = {}
    for one in decoded(text, _Questions).questions:
        line = " ".join(one.split())
        if (
            len(line) <= QUESTION_CHARS_MAX
            and len(plain(line).split()) >= 2
            and plain(line) not in plain(QUESTIONS_PROMPT)
        ):
            found.setdefault(plain(line), line)
    if not found:
        raise BadReply("The answer has no question that can be used.", text)
    return list(found.values())[:QUESTIONS_MAX]


def statement(one: Evidence, zone: str) -> str:
    """Return a memory in one line, as a model is shown it."""
    text = " ".join(one.text.split())[:_STATEMENT_CHARS_MAX]
    who = one.name or one.role
    return (
        f"[{format_time(one.at, zone)}] {text}"
        if one.role == "derived"
        else f"[{format_time(one.at, zone)}] {who}: {text}"
    )


_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


def decoded(text: str, kind: type[T]) -> T:
    """Decode the JSON object in a text, which may have other words around it. Raise BadReply."""
    found = _OBJECT.search(text)
    if found is None:
        raise BadReply("The answer holds no JSON object.", text)
    try:
        return msgspec.json.decode(found[0], type=kind)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise BadReply(f"The answer is not the JSON that was asked for: {error}.", text) from error
