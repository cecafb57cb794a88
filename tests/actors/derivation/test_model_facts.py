"""Facts by a model: what the messages bear out is noted with its reply as cause; everything else is refused."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.derivation.conclusions import DerivationReport, Evidence, Material
from everlog.actors.derivation.model_facts import INSTRUCTIONS, ModelFacts, read_answer
from everlog.actors.deriving.derived_commands import derive
from everlog.actors.deriving.memory_commands import DeriveMemories
from everlog.events import (
    BadReply,
    DerivationReplied,
    FactEnded,
    FactNoted,
    MemoriesDerived,
    MessageSent,
    Record,
    UserMessage,
    event_of,
)
from tests.support.agent_world import World, completion

TALK = (
    UserMessage(text="I live in Kiel and work at Bosch since 2019.", name="Ann"),
    MessageSent(text="Then you know Paris."),
    UserMessage(text="My sister Lea paints boats.", name="Ann"),
)


def fact(subject: str, predicate: str, what: str, messages: Sequence[Any] = (1,), **more: Any) -> dict[str, Any]:
    told = {"subject": subject, "predicate": predicate, "object": what, "messages": list(messages)}
    return {**told, "sentence": f"{subject} {predicate} {what}.", **more}


def reply(*facts: Any, ended: Sequence[Any] = (), **more: Any) -> str:
    return completion(json.dumps({"facts": facts, "ended": ended}), **more)


def run(world: World, *talk: Any, **options: Any) -> DerivationReport:
    """Add messages to the agent, and derive by the model."""

    async def work() -> DerivationReport:
        async with world.system.agent("sam", world.settings) as agent:
            if talk:
                await agent.commit(list(talk), turn=0, step=0)
            return await derive_now(agent, **options)

    return asyncio.run(work())


async def derive_now(agent: Agent, **options: Any) -> DerivationReport:
    command_id = agent._ids.new(agent.now())
    return await derive(agent, DeriveMemories(id=command_id, model="wise", **options))


def noted(world: World) -> list[FactNoted]:
    return [event for event in map(event_of, world.log()) if isinstance(event, FactNoted)]


def of_kind(world: World, kind: str) -> list[Record]:
    return [record for record in world.log() if record.type == kind]


def test_a_fact_that_the_messages_bear_out_is_noted_with_the_reply_as_its_cause() -> None:
    """It has the words, the date with its precision, the messages as sources, and the model as deriver."""
    lives = fact("Ann", "Lives in", "Kiel", **{"from": "2019"})
    world = World(summaries=[reply(lives, fact("Lea", "paints", "boats", [3]))])
    report = run(world, *TALK)
    first, second = noted(world)
    assert (first.subject, first.predicate, first.object, first.from_precision) == ("Ann", "lives_in", "Kiel", "year")
    assert first.single and not second.single and first.deriver == report.deriver == "wise"
    seqs = [record.seq for record in world.log() if record.type in ("user_message", "message_sent")]
    assert (first.sources, second.sources) == ([seqs[0]], [seqs[2]])
    (replied,), (cursor,) = of_kind(world, "derivation_replied"), of_kind(world, "memories_derived")
    assert cursor.cause == replied.event_id and {r.cause for r in of_kind(world, "fact_noted")} == {cursor.event_id}
    assert (report.noted, report.refused, report.to_seq) == (2, [], seqs[2])


LIES: Mapping[str, tuple[Any, str]] = {
    "an object that nobody said": (fact("Ann", "lives_in", "Rome"), "not in the messages"),
    "an object of another message": (fact("Ann", "lives_in", "Kiel", [3]), "not in the messages"),
    "a number that nobody said": (fact("Ann", "works_since", "2020"), "not in the messages"),
    "a person who was not named": (fact("John Doe", "lives_in", "Kiel"), "subject"),
    "a message that is not there": (fact("Ann", "lives_in", "Kiel", [9]), "message 9"),
    "no message": (fact("Ann", "lives_in", "Kiel", []), "names no message"),
    "a message that is no number": (fact("Ann", "lives_in", "Kiel", ["1"]), "message '1'"),
    "what the assistant said": (fact("assistant", "knows", "Paris", [2]), "only on what the assistant said"),
    "no object": (fact("Ann", "lives_in", ""), "no `object`"),
    "an object that is a list": (fact("Ann", "lives_in", ["Kiel"]), "no `object`"),  # type: ignore[arg-type]
    "no object of JSON": ("Ann lives in Kiel", "no JSON object"),
    "an end of an unknown fact": (None, "fact 1, which the request did not have"),
    "the request": (fact("Ann", "lives", "in Kiel", sentence=INSTRUCTIONS[:40]), "repeats the request"),
    "a long object": (fact("Ann", "lives_in", "Kiel " * 100), "longer"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_proposal_that_the_messages_do_not_bear_out_is_refused_with_its_reason(lie: str) -> None:
    """It becomes no memory. What is right in the same answer is kept, and the refusals are counted in the cursor."""
    proposed, reason = LIES[lie]
    good = fact("Lea", "paints", "boats", [3])
    answer = reply(good, ended=[{"fact": 1, "messages": [1]}]) if proposed is None else reply(proposed, good)
    world = World(summaries=[answer])
    report = run(world, *TALK)
    assert [one.object for one in noted(world)] == ["boats"]
    assert len(report.refused) == 1 and reason in report.refused[0]
    cursor = event_of(of_kind(world, "memories_derived")[0])
    assert isinstance(cursor, MemoriesDerived) and (cursor.noted, cursor.refused) == (1, 1)


UNUSABLE = (
    "",
    "I found no facts.",
    "{",
    '{"facts": "none"}',
    '{"memories": []}',
    '{"facts": [{"subject": "An',
    "[1, 2]",
)


@pytest.mark.parametrize("text", UNUSABLE)
def test_an_unusable_answer_is_recorded_with_its_fault_and_becomes_no_memory(text: str) -> None:
    """Both answers are in the log; the cursor passes the messages, and nothing is noted."""
    world = World(summaries=[completion(text)] * 2)
    report = run(world, *TALK)
    replies = [event_of(record) for record in of_kind(world, "derivation_replied")]
    assert all(isinstance(one, DerivationReplied) and one.fault for one in replies) and len(replies) == 2
    assert not noted(world) and len(report.refused) == 1 and len(of_kind(world, "memories_derived")) == 1
    assert run(world.restarted()).read == 0


def test_an_answer_in_a_fence_or_with_words_around_it_is_read() -> None:
    """Models do that. What has to be guessed is not read."""
    assert read_answer('Here it is:\n```json\n{"facts": []}\n```').facts == []
    with pytest.raises(BadReply):
        read_answer('{"facts": [{"subject": "Ann", "predicate": ')


def test_a_known_fact_is_not_noted_again_and_can_be_ended_by_its_number() -> None:
    """The request shows what is known of those who are named. An end has the reply as its cause, and is reversible."""
    world = World(summaries=[reply(fact("Ann", "works_at", "Bosch"), fact("Ann", "likes", "Kiel"))])
    run(world, *TALK)
    again = world.restarted(
        summaries=[
            reply(
                fact("Ann", "works_at", "Bosch"),
                ended=[{"fact": 2, "messages": [1], "when": "2023-05", "reason": "She moved."}],
            )
        ]
    )
    report = run(again, UserMessage(text="I am still at Bosch, but I had enough of Kiel.", name="Ann"))
    shown = json.loads(again.model.messages()[1]["content"])
    assert [one["object"] for one in shown["known"]] == ["Bosch", "Kiel"]
    (end,) = [event for event in map(event_of, again.log()) if isinstance(event, FactEnded)]
    assert (end.text, end.to_precision, end.successor) == ("She moved.", "month", 0)
    assert len(report.refused) == 1 and "repeats what is known" in report.refused[0]


def test_after_a_crash_between_answer_and_conclusions_the_recorded_answer_is_read() -> None:
    """The model is not asked a second time, and the facts are those of an undisturbed run."""
    world = World(summaries=[reply(fact("Ann", "lives_in", "Kiel"))])

    async def crash() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.commit(list(TALK), turn=0, step=0)
            commit = agent.commit

            async def failing(events: Any, **more: Any) -> Any:
                if callable(events):
                    raise KilledError
                return await commit(events, **more)

            deriving = _Killed(agent, failing)
            await derive_now(deriving)  # type: ignore[arg-type]

    with pytest.raises(KilledError):
        asyncio.run(crash())
    assert not noted(world) and len(of_kind(world, "derivation_replied")) == 1
    again = world.restarted()
    run(again)
    assert not again.model.seen and [one.object for one in noted(again)] == ["Kiel"]


class KilledError(Exception):
    """The process is gone."""


class _Killed:
    """An agent whose commits fail."""

    def __init__(self, agent: Agent, commit: Any) -> None:
        self._agent, self.commit = agent, commit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)


def test_the_same_messages_give_the_same_request_whenever_it_is_asked() -> None:
    """No clock and no order of a mapping is in it."""
    evidence = [Evidence(3, 1_683_720_000_000_000, "user", "Ann", "I live in Kiel.")]

    class Answering:
        name = "wise"

        def __init__(self) -> None:
            self.asked: list[Any] = []

        async def ask(self, purpose: str, messages: Any, read: Any, shown: Any) -> Any:
            self.asked.append(messages)
            return None, "id"

    model = Answering()
    for now in (1, 2):
        material = Material(agent_id="sam", generation=1, now=now, evidence=evidence)
        asyncio.run(ModelFacts(model).derive(material))
    first, second = model.asked
    assert first == second and "Wednesday 2023-05-10 12:00" in first[1][1]


def test_messages_are_read_in_requests_that_a_small_model_can_hold() -> None:
    """Each request and its conclusions are commits of their own, so a failure in the middle keeps what was done."""
    world = World(summaries=[reply()] * 3)
    report = run(world, *[UserMessage(text=f"Number {n}.") for n in range(90)])
    sizes = [len(json.loads(json.loads(raw)["messages"][1]["content"])["messages"]) for raw in world.model.requests]
    assert sizes == [40, 40, 10] and report.read == 90 and len(of_kind(world, "memories_derived")) == 3
    long = World(summaries=[reply()] * 3)
    run(long, *[UserMessage(text="x" * 9_000)] * 3)
    assert len(long.model.requests) == 3
