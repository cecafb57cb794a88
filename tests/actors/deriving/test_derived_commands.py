"""Derived memories through the handle of an agent: derive, note, end, merge, withdraw, choose. Bad input changes
nothing.
"""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from everlog import testing
from everlog.actors.derivation.conclusions import DerivationReport
from everlog.actors.deriving.derived_commands import derive
from everlog.actors.deriving.memory_commands import DeriveMemories, EndFact, NameEntity, NoteFact, WithdrawMemories
from everlog.actors.erasure.selection import Selection
from everlog.events import BadInput, UserMessage
from everlog.testing import ScriptedModel, SyncScriptedSystem
from tests.support.agent_world import World

JUNK = """
WITH derived AS (
    SELECT seq, text, unnest(CASE WHEN len(sources) = 0 THEN [0] ELSE sources END) AS source FROM (
        SELECT seq, lower(trim(coalesce(text, ''))) AS text, coalesce((payload->'sources')::BIGINT[], []) AS sources
        FROM records WHERE type IN ('insight_noted', 'fact_noted', 'fact_ended', 'entity_named', 'plan_made')
    )
),
rested AS (
    SELECT d.seq, d.text, bool_and(s.seq IS NOT NULL) AS founded,
        coalesce(bool_or(contains(lower(s.text), d.text)), false) AS said
    FROM derived d LEFT JOIN records s ON s.seq = d.source AND s.seq < d.seq AND NOT s.erased
        AND s.type IN ('user_message', 'message_sent', 'archival_inserted', 'archival_updated', 'insight_noted',
            'fact_noted', 'fact_ended', 'plan_made', 'plan_changed')
    GROUP BY d.seq, d.text
),
shown AS (
    SELECT seq, lower(text) AS text FROM records
    WHERE type = 'agent_configured' OR (type = 'function_result' AND payload->>'name' LIKE '%search%')
)
SELECT count(*) AS junk FROM rested r
WHERE NOT founded
    OR (NOT said AND EXISTS (FROM shown p WHERE p.seq < r.seq AND r.text <> '' AND contains(p.text, r.text)))
"""
"""Counts derived memories without a valid source, and those that repeat a prompt or a result of a search and nothing
that their sources say.
"""
DAY = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def system() -> Iterator[SyncScriptedSystem]:
    with testing.system(ScriptedModel(after="Ok.")) as made:
        yield made


def seqs(system: SyncScriptedSystem, kind: str = "user_message") -> list[int]:
    return [record.seq for record in system.log("sam") if record.type == kind]


def rows(system: SyncScriptedSystem, table: str, as_of: int | None = None) -> list[dict[str, Any]]:
    with system.view("sam", as_of=as_of) as state:
        found: list[dict[str, Any]] = state.rows(table)
        return found


def told(system: SyncScriptedSystem, *texts: str) -> Any:
    """Return the agent's memories after a user told it something."""
    agent = system.agent("sam")
    for text in texts:
        agent.ask(text)
    return agent.memories


def test_facts_are_derived_by_command_and_only_once(system: SyncScriptedSystem) -> None:
    """The report says what was read and noted; a second derivation reads nothing and writes nothing."""
    memories = told(system, "My name is Chad. I live in Kiel.", "I moved to Bonn.")
    report = memories.derive()
    assert (report.deriver, report.read, report.noted, report.refused) == ("rules-1", 4, 5, [])
    head = system.log("sam")[-1].seq
    assert memories.derive().read == 0 and system.log("sam")[-1].seq == head
    assert [(one["object"], one["believed"]) for one in rows(system, "facts")] == [
        ("Chad", True), ("Kiel", False), ("Bonn", True),
    ]  # fmt: skip


def test_nothing_derived_after_a_record_is_seen_at_it(system: SyncScriptedSystem) -> None:
    """As of the moment before the change the old fact holds; before the derivation there is none."""
    memories = told(system, "I live in Kiel.")
    before = system.log("sam")[-1].seq
    memories.derive()
    first = system.log("sam")[-1].seq
    told(system, "I moved to Bonn.").derive()
    assert not rows(system, "facts", before)
    assert [(one["object"], one["believed"]) for one in rows(system, "facts", first)] == [("Kiel", True)]


def test_a_fork_between_a_fact_and_its_end_shows_the_fact_as_valid(system: SyncScriptedSystem) -> None:
    """The fork never learns of the later records of its parent."""
    told(system, "I live in Kiel.").derive()
    cut = system.log("sam")[-1].seq
    told(system, "I moved to Bonn.").derive()
    system.fork("sam", "lee", at=cut)
    with system.view("lee") as state:
        assert [(one["object"], one["believed"], one["valid_to"]) for one in state.rows("facts")] == [
            ("Kiel", True, None)
        ]


