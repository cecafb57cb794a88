"""Insights by rules: counted, dated, with sources that exist, and never twice."""

import asyncio
from datetime import datetime
from typing import Any

from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.derivation.conclusions import Evidence, Material
from everlog.actors.derivation.insight_rules import InsightRules
from everlog.actors.deriving.reflection import Reflection
from everlog.events import InsightNoted, MemoriesDerived, UserMessage, event_of
from everlog.events.times import since_epoch
from tests.support.agent_world import World

SAILING = (
    (5, 7, "The sailing course begins next week."),
    (5, 19, "I went out on the lake, sailing all afternoon."),
    (6, 2, "My sailing teacher says that I am ready."),
    (7, 21, "We sail to the island; sailing is all I think of."),
)


def at(month: int, day: int) -> int:
    return since_epoch(datetime.fromisoformat(f"2024-{month:02}-{day:02}T12:00+00:00"))


def said(number: int, month: int, day: int, text: str, name: str = "Chad") -> Evidence:
    return Evidence(number, at(month, day), "user", name, text)


def material(*evidence: Evidence, facts: list[dict[str, Any]] | None = None) -> Material:
    return Material(agent_id="sam", generation=1, now=at(8, 1), evidence=evidence, facts=facts or [])


def fact(seq: int, object_: str, *, predicate: str = "lives_in", **more: Any) -> dict[str, Any]:
    return {
        "seq": seq, "subject": "Chad", "predicate": predicate, "object": object_, "single": False, "believed": True,
        "ended_seq": 0, "successor": 0, "valid_to": None, "to_precision": "unknown", **more,
    }  # fmt: skip


def insights(given: Material) -> list[InsightNoted]:
    return [event for event in asyncio.run(InsightRules().derive(given)).events if isinstance(event, InsightNoted)]


def test_a_word_that_somebody_keeps_saying_is_counted_and_dated() -> None:
    """A word in four messages of one speaker becomes an insight that rests on these four messages."""
    found = insights(material(*(said(number, *one) for number, one in enumerate(SAILING, 10))))
    assert [(one.text, one.sources, one.depth) for one in found] == [
        ("Chad mentioned sailing 4 times between 7 May 2024 and 21 July 2024.", [10, 11, 12, 13], 1)
    ]


def test_a_count_goes_on_from_the_insight_before() -> None:
    """A later reflection adds to an earlier count, and rests on the insight that has it: depth 2."""
    before = Evidence(
        20, at(7, 22), "derived", "", "Chad mentioned sailing 4 times between 7 May 2024 and 21 July 2024.", 1
    )
    later = [said(30 + day, 8, day, "More sailing today.") for day in (3, 4, 5)]
    found = insights(material(before, *later))
    assert [(one.text, one.sources, one.depth) for one in found] == [
        ("Chad mentioned sailing 7 times between 7 May 2024 and 5 August 2024.", [20, 33, 34, 35], 2)
    ]


def test_a_changed_fact_is_told_with_its_date_and_not_outdated() -> None:
    """A fact with a successor becomes an insight that rests on the end and on the new fact, not on the old one."""
    facts = [
        fact(3, "Paris", believed=False, ended_seq=9, successor=8, valid_to=at(5, 1), to_precision="month"),
        fact(8, "Rome"),
    ]
    (found,) = insights(material(facts=facts))
    assert (found.text, found.sources) == ("Chad moved from Paris to Rome in May 2024.", [8, 9])


def test_facts_of_one_kind_are_told_together() -> None:
    """Three facts of one subject and predicate become one insight, two do not."""
    facts = [fact(3, "jazz", predicate="likes"), fact(4, "chess", predicate="likes"), fact(5, "tea", predicate="likes")]
    assert [(one.text, one.sources) for one in insights(material(facts=facts))] == [
        ("Chad likes jazz, chess and tea.", [3, 4, 5])
    ]
    assert insights(material(facts=facts[:2])) == []


def test_an_insight_that_is_known_is_not_noted_again() -> None:
    """The same facts give no second insight, and nothing is reported as refused."""
    facts = [fact(number, thing, predicate="likes") for number, thing in enumerate(("jazz", "chess", "tea"), 3)]
    known = Evidence(9, at(5, 1), "derived", "", "Chad likes jazz, chess and tea.", 1)
    conclusions = asyncio.run(InsightRules().derive(material(known, facts=facts)))
    assert (conclusions.events, conclusions.refused) == ([], [])


def test_a_reflection_is_one_commit_and_the_next_one_finds_nothing_new() -> None:
    """The cursor and its insights are one commit; a second reflection leaves no event, and asks no model."""

    async def main() -> None:
        world = World()
        async with world.system.agent("sam", world.settings) as agent:
            messages = [
                ImportedMessage(
                    UserMessage(text=text, name="Chad", imported=True), datetime(2024, month, day).astimezone()
                )
                for month, day, text in SAILING
            ]
            await agent.import_messages(messages)
            head = agent.head
            report = await Reflection(agent).run()
            assert (report.read, report.noted, report.refused) == (4, 1, [])
            cursor, insight = [event_of(record) for record in agent.records(head + 1)]
            assert isinstance(cursor, MemoriesDerived)
            assert (cursor.derivation, cursor.to_seq, cursor.noted) == ("reflection", report.to_seq, 1)
            assert cursor.importance > 0
            assert isinstance(insight, InsightNoted)
            assert insight.text.startswith("Chad mentioned sailing 4 times")
            assert len(list(agent.records(head + 1))[1].payload) < 400
            head = agent.head
            assert (await Reflection(agent).run()).read == 0
            assert agent.head == head
            assert world.model.requests == []

    asyncio.run(main())


def test_a_reflection_below_the_wanted_importance_waits() -> None:
    """Messages of less importance than asked for are left for a later reflection."""

    async def main() -> None:
        world = World()
        await world.tell("Hello.")
        async with world.system.agent("sam", world.settings) as agent:
            head = agent.head
            assert (await Reflection(agent).run(importance_min=150)).read == 0
            assert agent.head == head
            assert (await Reflection(agent).run()).read > 0

    asyncio.run(main())
