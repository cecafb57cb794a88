"""The records that an erasure takes: the selection, and the records that followed from it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from everlog.actors.erasure.erasure_plan import ErasurePlan, plan_erasure
from everlog.actors.erasure.record_words import SoughtWords, added_words, forms_of, normalized, words_of
from everlog.actors.erasure.selection import Selection
from everlog.events import (
    AgentMessageSent,
    ArchivalDeleted,
    BadInput,
    DerivationReplied,
    FactNoted,
    InsightNoted,
    RecordsErased,
    UserMessage,
    draft,
)
from tests.support.agent_world import World, completion, say


def told(*turns: tuple[str, Sequence[Any]], name: str = "") -> World:
    """Return a world in which Sam got messages; each has the replies of its turn."""
    world = World(*(line for _, lines in turns for line in lines))

    async def story() -> None:
        async with world.system.agent("sam", msgspec.structs.replace(world.settings, verify_first=False)) as sam:
            for text, _ in turns:
                await sam.receive(UserMessage(text=text, name=name))
                await sam.run()

    asyncio.run(story())
    return world


def plan(world: World, *, derived: bool = False, **selection: Any) -> ErasurePlan:
    return plan_erasure(world.store, "sam", Selection(**selection), derived=derived)


def kinds(records: Sequence[Any]) -> list[str]:
    return [one.type for one in records]


def first(world: World, kind: str, number: int = 0) -> int:
    """Return the seq of a record of a kind, of those after the creation."""
    return [record.seq for record in world.log() if record.type == kind and record.turn > 0][number]


def remember(text: str, **more: Any) -> str:
    calls = [("core_memory_append", {"name": "human", "content": text}), ("send_message", {"message": "I see."})]
    return completion(calls=calls, **more)


NUMBER = ("My number is 4711", [remember("number is 4711")])
TEA = ("I like tea in the morning", [say("Tea it is.")])


def test_what_a_message_caused_is_named_by_cause() -> None:
    """The reply, the memory and the answer of the message's turn follow from it, and no record of another turn."""
    world = told(TEA, NUMBER, TEA)
    found = plan(world, seqs=[(first(world, "user_message", 1),) * 2])
    assert kinds(found.taken) == ["user_message"]
    assert kinds(found.left) == ["model_reply", "memory_edited", "message_sent"]
    assert {one.why for one in found.left} == {f"caused by {found.taken[0].seq}"}


def test_with_derived_the_results_of_the_calls_go_too() -> None:
    """Results that say only that a call is done are taken with the calls, and are not counted as saying the same."""
    world = told(NUMBER)
    found = plan(world, turns=[1], derived=True)
    alone = plan(world, seqs=[(first(world, "user_message"),) * 2], derived=True)
    assert [one.seq for one in found.taken] == [one.seq for one in alone.taken]
    assert kinds(alone.taken).count("function_result") == 2
    assert not alone.left


def test_a_block_that_repeats_an_edit_later_is_found_by_its_words() -> None:
    """A later edit writes the whole block, with the words of the edit before, however few these are."""
    world = told(NUMBER, ("I sail", [remember("sails")]))
    found = plan(world, seqs=[(first(world, "user_message"),) * 2])
    edits = [one for one in found.left if one.type == "memory_edited"]
    assert [one.why.split(" ")[0] for one in edits] == ["caused", "says"]
    seq = first(world, "memory_edited", 1)
    gone = plan(world, seqs=[(first(world, "user_message"),) * 2], derived=True)
    assert f"this erases the memory block 'human' as of seq {seq}: 'sam' has the block as of seq 4 again" in gone.losses


def test_a_search_result_that_shows_the_words_follows_by_words() -> None:
    """The result of a conversation search quotes the message, and so does the answer to it."""
    long = "the harbour master of Whitby keeps a red lantern"
    search = completion(calls=[("conversation_search", {"query": "harbour", "request_heartbeat": True})])
    world = told((long, [say("I see.")]), ("What about the harbour?", [search, say(f"You said: {long}")]))
    found = plan(world, seqs=[(first(world, "user_message"),) * 2])
    by_words = [one for one in found.left if one.why == f"says the words of sam {found.taken[0].seq}"]
    assert kinds(by_words) == ["function_result", "model_reply", "message_sent"]


def test_an_earlier_record_that_says_the_same_is_named_too() -> None:
    """The second of two equal messages is selected: the first one still says it."""
    text = "the gold is under the old oak"
    world = told((text, [say("Yes.")]), (text, [say("Yes.")]))
    second = first(world, "user_message", 1)
    found = plan(world, seqs=[(second, second)])
    assert found.left[0].seq == first(world, "user_message")


