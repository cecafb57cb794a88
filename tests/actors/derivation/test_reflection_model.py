"""Insights by a model: what it says is recorded, and becomes a memory only if it rests on memories that exist."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from everlog.actors.derivation.conclusions import DerivationReport
from everlog.actors.derivation.insight_model import QUESTIONS_PROMPT
from everlog.actors.deriving.importance_rating import rate_messages
from everlog.actors.deriving.reflection import Reflection
from everlog.events import DerivationReplied, ImportanceRated, InsightNoted, ModelError, OverBudget, Record, event_of
from tests.support.agent_world import World, written

QUESTIONS = json.dumps({"questions": ["What does the user like?", "Where does the user live?"]})
TALK = ("I went sailing with Lea on Sunday.", "Lea lives in Rome and sails, too.", "We want to buy a boat in May.")


def insights(*found: tuple[str, list[int]]) -> str:
    return json.dumps({"insights": [{"text": text, "because_of": numbers} for text, numbers in found]})


Answer = str | BaseException | Callable[[str], str]


class Oracle:
    """A model that answers requests of derivations: the first answer to the questions, then one for each question."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, raw: bytes) -> str:
        request = json.loads(raw)
        self.asked.append(raw.decode())
        answer: Any = self.answers.pop(0) if self.answers else insights()
        if isinstance(answer, BaseException):
            raise answer
        return written(raw, answer(request["messages"][-1]["content"]) if callable(answer) else answer)


async def talked(world: World) -> None:
    await world.tell(*TALK)


async def reflect(world: World, oracle: Oracle) -> DerivationReport:
    world.model.summaries = [oracle] * 500  # a request without functions
    async with world.system.agent("sam", world.settings) as agent:
        return await Reflection(agent, "thinker").run()


def of(world: World, kind: type) -> list[Any]:
    return [event for event in map(event_of, world.log()) if isinstance(event, kind)]


def run(oracle: Oracle) -> tuple[World, DerivationReport]:
    async def main() -> tuple[World, DerivationReport]:
        world = World()
        await talked(world)
        return world, await reflect(world, oracle)

    return asyncio.run(main())


def number_of(shown: str, words: str) -> int:
    """Return the number of the statement with these words."""
    return next(int(line.split(".", 1)[0]) for line in shown.splitlines() if words in line and line[:1].isdigit())


def test_insights_name_the_memories_that_they_rest_on() -> None:
    """The numbers of an answer become the seqs of the statements, and the cursor counts the insights."""
    oracle = Oracle(
        QUESTIONS,
        lambda shown: insights(
            ("The user shares a hobby with Lea.", [number_of(shown, "with Lea"), number_of(shown, "Rome")])
        ),
    )
    world, report = run(oracle)
    (insight,) = of(world, InsightNoted)
    texts = {record.seq: record.text for record in world.log()}
    assert [texts[seq] for seq in insight.sources] == [TALK[0], TALK[1]]
    assert (insight.question, insight.depth, insight.deriver) == ("What does the user like?", 1, "thinker")
    assert report.noted == 1
    record = next(record for record in world.log() if record.type == "insight_noted")
    replied = {record.event_id for record in world.log() if record.type == "derivation_replied"}
    cursor = next(record for record in world.log() if record.type == "memories_derived")
    assert cursor.cause in replied
    assert record.cause == cursor.event_id
    assert len(record.payload) < 400


