"""Laws of recall search: it ranks as a plain reference does, as of any record, however it was asked before."""

from typing import Any

import pytest
from hypothesis import strategies as st

from everlog.events import AgentCreated, AnyEvent, FunctionError, MessageSent, Record, UserMessage, draft, place, uuid7
from everlog.projections import HEAD, Projections, RecallSearch
from tests.laws.ranking_reference import Message, ranked
from tests.support.law import law

WORDS = ("Sam", "Ann", "sail", "sailing", "boat", "the", "what", "May", "8", "cake?", "cake.", "boat?", "[a boat]", "!",
         "1990s", "猫好")  # fmt: skip
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
SAID = st.tuples(st.sampled_from(["Sam", "Ann", "Sam Hill", ""]), TEXTS, st.sampled_from([1, 60, 3599, 3600, 90_000]))
LIVES = st.lists(st.one_of(SAID, SAID, SAID, SAID, SAID, st.none()), min_size=1, max_size=12)
"""A text, its speaker and the seconds after the message before; None: the agent is created again."""
QUERIES = st.lists(
    st.sampled_from(["Sam", "Ann", "sail", "boat", "cake", "what", "May", "zebra", "oa", "1990s", "1990", "猫"]),
    max_size=3,
)


def lived(life: list[tuple[str, str, int] | None]) -> tuple[list[Record], list[Message]]:
    """The records of such a life, and what of them was said."""
    records: list[Record] = []
    said: list[Message] = []
    time, lives = 1_683_500_000_000_000, 0
    for number, one in enumerate([None, *life], start=1):
        event: AnyEvent
        if one is None:
            lives += 1
            event = AgentCreated()
        else:
            name, text, seconds = one
            time += seconds * 1_000_000
            event = (UserMessage if number % 2 else MessageSent)(text=text, name=name, imported=True)  # type: ignore[call-arg]
            role = "user" if number % 2 else "assistant"
            said.append(Message(number, time, role, name, text, lives))
        made = draft(event, event_id=uuid7(time, number), recorded_at=time, turn=0, step=0)
        records.append(place(made, "sam", number, number))
    return records, said


def searched(engine: Projections, as_of: int, query: str, **filters: Any) -> list[tuple[int, float]]:
    """Seqs and scores of all results, fetched in two pages."""
    search = RecallSearch(engine, "sam", as_of)
    first, rest = search.recall(query, 0, 2, **filters), search.recall(query, 2, 100, **filters)
    assert first.total == rest.total == len(first) + len(rest)
    return [(row["seq"], row["score"]) for row in [*first, *rest]]


def close(one: list[tuple[int, float]], other: list[tuple[int, float]]) -> bool:
    return [seq for seq, _ in one] == [seq for seq, _ in other] and all(
        abs(a - b) < 2e-4 for (_, a), (_, b) in zip(one, other, strict=True)
    )


def until(said: list[Message], records: list[Record], as_of: int) -> list[Message]:
    """Return the messages up to that moment, of all incarnations up to that moment's."""
    return [one for one in said if one.seq <= as_of] if _life(records, as_of, said) else []


def _life(records: list[Record], as_of: int, said: list[Message]) -> bool:
    """Return True if the incarnation of that moment has messages."""
    born = max(record.seq for record in records if record.type == "agent_created" and record.seq <= as_of)
    return any(born < one.seq <= as_of for one in said)


@law(LIVES, QUERIES, st.data(), few=5, many=120)
def test_the_ranking_is_that_of_the_reference_as_of_any_record(life, query, data):
    """Added in two groups with a search between, asked as of any seq, with and without meanings and a role.

    Some of the documents are in their table, all, or none.
    """
    records, said = lived(life)
    cut = data.draw(st.integers(0, len(records)))
    as_of = data.draw(st.integers(1, len(records)))
    cosines = {one.seq: data.draw(st.integers(-8, 8)) / 8 for one in said if data.draw(st.integers(0, 4))}
    text = " ".join(query)
    with Projections() as engine, pytest.MonkeyPatch.context() as patch:
        patch.setattr("everlog.projections.recall_search.DOCUMENTS_STORED_MIN", data.draw(st.sampled_from([1, 3, 100])))
        engine.add(records[:cut])
        RecallSearch(engine, "sam", HEAD).recall(text, 0, 5)
        engine.add(records[cut:])
        known = until(said, records, as_of)
        for roles in ((), ("user",)):
            for meanings in (None, cosines):
                came = searched(engine, as_of, text, roles=roles, meanings=meanings)
                assert close(came, ranked(known, text, roles=roles, meanings=meanings)), (roles, meanings)