def test_a_summary_follows_from_what_it_covers_and_the_next_one_from_it() -> None:
    """Summaries paraphrase: they follow by cause, whatever words they use."""
    turns = [
        (f"{text} number {n}", [say("Yes.")]) for n, text in enumerate(("Rex is my dog", "I sail", "I row", "I ski"))
    ]
    world = told(*turns)

    async def summarize() -> None:
        for _ in range(2):
            async with world.system.agent("sam", world.settings) as sam:
                assert await sam.summarize()
                await sam.receive(UserMessage(text="go on and on"))
                await sam.run()

    asyncio.run(summarize())
    covered = first(world, "user_message")
    found = plan(world, seqs=[(covered, covered)])
    assert kinds(found.left).count("summary") == 2


@pytest.mark.parametrize(
    "phrase", ["my NUMBER is 4711", "my  number\nis 4711", "Zo\u00eb", "zoe\u0308", 'say "yes"', "ZOË", "C:\\new"]
)
def test_words_are_matched_in_any_case_form_and_escape(phrase: str) -> None:
    """The message and the raw reply, which has the words as JSON inside of JSON, are both selected."""
    text = 'My number is 4711, says Zo\u00eb, and I say "yes" to C:\\new'
    world = told((text, [completion(calls=[("send_message", {"message": text})])]))
    found = plan(world, match=[phrase])
    assert kinds(found.taken) == ["user_message", "model_reply", "message_sent"]


def test_a_match_takes_the_records_that_say_it_and_not_all_that_these_say() -> None:
    """Other words of a matched record are not looked for: a block of memory says many things."""
    world = told(NUMBER, ("I like tea in the morning", [remember("likes tea in the morning hours")]), TEA)
    found = plan(world, match=["4711"])
    assert not [one for one in found.left if one.type == "user_message"]
    assert kinds(found.taken).count("memory_edited") == 2


def test_a_person_and_what_the_agent_said_to_them() -> None:
    """The messages of the person and the answers are selected; the rest of their turns follows."""
    world = told(NUMBER, name="Zo\u00eb")

    async def other() -> None:
        async with world.system.agent("sam", world.settings) as sam:
            await sam.receive(UserMessage(text="I am Max and ask for nothing", name="Max"))
            await sam.run()

    asyncio.run(other())
    found = plan(world, persons=["ZOE\u0308"])
    assert [(one.type, one.why) for one in found.taken] == [
        ("user_message", "said by Zo\u00eb"), ("message_sent", "said to Zo\u00eb"),
    ]  # fmt: skip
    assert kinds(found.left) == ["model_reply", "memory_edited"]
    assert "Max" not in str(found.taken) + str(found.left)


def test_kinds_of_selection_add_up() -> None:
    """A record is taken if any part of the selection names it, and once."""
    world = told(TEA, NUMBER)
    found = plan(world, match=["tea"], turns=[2], seqs=[(3, 3)])
    seqs = [one.seq for one in found.taken]
    assert seqs == sorted(set(seqs))
    assert 3 in seqs and first(world, "user_message", 1) in seqs and first(world, "user_message") in seqs
    assert any("the memory block 'persona' as of seq 3: 'sam' will have no persona" in loss for loss in found.losses)


def test_the_configuration_is_named() -> None:
    """An erasure of everything says what the agent loses: creation, configuration and each block."""
    found = plan(told(TEA), everything=True)
    said = " ".join(found.losses)
    assert "how 'sam' was created" in said
    assert "no system prompt and no model" in said
    assert "no persona" in said and "no human" in said


def test_a_deletion_that_is_erased_is_named() -> None:
    """Erasing a deletion brings back what it deleted, which the plan says; the memory itself may go with it."""
    insert = completion(calls=[("archival_memory_insert", {"content": "the gold is here"})])
    world = told(("Keep it", [insert, say("Kept.")]))
    stored = next(record for record in world.log() if record.type == "archival_inserted")

    async def delete() -> None:
        async with world.system.agent("sam", world.settings) as sam:
            await sam.commit([ArchivalDeleted(memory_id=stored.event_id)], turn=sam.turn, step=0)

    asyncio.run(delete())
    seq = next(record.seq for record in world.log() if record.type == "archival_deleted")
    assert (
        f"this erases the deletion at seq {seq}: the memory of seq {stored.seq} is found again"
        in plan(world, seqs=[(seq, seq)]).losses
    )
    assert not [loss for loss in plan(world, seqs=[(stored.seq, seq)]).losses if "deletion" in loss]


@pytest.mark.parametrize(
    ("selection", "words"),
    [({}, "does not say which records"), ({"match": [" "]}, "empty"), ({"seqs": [(2, 1)]}, "not a range"),
     ({"seqs": [(0, 1)]}, "not a range"), ({"seqs": [(1, 999)]}, "999 is beyond the last record")],
)  # fmt: skip
def test_a_selection_that_cannot_be_meant_is_refused(selection: dict[str, Any], words: str) -> None:
    """The error says what was found, and that nothing was erased."""
    with pytest.raises(BadInput, match=words) as failed:
        plan(told(TEA), **selection)
    assert "Nothing was erased" in str(failed.value)