def test_an_insight_on_an_insight_is_deeper() -> None:
    """A second reflection that cites the first one's insight notes an insight of depth 2."""

    async def main() -> None:
        world = World()
        await talked(world)
        await reflect(world, Oracle(QUESTIONS, insights(("Boats connect Lea and the user.", [1, 2]))))
        await world.tell("We bought the boat at last.")
        cited = lambda shown: insights(("Their plans grow out of a hobby.", [number_of(shown, "Boats connect")]))  # noqa: E731
        await reflect(world, Oracle(QUESTIONS, cited))
        first, second = of(world, InsightNoted)
        assert (first.depth, second.depth) == (1, 2)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        ("I do not know.", "no JSON"),
        ('{"insights": "none"}', "not the JSON"),
        ('{"insights": [{"text": "Lea and the user sail together."', "no JSON"),
        (insights(), "no insights"),
        (insights(("Lea and the user share a hobby.", [99])), "statement 99"),
        (insights(("Lea and the user share a hobby.", [0])), "statement 0"),
        (insights(("Lea and the user share a hobby.", [-1])), "statement -1"),
        (insights(("Lea and the user share a hobby.", [])), "no statement"),
        (insights(("this is blank", [1])), "placeholder"),
        (insights(("...", [1])), "empty"),
        (insights(("   ", [1])), "empty"),
        (insights(("<one sentence that tells it>", [1])), "placeholder"),
        (insights(("What does the user like?", [1])), "question"),
        (insights(("Lea lives in Rome and sails, too.", [1, 2])), "word for word"),
        (insights(("lea lives in ROME", [1, 2])), "word for word"),
        (insights(("Name the numbers of the statements that each insight rests on", [1])), "repeats the prompt"),
        (insights(("very long " * 40, [1])), "characters"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_used_is_recorded_and_becomes_no_memory(answer: str, reason: str) -> None:
    """Each bad answer is in the log, verbatim and with its fault; no insight comes of it, and the cursor moves on."""
    world, report = run(Oracle(QUESTIONS, *[answer] * 4))
    assert of(world, InsightNoted) == []
    replies = [one for one in of(world, DerivationReplied) if one.purpose == "insights"]
    assert replies
    assert all(reason in one.fault for one in replies)
    assert all(answer in json.loads(one.raw)["choices"][0]["message"]["content"] for one in replies)
    assert report.noted == 0
    assert report.refused
    (cursor,) = [json.loads(record.payload) for record in world.log() if record.type == "memories_derived"]
    assert cursor["refused"] == len(report.refused)


def test_the_good_insights_of_an_answer_are_kept_and_the_others_counted() -> None:
    """Of an answer with a good, a repeated and an unfounded insight the good one is kept; five at most are read."""
    many = [
        (f"Lea and the user share interest number {word}.", [1]) for word in ("one", "two", "three", "four", "five")
    ]
    answer = insights(("Lea and the user share a hobby.", [1, 2]), ("Lea and the user share a hobby!", [1]), *many)
    world, report = run(Oracle(QUESTIONS, answer, answer))
    assert len(of(world, InsightNoted)) == 4
    assert of(world, InsightNoted)[0].text == "Lea and the user share a hobby."
    assert any("known already" in one for one in report.refused)
    assert any("at most 5" in one for one in report.refused)


@pytest.mark.parametrize(
    "answer", ["", "Which one?", '{"questions": []}', '{"questions": ["", "?"]}', '{"questions": 3}']
)
def test_without_questions_a_reflection_ends(answer: str) -> None:
    """An answer without a question is recorded with its fault, asked for twice, and ends the reflection."""
    oracle = Oracle(*[answer] * 9)
    world, report = run(oracle)
    assert len(oracle.asked) == 2
    assert [bool(one.fault) for one in of(world, DerivationReplied)] == [True, True]
    assert (report.noted, len(report.refused)) == (0, 1)


def test_a_model_that_always_proposes_is_bounded() -> None:
    """A model with endless questions and insights is asked four times, and 15 insights at most are noted."""
    questions = json.dumps({"questions": [f"What is question {number} about?" for number in range(50)]})
    asked: list[int] = []

    def propose(shown: str) -> str:
        asked.append(1)
        return insights(*((f"Thought {len(asked)} of number {number} is new.", [1]) for number in range(100)))

    oracle = Oracle(questions, *[propose] * 100)
    world, report = run(oracle)
    assert len(oracle.asked) == 4
    assert report.noted == len(of(world, InsightNoted)) == 15


def test_a_spent_budget_ends_a_reflection_and_nothing_is_lost() -> None:
    """Over budget after the questions: no cursor, the answer stays, and the next reflection asks no question twice."""

    async def main() -> None:
        world = World()
        await talked(world)
        broke = Oracle(QUESTIONS, OverBudget("Spent.", budget="agent tokens", limit=1, spent=2))
        with pytest.raises(OverBudget):
            await reflect(world, broke)
        assert "memories_derived" not in world.kinds()
        again = Oracle(
            insights(("The user and Lea share a hobby.", [1, 2])), insights(("Rome matters to both of them.", [2]))
        )
        report = await reflect(world, again)
        assert report.noted == 2
        assert not any(json.dumps(QUESTIONS_PROMPT)[1:-1] in one for one in again.asked)

    asyncio.run(main())


def _outcome(records: Sequence[Record]) -> list[tuple[str, str | None, str]]:
    """Return what a log says, without times, latencies and ids."""
    return [
        (
            record.type,
            record.text,
            json.dumps({k: v for k, v in json.loads(record.payload).items() if k != "latency_us"}),
        )
        for record in records
    ]


def _answers() -> list[Answer]:
    return [
        QUESTIONS,
        insights(("The user and Lea share a hobby.", [1, 2])),
        "no JSON",
        insights(("Rome matters to both of them.", [2])),
    ]


def test_a_reflection_that_is_killed_at_any_commit_equals_an_undisturbed_one() -> None:
    """Killed before each of its commits and run again, a reflection leaves the same log, and no question is asked twice
    whose answer was committed.
    """

    class Killed(Exception):
        """The process ends here."""

    async def disturbed(kill_at: int) -> tuple[list[tuple[str, str | None, str]], int, int]:
        world = World()
        await talked(world)
        answers, asked, lost = _answers(), 0, 0
        for attempt in range(2):
            oracle = Oracle(*answers)
            world.model.summaries = [oracle] * 500
            async with world.system.agent("sam", world.settings) as agent:
                real, left = agent._journal.commit, [kill_at if attempt == 0 else 99]

                async def commit(*args: Any, real: Any = real, left: list[int] = left) -> Any:
                    left[0] -= 1
                    if left[0] == -1:
                        raise Killed
                    return await real(*args)

                agent._journal.commit = commit  # type: ignore[method-assign]
                try:
                    await Reflection(agent, "thinker").run()
                except Killed:
                    pass
                finally:
                    agent._journal.commit = real  # type: ignore[method-assign]
            asked += len(oracle.asked)
            # An answer that arrived and was not committed is lost with the process, and asked for again.
            replied = world.kinds().count("derivation_replied")
            if attempt == 0:
                lost = len(oracle.asked) - replied
            answers = _answers()[replied:] if attempt == 0 else answers
        return _outcome(world.log()), asked, lost

    async def main() -> None:
        undisturbed, asked, _ = await disturbed(99)
        assert asked == 4
        for kill_at in range(5):
            outcome, asked, lost = await disturbed(kill_at)
            assert outcome == undisturbed
            assert asked == 4 + lost
            assert lost <= 1

    asyncio.run(main())


def test_importance_is_rated_in_batches_and_stays_within_its_range() -> None:
    """Ratings out of range become 1 or 10, numbers of no message are left out, and a second call asks nothing."""
    rating = json.dumps({"ratings": [[1, 99], [2, -3], [3, 6.6], [44, 5], [0, 5]]})

    async def main() -> None:
        world = World()
        await talked(world)
        oracle = Oracle(rating)
        world.model.summaries = [oracle] * 500
        async with world.system.agent("sam", world.settings) as agent:
            assert await rate_messages(agent, "thinker", 0) == 3
            (event,) = of(world, ImportanceRated)
            assert [one.importance for one in event.ratings] == [10, 1, 7]
            rows = {row["seq"]: row["importance"] for row in await agent.rows("importance")}
            assert [rows[one.seq] for one in event.ratings] == [10, 1, 7]

    asyncio.run(main())


@pytest.mark.parametrize("answer", ["", "ten", '{"ratings": []}', '{"ratings": [[99, 5]]}', '{"ratings": "high"}'])
def test_a_rating_that_cannot_be_used_is_recorded_and_rates_nothing(answer: str) -> None:
    """An unusable rating is in the log with its fault, and the rules rate these messages as before."""

    async def main() -> None:
        world = World()
        await talked(world)
        world.model.summaries = [Oracle(*[answer] * 9)] * 500
        async with world.system.agent("sam", world.settings) as agent:
            assert await rate_messages(agent, "thinker", 0) == 0
            assert {row["rater"] for row in await agent.rows("importance")} == {"rules-1"}
        assert all(one.fault for one in of(world, DerivationReplied))

    asyncio.run(main())


def test_a_model_that_cannot_be_asked_leaves_nothing() -> None:
    """An endpoint that fails ends the reflection with its error, before any record."""

    async def main() -> None:
        world = World()
        await talked(world)
        before = world.kinds()
        with pytest.raises(ModelError):
            await reflect(world, Oracle(ModelError("unreachable", kind="unreachable")))
        assert world.kinds() == before

    asyncio.run(main())