@law(LIVES, QUERIES, st.data(), few=5, many=120)
def test_nothing_later_changes_what_is_found(life, query, data):
    """A search as of a seq finds the same in an engine that knows no more, scores included."""
    records, said = lived(life)
    as_of = data.draw(st.integers(1, len(records)))
    meanings = {one.seq: one.seq % 7 / 7 for one in said}
    with Projections() as whole, Projections() as part:
        whole.add(records)
        part.add(records[:as_of])
        text = " ".join(query)
        assert searched(whole, as_of, text, meanings=meanings) == searched(part, HEAD, text, meanings=meanings)


TALK: list[tuple[str, str, int] | None] = [
    ("Ann", "I went to Lake Tahoe.", 90_000),
    ("Sam", "Who sails there? The boat club?", 60),
    ("Ann", "My brother does.", 60),
    ("Sam", "I like lakes. Tahoe lake is far.", 90_000),
    ("", "nothing of it", 90_000),
]


@pytest.fixture(scope="module")
def talk():
    """Seqs 2 to 6, of 9, 10 and 11 May 2023."""
    with Projections() as engine:
        engine.add(lived(TALK)[0])
        yield lambda query, **more: [seq for seq, _ in searched(engine, HEAD, query, **more)]


def test_a_phrase_in_quotes_must_be_contained(talk):
    """Letter for letter but for case; each of several; and without one that has them all, nothing."""
    assert talk('"lake tahoe"') == [2]
    assert set(talk("lake tahoe")) >= {2, 5}
    assert talk('"lake" "far"') == [5]
    assert talk("\u201clake tahoe\u201d club") == [2]
    assert talk('"tahoe club"') == []


def test_a_phrase_that_nothing_has_leaves_the_other_words_of_a_question(talk):
    """A title that is quoted in a question need not have been said letter for letter."""
    assert talk('Who has been at "Great Lake Tahoe"?')[0] in {2, 5}


def test_an_answer_is_found_by_the_words_of_its_question(talk):
    """`My brother does.` says nothing of sailing, and is what was asked for."""
    assert talk("Who sails?") == [4, 3]


def test_a_speaker_who_is_named_is_preferred(talk):
    """Both spoke of Tahoe; who is named comes first."""
    assert talk("What did Sam say about Tahoe?")[0] == 5
    assert talk("What did Ann say about Tahoe?")[0] == 2


def test_a_part_of_a_word_is_found_as_a_last_resort(talk):
    """MemGPT's own search: the query as it stands, anywhere in the text."""
    assert talk("oth") == [4, 6]


def test_days_are_inclusive_and_in_the_zone_of_the_agent(talk):
    """One day or several, before, after, or both."""
    assert talk("lake", start="2023-05-10", end="2023-05-10") == [5]
    assert talk("lake", end="2023-05-09") == [2]
    assert talk("lake", start="2023-05-11") == []


def test_filters_that_cannot_be_are_refused_in_words(talk):
    """An unknown role is refused with the known ones; a malformed day is refused with the format of a day."""
    with pytest.raises(FunctionError, match="assistant, user"):
        talk("lake", roles=["system"])
    for day in ("now", "2023-02-30", "05/10/2023"):
        with pytest.raises(FunctionError, match="YYYY-MM-DD"):
            talk("lake", start=day)


def test_what_is_near_in_meaning_is_a_result_only_among_the_nearest():
    """Of 60 messages without the word, 20 are results: totals stay what they say."""
    life = [("", f"number {number}", 90_000) for number in range(60)]
    with Projections() as engine:
        engine.add(lived(life)[0])
        came = searched(engine, HEAD, "zebra", meanings={number: number / 100 for number in range(2, 62)})
    assert [seq for seq, _ in came] == list(range(61, 41, -1))


def test_names_of_speakers_are_left_out_of_what_is_meant(talk):
    """The topic of a question is embedded; a question of names alone stays as it is."""
    with Projections() as engine:
        engine.add(lived(TALK)[0])
        search = RecallSearch(engine, "sam", HEAD)
        assert search.without_names("Where was Ann's brother, Sam?") == "Where was brother,"
        assert search.without_names("Ann?") == "Ann?"
        assert RecallSearch(engine, "sam", 2).without_names("Sam and Ann") == "Sam and"