def test_another_generation_stands_beside_the_first_until_it_is_chosen(system: SyncScriptedSystem) -> None:
    """It derives everything again, not only what the first did not know; choosing it swaps what is in use."""
    memories = told(system, "I live in Kiel.", "I moved to Bonn.")
    memories.derive()
    first = rows(system, "facts")
    memories.derive(generation=2)
    assert rows(system, "facts") == first
    assert memories.choose_generation(2) and not memories.choose_generation(2)
    second = rows(system, "facts")
    assert [one["object"] for one in second] == ["Kiel", "Bonn"] and {one["generation"] for one in second} == {2}
    with pytest.raises(BadInput, match="no generation 3"):
        memories.choose_generation(3)


def test_a_person_notes_and_ends_facts_that_count_in_every_generation(system: SyncScriptedSystem) -> None:
    """A new home ends the old one; the same fact again is the same seq; an end is made once."""
    memories = told(system, "I live in Kiel.", "I moved to Bonn.")
    said = seqs(system)
    first = memories.note_fact("Chad", "lives_in", "Kiel", sources=[said[0]])
    assert memories.note_fact("Chad", "lives_in", "kiel", sources=[said[0]]) == first
    second = memories.note_fact("Chad", "lives_in", "Bonn", sources=[said[1]], valid_from=DAY, from_precision="day")
    old, new = rows(system, "facts")
    assert (old["seq"], old["successor"], old["believed"]) == (first, second, False)
    assert (new["deriver"], new["generation"], new["from_precision"]) == ("person", 0, "day")
    assert memories.end_fact(second, reason="It was a joke.") and not memories.end_fact(second)
    assert rows(system, "facts")[1]["reason"] == "It was a joke."


def test_a_merge_and_a_withdrawal_can_be_undone(system: SyncScriptedSystem) -> None:
    """Nothing is deleted: what is withdrawn counts again when that is said."""
    memories = told(system, "Lea lives in Bonn. Lea Maier lives in Rome.")
    memories.derive()
    assert memories.name_entity("Lea", "Lea Maier", sources=seqs(system))
    assert not memories.name_entity("Lea", "Lea Maier", sources=seqs(system))
    assert [(one["alias"], one["entity"]) for one in rows(system, "entity_names")] == [("Lea", "Lea Maier")]
    merge = seqs(system, "entity_named")
    assert memories.withdraw(merge, reason="Two people.") and not memories.withdraw(merge)
    assert not rows(system, "entity_names")
    assert memories.withdraw(merge, withdrawn=False) and rows(system, "entity_names")


def test_a_command_that_is_sent_again_changes_nothing(system: SyncScriptedSystem) -> None:
    """Each finds its own event by the id of the command, and has the same value."""
    memories = told(system, "I live in Kiel.")
    said, sender = seqs(system), memories._wrapped._sender

    def twice(kind: Any, **fields: Any) -> tuple[Any, int]:
        """Return the value of a command that is sent twice, and the number of its records."""
        command, head = sender.command(kind, **fields), system.log("sam")[-1].seq

        async def send() -> Any:
            answer = sender.run(command)
            await answer
            return answer.value

        values = [memories._loop.run(send()) for _ in range(2)]
        assert values[0] == values[1]
        return values[0], system.log("sam")[-1].seq - head

    fact, count = twice(NoteFact, subject="Chad", predicate="lives_in", object="Kiel", sources=said)
    assert count == 1
    assert twice(NameEntity, alias="C.", entity="Chad", sources=said) == (True, 1)
    assert twice(EndFact, fact=fact) == (True, 1)
    assert twice(WithdrawMemories, seqs=[fact]) == (True, 1)


BAD: dict[str, Callable[[Any, int], object]] = {
    "no source": lambda m, _: m.note_fact("Chad", "likes", "tea", sources=[]),
    "a source that does not exist": lambda m, _: m.note_fact("Chad", "likes", "tea", sources=[9999]),
    "a source of its own": lambda m, s: m.note_fact("Chad", "likes", "tea", sources=[s + 1]),
    "a source below the first": lambda m, _: m.note_fact("Chad", "likes", "tea", sources=[0]),
    "a source that is no memory": lambda m, _: m.note_fact("Chad", "likes", "tea", sources=[1]),
    "a source that is text": lambda m, _: m.note_fact("Chad", "likes", "tea", sources=["2"]),
    "too many sources": lambda m, _: m.note_fact("Chad", "likes", "tea", sources=list(range(1, 200))),
    "an empty subject": lambda m, s: m.note_fact(" ", "likes", "tea", sources=[s]),
    "a long object": lambda m, s: m.note_fact("Chad", "likes", "x" * 201, sources=[s]),
    "a subject that is a number": lambda m, s: m.note_fact(7, "likes", "tea", sources=[s]),
    "a predicate with spaces": lambda m, s: m.note_fact("Chad", "Lives in", "Rome", sources=[s]),
    "a precision that is none": lambda m, s: m.note_fact(
        "Chad", "likes", "tea", sources=[s], valid_from=DAY, from_precision="week"
    ),
    "a fact that does not exist": lambda m, _: m.end_fact(9999),
    "a message as a fact": lambda m, s: m.end_fact(s),
    "a merge without a source": lambda m, _: m.name_entity("C.", "Chad", sources=[]),
    "an empty name": lambda m, s: m.name_entity("", "Chad", sources=[s]),
    "a withdrawal of a message": lambda m, s: m.withdraw([s]),
    "a withdrawal of nothing": lambda m, _: m.withdraw([]),
    "another derivation": lambda m, _: m.derive("dreams"),
    "generation 0": lambda m, _: m.derive(generation=0),
    "a negative bound": lambda m, _: m.derive(batches_max=-1),
    "a generation that was never derived": lambda m, _: m.choose_generation(7),
}  # fmt: skip