def test_escapes_are_resolved_at_every_level() -> None:
    """A character that JSON writes as two escapes, inside of JSON, is one character."""
    text = 'Zo\u00eb \U0001f600 "quoted"\nline'
    once = msgspec.json.encode(text).decode()
    ascii_only = "".join(sign if sign.isascii() else sign.encode("unicode_escape").decode() for sign in text[:4])
    assert normalized(text) in [part for form in forms_of(once) for part in [normalized(form).strip('"')]]
    assert normalized("Zo\u00eb ") in normalized(list(forms_of(ascii_only.replace("\\xeb", "\\u00eb")))[-1] + " ")
    assert "\U0001f600" in list(forms_of("\\\\ud83d\\\\ude00"))[-1]


def test_runs_of_words_are_looked_for_up_to_a_limit(monkeypatch) -> None:
    """Beyond the limit the rest is left out, and `is_full` says so."""
    monkeypatch.setattr("everlog.actors.erasure.record_words.RUNS_MAX", 3)
    sought = SoughtWords()
    sought.add(words_of("one two three four five six seven"), "sam 1")
    assert (sought.count, sought.is_full) == (3, False)
    sought.add(words_of("a b c d e f"), "sam 2")
    assert (sought.count, sought.is_full) == (3, True)


def test_an_edit_added_what_is_new_in_it() -> None:
    """Words at the beginning and the end that both texts have were not added."""
    assert added_words("Name: Sam. Likes tea.", "Name: Sam. Number 4711. Likes tea.") == ["number", "4711"]
    assert added_words("", "Number 4711") == ["number", "4711"]
    assert added_words("a a", "a a a") == ["a"]


def test_an_erasure_that_was_not_carried_out_is_planned_with_the_next_one() -> None:
    """Records that a `records_erased` names and that have their content are taken, whatever is selected."""
    world = told(NUMBER, TEA)
    said = [first(world, "user_message", number) for number in (0, 1)]
    log = world.store.open("sam", "test")
    at = world.clock.now()
    event = RecordsErased(from_seq=said[0], to_seq=said[0])
    log.append("sam", len(world.log()), [draft(event, event_id=world.ids.new(at), recorded_at=at, turn=2, step=0)])
    log.close()
    if world.log()[said[0] - 1].text is None:
        pytest.skip("the store carries out an erasure at once")
    found = plan(world, seqs=[(said[1], said[1])])
    assert [one.seq for one in found.taken] == said
    assert found.taken[0].why == f"the erasure at {len(world.log())} was interrupted"


def test_what_was_derived_follows_its_sources() -> None:
    """A fact and an insight that rests on it, and the model's answer that saw the message, follow; another fact does
    not.
    """
    world = told(NUMBER, TEA)
    number, tea = first(world, "user_message"), first(world, "user_message", 1)
    about = {"subject": "user", "deriver": "gpt", "generation": 1}

    async def conclude() -> None:
        async with world.system.agent("sam", world.settings) as sam:
            made = [
                DerivationReplied(derivation="facts", purpose="facts", model="gpt", context_sha256="0" * 64, raw="{}",
                                  sources=[number]),
                FactNoted(text="A", predicate="has_number", object="x", sources=[number], **about),
                FactNoted(text="B", predicate="likes", object="tea", sources=[tea], **about),
            ]  # fmt: skip
            left = await sam.commit(made, turn=sam.turn, step=0)
            await sam.commit([InsightNoted(text="C", sources=[left[1].seq], deriver="gpt")], turn=sam.turn, step=0)

    asyncio.run(conclude())
    left = plan(world, seqs=[(number, number)]).left
    assert [one.text for one in left if one.type in ("fact_noted", "insight_noted")] == ["A", "C"]
    assert "derivation_replied" in kinds(left)


def test_a_message_to_a_background_agent_follows_the_words_that_it_repeats() -> None:
    """The message whose records include the erased one follows; the next one, about later records, does not."""
    world = told(NUMBER, TEA)
    number, tea = first(world, "user_message"), first(world, "user_message", 1)

    async def tell() -> None:
        async with world.system.agent("sam", world.settings) as sam:
            made = [
                AgentMessageSent(text=text, to="eve", call_id="", hops=["sam"], from_seq=one, to_seq=last)
                for text, one, last in (("A", number, tea - 1), ("B", tea, sam.head))
            ]
            await sam.commit(made, turn=0, step=0)

    asyncio.run(tell())
    left = plan(world, seqs=[(number, number)]).left
    assert [one.text for one in left if one.type == "agent_message_sent"] == ["A"]
