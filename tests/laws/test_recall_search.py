"""Laws of recall search: it ranks like a plain reference, as of any record, independently of earlier searches."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from everlog.events import AgentCreated, AnyEvent, FunctionError, MessageSent, Record, UserMessage, draft, place, uuid7
from everlog.projections import HEAD, Projections, RecallSearch
from everlog.projections.search import ranking
from tests.laws.ranking_reference import Message, ranked
from tests.support.law import law

WORDS = ("Sam", "Ann", "sail", "sailing", "boat", "the", "what", "May", "8", "cake?", "cake.", "boat?", "[a boat]", "!",
         "1990s", "猫好", "I", "yesterday", "A boat sails far. " * 20)  # fmt: skip
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
SAID = st.tuples(st.sampled_from(["Sam", "Ann", "Sam Hill", ""]), TEXTS, st.sampled_from([1, 60, 3599, 3600, 90_000]))
LIVES = st.lists(st.one_of(SAID, SAID, SAID, SAID, SAID, st.none()), min_size=1, max_size=12)
"""A text, its speaker and the seconds since the previous message; None: the agent is created again."""
QUERIES = st.lists(
    st.sampled_from(
        ["Sam", "Ann", "sail", "boat", "cake", "what", "when", "you", "May", "zebra", "oa", "1990s", "1990", "猫"]
    ),
    max_size=3,
)


def lived(life: list[tuple[str, str, int] | None]) -> tuple[list[Record], list[Message]]:
    """Return the records of such a stream, and its messages."""
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


def searched(
    engine: Projections, as_of: int, query: str, meanings: Mapping[int, float] | None = None, **filters: Any
) -> list[tuple[int, float]]:
    """Return seqs and scores of all results, fetched in two pages. `meanings`: similarity by seq."""
    search = RecallSearch(engine, "sam", as_of)
    if meanings is not None:
        filters["talk"] = search.talk()
        filters["meanings"] = np.array([meanings[seq] for seq in filters["talk"].seq], np.float32)
    first, rest = search.recall(query, 0, 2, **filters), search.recall(query, 2, 100, **filters)
    assert first.total == rest.total == len(first) + len(rest)
    return [(row["seq"], row["score"]) for row in [*first, *rest]]


def close(one: list[tuple[int, float]], other: list[tuple[int, float]]) -> bool:
    return [seq for seq, _ in one] == [seq for seq, _ in other] and all(
        abs(a - b) < 2e-4 for (_, a), (_, b) in zip(one, other, strict=True)
    )


def until(said: list[Message], records: list[Record], as_of: int) -> list[Message]:
    """Return the messages up to a moment, of all incarnations; none if the incarnation of that moment has no message
    yet.
    """
    return [one for one in said if one.seq <= as_of] if _life(records, as_of, said) else []


def _life(records: list[Record], as_of: int, said: list[Message]) -> bool:
    """Return True if the incarnation of that moment has messages up to then."""
    born = max(record.seq for record in records if record.type == "agent_created" and record.seq <= as_of)
    return any(born < one.seq <= as_of for one in said)


@law(LIVES, QUERIES, st.data(), few=3, many=120)
def test_the_ranking_is_that_of_the_reference_as_of_any_record(life, query, data):
    """The ranking is equal after a search between two additions, as of any seq, with and without meanings and a role.

    None, some or all of the messages are in the talk index before the search, which may be of a later moment.
    """
    records, said = lived(life)
    cut = data.draw(st.integers(0, len(records)))
    as_of = data.draw(st.integers(1, len(records)))
    cosines = {one.seq: data.draw(st.integers(-8, 8)) / 8 for one in said}
    text = " ".join(query)
    with Projections() as engine, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "CANDIDATES", data.draw(st.sampled_from([1, 3, 120])))
        engine.add(records[:cut])
        RecallSearch(engine, "sam", HEAD).recall(text, 0, 5)
        engine.add(records[cut:])
        if data.draw(st.booleans()):
            RecallSearch(engine, "sam", HEAD).recall(text, 0, 5)
        known = until(said, records, as_of)
        for roles in ((), ("user",)):
            for meanings in (None, cosines):
                came = searched(engine, as_of, text, roles=roles, meanings=meanings)
                assert close(came, ranked(known, text, roles=roles, meanings=meanings)), (roles, meanings)


@law(LIVES, QUERIES, st.data(), few=3, many=120)
def test_later_records_never_change_search_results(life, query, data):
    """A search as of a seq finds the same results, with the same scores, in an engine without the later records."""
    records, said = lived(life)
    as_of = data.draw(st.integers(1, len(records)))
    meanings = {one.seq: one.seq % 7 / 7 for one in said}
    with Projections() as whole, Projections() as part:
        whole.add(records)
        part.add(records[:as_of])
        text = " ".join(query)
        assert searched(whole, as_of, text, meanings=meanings) == searched(part, HEAD, text, meanings=meanings)


def day(time: int) -> str:
    """Return the day of a time in UTC."""
    return datetime.fromtimestamp(time / 1_000_000, UTC).date().isoformat()


@law(LIVES, st.data(), few=3, many=120)
def test_days_find_what_a_plain_filter_finds(life, data):
    """A search by days, as of any seq, has the messages of those days in the incarnation of that seq, in order; each
    page has the total, also one beyond the end.
    """
    records, said = lived(life)
    as_of = data.draw(st.integers(1, len(records)))
    born = max(record.seq for record in records if record.type == "agent_created" and record.seq <= as_of)
    days = sorted({day(record.recorded_at) for record in records})
    first, last = sorted(data.draw(st.lists(st.sampled_from(days), min_size=2, max_size=2)))
    wanted = [one for one in said if born < one.seq <= as_of and first <= day(one.time) <= last]
    with Projections() as engine:
        engine.add(records)
        search = RecallSearch(engine, "sam", as_of)
        pages = [search.recall_between(first, last, start, 3) for start in range(0, len(wanted) + 3, 3)]
    assert [(row["seq"], row["time"], row["text"]) for page in pages for row in page] == [
        (one.seq, one.time, one.text) for one in wanted
    ]
    assert {page.total for page in pages} == {len(wanted)}


TALK: list[tuple[str, str, int] | None] = [
    ("Ann", "I went to Lake Tahoe.", 90_000),
    ("Sam", "Who sails there? The boat club?", 60),
    ("Ann", "My brother does.", 60),
    ("Sam", "I like lakes. Tahoe lake is far.", 90_000),
    ("", "nothing of it", 90_000),
]


@pytest.fixture(scope="module")
def talk():
    """Return messages at seqs 2 to 6, of 9, 10 and 11 May 2023."""
    with Projections() as engine:
        engine.add(lived(TALK)[0])
        yield lambda query, **more: [seq for seq, _ in searched(engine, HEAD, query, **more)]


def test_a_phrase_in_quotes_must_be_contained(talk):
    """Each quoted phrase must occur letter for letter, except for case; without a message that has them all, nothing is
    found.
    """
    assert talk('"lake tahoe"') == [2]
    assert set(talk("lake tahoe")) >= {2, 5}
    assert talk('"lake" "far"') == [5]
    assert talk("\u201clake tahoe\u201d club") == [2]
    assert talk('"tahoe club"') == []


def test_a_phrase_that_nothing_has_leaves_the_other_words_of_a_question(talk):
    """If no message has the quoted title of a question, the other words of the question still find messages."""
    assert talk('Who has been at "Great Lake Tahoe"?')[0] in {2, 5}


def test_an_answer_is_found_by_the_words_of_its_question(talk):
    """`My brother does.` does not mention sailing, and is found because the question before it does. What else was said
    within the hour comes after both.
    """
    assert talk("Who sails?") == [4, 3, 2]


def test_a_speaker_who_is_named_is_preferred(talk):
    """Two speakers mention Tahoe; the messages of the speaker in the query come first."""
    assert talk("What did Sam say about Tahoe?")[0] == 5
    assert talk("What did Ann say about Tahoe?")[0] == 2


def test_a_part_of_a_word_is_found_as_a_last_resort(talk):
    """If no word matches, a search looks for the whole query anywhere in the text, as MemGPT does."""
    assert talk("oth") == [4, 6]


def test_days_are_inclusive_and_in_the_zone_of_the_agent(talk):
    """A search covers one day or several, before, after, or both; the days are inclusive."""
    assert talk("lake", start="2023-05-10", end="2023-05-10") == [5]
    assert talk("lake", end="2023-05-09")[0] == 2
    assert 5 not in talk("lake", end="2023-05-09")
    assert talk("lake", start="2023-05-11") == []


def test_filters_that_cannot_be_are_refused_in_words(talk):
    """An unknown role is refused with the known roles; a malformed day is refused with the format of a day."""
    with pytest.raises(FunctionError, match="assistant, user"):
        talk("lake", roles=["system"])
    for day in ("now", "2023-02-30", "05/10/2023"):
        with pytest.raises(FunctionError, match="YYYY-MM-DD"):
            talk("lake", start=day)


def test_only_the_nearest_meanings_are_results():
    """Of 130 messages without the word only the nearest 100 are results, so that totals stay meaningful."""
    life = [("", f"number {number}", 90_000) for number in range(130)]
    with Projections() as engine:
        engine.add(lived(life)[0])
        came = searched(engine, HEAD, "zebra", meanings={number: number / 200 for number in range(2, 132)})
    assert [seq for seq, _ in came] == list(range(131, 31, -1))


def test_a_list_does_not_end_early():
    """If few messages have the words, messages of the same sessions fill the list up to 50; if the talk has no word of
    the query, nothing is found.
    """
    life = [("", "boat" if number == 30 else f"number {number}", 60) for number in range(80)]
    with Projections() as engine:
        engine.add(lived(life)[0])
        came = [seq for seq, _ in searched(engine, HEAD, "boat")]
        assert (came[0], len(came)) == (32, 50)
        assert searched(engine, HEAD, "zebra") == []


def test_speaker_names_are_left_out_of_the_embedded_query(talk):
    """The topic of a question is embedded without names; a question of names alone is embedded unchanged."""
    with Projections() as engine:
        engine.add(lived(TALK)[0])
        search = RecallSearch(engine, "sam", HEAD)
        assert search.without_names("Where was Ann's brother, Sam?") == "Where was brother,"
        assert search.without_names("Ann?") == "Ann?"
        assert RecallSearch(engine, "sam", 2).without_names("Sam and Ann") == "Sam and"