def test_bad_input_is_refused_and_nothing_is_lost(system: SyncScriptedSystem) -> None:
    """Each error is the caller's, the log is as before, and the agent still works."""
    memories = told(system, "I live in Kiel.")
    head, message = system.log("sam")[-1].seq, seqs(system)[0]
    for wrong, call in BAD.items():
        with pytest.raises(BadInput):
            call(memories, head if wrong == "a source of its own" else message)
        assert system.log("sam")[-1].seq == head, wrong
    assert memories.derive().noted == 1


def test_an_erased_message_can_be_no_source_and_is_not_read(system: SyncScriptedSystem) -> None:
    """A derivation after the erasure finds nothing in it; a person who names it gets the reason."""
    memories = told(system, "I live in Kiel.")
    message = seqs(system)[0]
    system.erase("sam", Selection(seqs=[(message, message)]))
    assert memories.derive().noted == 0
    with pytest.raises(BadInput, match="was erased"):
        memories.note_fact("Chad", "lives_in", "Kiel", sources=[message])


def test_a_changed_fact_flags_all_that_rests_on_it_and_nothing_else(system: SyncScriptedSystem) -> None:
    """A cascade: two facts rest on the home, one on the job, and one on a fact that rests on the home."""
    memories = told(system, "I live in Kiel and work at Bosch.", "Lea likes tea.", "I moved to Rome.")
    first, second, third = seqs(system)
    home = memories.note_fact("Chad", "lives_in", "Kiel", sources=[first])
    job = memories.note_fact("Chad", "works_at", "Bosch", sources=[first])
    ferry = memories.note_fact("Chad", "takes", "the ferry", sources=[home])
    early = memories.note_fact("Chad", "rises", "at five", sources=[ferry, job])
    lunch = memories.note_fact("Chad", "eats_at", "the canteen", sources=[job])
    tea = memories.note_fact("Lea", "likes", "tea", sources=[second])
    assert not rows(system, "outdated")
    memories.note_fact("Chad", "lives_in", "Rome", sources=[third])
    flagged = {(one["seq"], one["because"], one["steps"]) for one in rows(system, "outdated")}
    assert flagged == {(ferry, home, 1), (early, home, 2)} and not flagged & {
        (job, home, 1),
        (lunch, home, 1),
        (tea, home, 1),
    }
    memories.end_fact(job)
    assert {(one["seq"], one["because"]) for one in rows(system, "outdated")} == {
        (ferry, home), (early, home), (early, job), (lunch, job),
    }  # fmt: skip


def test_no_derived_memory_is_junk(system: SyncScriptedSystem) -> None:
    """Every one has a source before it, which is a memory and not erased; none repeats a prompt or a search result."""
    memories = told(system, "My name is Chad. I live in Kiel.", "Lea lives in Bonn.", "I moved to Rome.")
    system.model.lines.append([testing.call("conversation_search", query="Kiel")])
    told(system, "Where did I live?", "I love the sea of Kiel.", "I love sailing.")
    memories.derive()
    assert system.sql(JUNK).to_pylist() == [{"junk": 0}] and len(rows(system, "facts")) >= 4
    # The measure finds what a repeated result of a search would be: it is in no source that it names.
    memories.note_fact("Lea", "lives_in", "Bonn", sentence="Lea lives in Bonn.", sources=seqs(system)[-1:])
    memories.note_fact("Chad", "knows", "Lea", sentence="Lea lives in Bonn.", sources=seqs(system)[-1:])
    assert system.sql(JUNK).to_pylist() == [{"junk": 1}]


def test_a_derivation_asks_for_two_projections_in_each_batch_and_its_memories_are_small() -> None:
    """One projection for the cursor, two for each 500 messages; text and payload of each memory are below 400 bytes."""
    world, asked = World(), []
    texts = [f"I moved to City{n}. My friend Person{n} works at Company{n}." for n in range(1_100)]

    async def work() -> DerivationReport:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.commit([UserMessage(text=text, name="Chad") for text in texts], turn=0, step=0)
            rows = agent._journal.rows

            async def counted(name: str, *arguments: Any) -> Any:
                asked.append(name)
                return await rows(name, *arguments)

            agent._journal.rows = counted  # type: ignore[method-assign]
            return await derive(agent, DeriveMemories(id=world.ids.new(0)))

    report = asyncio.run(work())
    assert asked == ["derivations", *["generation_names", "generation_facts"] * 3]
    made = [record for record in world.log() if record.type in ("fact_noted", "fact_ended")]
    assert report.noted == len(made) == 4_399 and report.read == 1_100
    assert max(len((record.text or "").encode()) + len(record.payload.encode()) for record in made) < 400
