"""Facts by rules: what sentences state, what they do not, from when, and what they end."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from everlog.actors.derivation.conclusions import Evidence, Material, own
from everlog.actors.derivation.fact_rules import matches
from everlog.actors.derivation.rule_facts import RULES, RuleFacts
from everlog.events import DerivedEvent, EntityNamed, FactEnded, FactNoted
from everlog.events.times import moment, since_epoch

WEDNESDAY = since_epoch(datetime(2023, 5, 10, 12, tzinfo=UTC))
DAY = 86_400_000_000


def said(*texts: str, name: str = "", role: str = "user", at: int = WEDNESDAY) -> list[Evidence]:
    """Return messages of one speaker, a day after each other."""
    return [Evidence(number + 1, at + number * DAY, role, name, text) for number, text in enumerate(texts)]


def derived(evidence: Sequence[Evidence], **material: object) -> Sequence[DerivedEvent]:
    """Return what the rules conclude."""
    known: dict[str, object] = {"agent_id": "sam", "generation": 1, "now": 0, **material}
    return asyncio.run(RuleFacts().derive(Material(evidence=evidence, **known))).events  # type: ignore[arg-type]


def facts(*texts: str, **speaker: str) -> list[tuple[str, str, str]]:
    """Return subject, predicate and object of the facts that a speaker's sentences state."""
    events = derived(said(*texts, **speaker))  # type: ignore[arg-type]
    return [(one.subject, one.predicate, one.object) for one in events if isinstance(one, FactNoted)]


STATED = {
    "I live in Hamburg.": [("Ann", "lives_in", "Hamburg")],
    "I'm living in New York now, and I work at Siemens as an engineer.": [
        ("Ann", "lives_in", "New York"), ("Ann", "works_at", "Siemens"), ("Ann", "works_as", "engineer"),
    ],
    "I live in Bonn and work at Siemens.": [("Ann", "lives_in", "Bonn"), ("Ann", "works_at", "Siemens")],
    "I work as a nurse at St. Mary's Hospital.": [
        ("Ann", "works_as", "nurse"), ("Ann", "works_at", "St. Mary's Hospital"),
    ],
    "Hey! By the way, I moved to Lisbon with my dog.": [("Ann", "lives_in", "Lisbon")],
    "My sister is called Lea. My sister lives in Bonn.": [("Ann", "has_sister", "Lea"), ("Lea", "lives_in", "Bonn")],
    "My sister Lea lives in Bonn.": [("Ann", "has_sister", "Lea"), ("Lea", "lives_in", "Bonn")],
    "My wife works at the hospital.": [("Ann's wife", "works_at", "hospital")],
    "Lea is my sister.": [("Ann", "has_sister", "Lea")],
    "Tom is Lea's younger brother.": [("Lea", "has_brother", "Tom")],
    "My boss's name is Anna.": [("Ann", "has_boss", "Anna")],
    "Lea is a nurse and Tom works for Bosch.": [("Lea", "works_as", "nurse"), ("Tom", "works_at", "Bosch")],
    "I love jazz and blues, but I hate Mondays.": [
        ("Ann", "loves", "jazz"), ("Ann", "loves", "blues"), ("Ann", "hates", "Mondays"),
    ],
    "I really enjoy hiking in the mountains.": [("Ann", "likes", "hiking in the mountains")],
    "My favorite colour is dark green.": [("Ann", "favourite_colour", "dark green")],
    'My favourite book is "Dune".': [("Ann", "favourite_book", "Dune")],
    "I have a dog named Rex.": [("Ann", "has_dog", "Rex")],
    "I've got two cats and a car.": [("Ann", "has", "two cats"), ("Ann", "has", "car")],
    "I was born in Kiel.": [("Ann", "born_in", "Kiel")],
    "I was born on 3 May 1990.": [("Ann", "born_on", "3 May 1990")],
    "I am married to Tom.": [("Ann", "is_married_to", "Tom")],
    "I'm 34 years old and I'm vegan.": [("Ann", "age", "34"), ("Ann", "is_a", "vegan")],
    "I'm allergic to nuts.": [("Ann", "is_allergic_to", "nuts")],
    "I speak German and French.": [("Ann", "speaks", "German"), ("Ann", "speaks", "French")],
    "I play the piano. I study physics at MIT.": [("Ann", "plays", "piano"), ("Ann", "studies", "physics")],
    "I am from Chile, and I drive a red Volvo.": [("Ann", "is_from", "Chile"), ("Ann", "drives", "red Volvo")],
    "I moved to Bonn when I was twelve.": [("Ann", "lives_in", "Bonn")],
    "I work at Bosch, which is fine.": [("Ann", "works_at", "Bosch")],
    "Please remember that I work for ASR1603.": [("Ann", "works_at", "ASR1603")],
}  # fmt: skip
"""Sentences of Ann, and the facts in them."""


@pytest.mark.parametrize("text", STATED)
def test_a_sentence_states_these_facts(text: str) -> None:
    """Subject, predicate and object are read as written: names and numbers are kept, "I" is the speaker."""
    assert facts(text, name="Ann") == STATED[text]


NOTHING = (
    "Do I live in Paris?",
    "Where do you live",
    "If I lived in Paris, I would be happy.",
    "I might move to Paris. Maybe I live in Paris.",
    "I'd love to live in Paris. I'll move to Paris.",
    "I want to work at Siemens and I hope to live in Bonn.",
    "I don't live in Paris. I have never worked at Siemens.",
    'He said: "I live in Berlin. I work at Bosch."',
    "Tom told me that I live in a dream.",
    "> I live in Berlin.",
    "```\nI live in Berlin.\n```",
    "Live in Berlin! Move to Paris. Work at Siemens.",
    "Call me later. Call me tomorrow.",
    "I live in fear. I live in a small flat. We live in Rome.",
    "I love it! I love you. I love how it works. I love the view. I love that my dog is here.",
    "The Smiths have a dog named Rex. Unconditional love is rare.",
    "I am moving to Oslo.",
    "I work from home. I work at night.",
    "I am 5 minutes late. I have a headache.",
    "She lives in Rome. It is a dog. This is my home.",
    "Monday is my day. Yes is my answer.",
    "I am back. I was in Paris. I live.",
    "Paris, that is France.",
    "I hate people who lie. I love stories that tackle issues. I like days when it rains.",
    "I love places where it snows.",
)


@pytest.mark.parametrize("text", NOTHING)
def test_these_sentences_state_no_fact(text: str) -> None:
    """Questions, hypotheses, wishes, denials, quotations, commands and pronouns note nothing."""
    assert not derived(said(text, name="Ann"))


def test_what_an_assistant_without_a_name_says_is_no_source() -> None:
    """It repeats what it found, or speaks of itself. A named one is a person of an imported talk."""
    words = ("I live in the Cloud. I live in Berlin. You live in Hamburg. Lea lives in Rome.",)
    assert not derived(said(*words, role="assistant"))
    assert facts("I live in Berlin.", role="assistant", name="Bo") == [("Bo", "lives_in", "Berlin")]


def test_i_and_you_are_the_speaker_and_the_other_one() -> None:
    """By name where there is one, else by role; `you` is who spoke before."""
    talk = [
        Evidence(1, WEDNESDAY, "user", "Ann", "Hi Bo!"),
        Evidence(2, WEDNESDAY, "assistant", "Bo", "Hi. You live in Rome, I live in Bonn."),
        Evidence(3, WEDNESDAY, "user", "Ann", "Your sister is called Eve."),
    ]
    assert [(one.subject, one.predicate, one.object) for one in derived(talk) if isinstance(one, FactNoted)] == [
        ("Ann", "lives_in", "Rome"), ("Bo", "lives_in", "Bonn"), ("Bo", "has_sister", "Eve"),
    ]  # fmt: skip
    assert facts("I live in Rome.") == [("user", "lives_in", "Rome")]


SINCE = {
    "I moved to Bonn yesterday.": ("2023-05-09", "day"),
    "I moved to Bonn last month.": ("2023-04-01", "month"),
    "I live in Bonn since March.": ("2023-03-01", "month"),
    "In 2021 I moved to Bonn.": ("2021-01-01", "year"),
    "On 3 May 2020 I moved to Bonn.": ("2020-05-03", "day"),
    "I moved to Bonn last Friday.": ("2023-05-05", "day"),
    "I have lived in Bonn for three years.": ("2020-01-01", "year"),
    "I moved to Bonn last week.": ("2023-05-01", "month"),
    "I am moving to Bonn next month.": ("2023-06-01", "month"),
    "I live in Bonn.": (None, "unknown"),
}
"""Sentences of Wednesday, 10 May 2023, and from when they hold."""


@pytest.mark.parametrize("text", SINCE)
def test_a_relative_date_counts_from_the_day_of_the_message(text: str) -> None:
    """The time is the first of the day, month or year that contains the named time; unknown if none is named."""
    (fact,) = derived(said(text))
    assert isinstance(fact, FactNoted) and fact.object == "Bonn"
    day = None if fact.valid_from is None else datetime.fromtimestamp(fact.valid_from / 1e6, UTC).date().isoformat()
    assert (day, fact.from_precision) == SINCE[text]


def test_a_day_begins_in_the_zone_of_the_agent() -> None:
    """Yesterday in Tokyo begins nine hours earlier."""
    (fact,) = derived(said("I moved to Bonn yesterday."), zone="Asia/Tokyo")
    assert isinstance(fact, FactNoted) and fact.valid_from == since_epoch(datetime(2023, 5, 8, 15, tzinfo=UTC))


def ends(*texts: str) -> list[tuple[int, int]]:
    """Return the place of each ended fact among the events, and of its successor (0: none)."""
    return [(-1 - e.fact, e.successor and -1 - e.successor) for e in derived(said(*texts)) if isinstance(e, FactEnded)]


def test_a_change_of_a_single_valued_fact_ends_the_old_one_at_the_same_time() -> None:
    """Old and new fact, and the end that names both, are in the order of their dependence; the times meet."""
    old, new, end = derived(said("I live in Berlin.", "I moved to Hamburg yesterday."))
    assert isinstance(old, FactNoted) and isinstance(new, FactNoted) and isinstance(end, FactEnded)
    assert (end.fact, end.successor, end.sources) == (own(0), own(1), [2])
    assert new.valid_from == end.valid_to == since_epoch(datetime(2023, 5, 10, tzinfo=UTC))


def test_a_change_without_a_date_holds_from_the_message() -> None:
    """The old fact is known to have ended by then."""
    _, new, end = derived(said("I live in Berlin.", "I live in Hamburg."))
    assert isinstance(new, FactNoted) and isinstance(end, FactEnded)
    assert new.valid_from == end.valid_to == WEDNESDAY + DAY and end.to_precision == "moment"


def test_only_the_same_subject_and_predicate_is_ended() -> None:
    """Another person's home, and another thing that a person likes, stay."""
    assert not ends("I live in Berlin.", "Lea lives in Bonn.", "I like tea.", "I like coffee.", "I work at Bosch.")


def test_an_older_fact_is_noted_as_ended_and_ends_nothing() -> None:
    """It held until the one that holds now began."""
    new, old = derived(said("I moved to Hamburg in 2021.", "I moved to Berlin in 2015."))
    assert isinstance(new, FactNoted) and isinstance(old, FactNoted)
    assert (old.object, old.valid_to, old.to_precision) == ("Berlin", new.valid_from, "year") and new.valid_to is None


ENDED = {
    ("I live in Berlin.", "I no longer live in Berlin."): 1,
    ("I live in Berlin.", "I don't live in Berlin anymore."): 1,
    ("I live in Berlin.", "I moved out of Berlin."): 1,
    ("I live in Berlin.", "I no longer live in Rome."): 0,
    ("I live in Berlin.", "I left Berlin this morning."): 0,
    ("I work at Siemens as an engineer.", "Yesterday I quit my job!"): 2,
    ("I work at Siemens.", "I left Siemens."): 1,
    ("I work at Siemens.", "I got fired."): 1,
    ("I work at Siemens.", "I quit Bosch."): 0,
    ("I am married to Tom.", "I got divorced last year."): 1,
    ("I am dating Tom.", "I broke up with Tom."): 1,
    ("I am dating Tom.", "I broke up with Bob."): 0,
    ("I like tea.", "I no longer like tea."): 1,
    ("I like tea.", "I don't like coffee."): 0,
    ("I play the piano.", "I stopped playing the piano."): 1,
    ("I am vegan.", "I'm no longer vegan."): 1,
    ("I live in Vienna.", "I used to live in Vienna."): 1,
    ("I like ASR1603.", "I no longer like ASR1605."): 0,
}


@pytest.mark.parametrize("texts", ENDED)
def test_an_explicit_end_ends_what_it_names_without_a_successor(texts: tuple[str, str]) -> None:
    """Only the named fact ends, and nothing takes its place."""
    assert [successor for _, successor in ends(*texts)] == [0] * ENDED[texts]


def test_what_held_once_is_noted_together_with_its_end() -> None:
    """The words "used to" say that it is over, not since when."""
    fact, end = derived(said("I used to live in Vienna."))
    assert isinstance(fact, FactNoted) and isinstance(end, FactEnded)
    assert (end.fact, end.valid_to, fact.valid_from) == (own(0), None, None)


REPEATED = (
    ("I live in Berlin.", "I live in Berlin!", "I'm living in berlin.", "I have lived in Berlin since 2019."),
    ("I love jazz.", "I love jazz and blues.", "I love blues."),
    ("I used to live in Vienna.", "I used to live in Vienna."),
    ("I moved to Hamburg in 2021.", "I moved to Berlin in 2015.", "I moved to Berlin in 2015."),
    ("My name is Lea Maier, call me Lea.", "My name is Lea Maier.", "You can call me Lea."),
)


@pytest.mark.parametrize("texts", REPEATED)
def test_a_fact_that_is_said_again_is_not_noted_again(texts: tuple[str, ...]) -> None:
    """Each fact and each name is noted once, however often it is said."""
    events = derived(said(*texts))
    told = [(e.subject, e.predicate, e.object) for e in events if isinstance(e, FactNoted)]
    named = [(e.alias, e.entity) for e in events if isinstance(e, EntityNamed)]
    assert len(set(told)) == len(told) and len(set(named)) == len(named)
    assert len(events) == len(derived(said(*texts[: len(texts) - 1])))


def test_a_fact_that_holds_again_after_its_end_is_noted_again() -> None:
    """Berlin, Rome, Berlin: three facts, two ends."""
    texts = ("I live in Berlin.", "I moved to Rome.", "I moved to Berlin.")
    assert [o for _, _, o in facts(*texts)] == ["Berlin", "Rome", "Berlin"] and len(ends(*texts)) == 2


NAMED = {
    "My name is Chad.": [("user", "Chad")],
    "My name is Lea Maier, call me Lea.": [("user", "Lea Maier"), ("Lea", "Lea Maier")],
    "Lea, that is Lea Maier, is here.": [("Lea", "Lea Maier")],
    "Liz is short for Elizabeth.": [("Liz", "Elizabeth")],
    "I met Lea. I met Lea Maier. I like ASR1603. I like ASR1605.": [],
    "Paris, that is France.": [],
}


@pytest.mark.parametrize("text", NAMED)
def test_names_are_merged_only_where_a_message_says_so(text: str) -> None:
    """Names that look alike are different entities until a message says that they are one."""
    assert [(e.alias, e.entity) for e in derived(said(text)) if isinstance(e, EntityNamed)] == NAMED[text]


def test_facts_of_a_merged_name_are_those_of_one_entity() -> None:
    """A change under the full name ends the fact under the short one."""
    events = derived(said("Lea lives in Bonn.", "Lea, that is Lea Maier.", "Lea Maier lives in Rome."))
    assert [e.kind for e in events] == ["fact_noted", "entity_named", "fact_noted", "fact_ended"]


def test_known_facts_and_names_of_earlier_derivations_count() -> None:
    """A derivation continues where the last one stopped: noted facts are not repeated, and can be ended."""
    row = {
        "seq": 7, "subject": "Ann", "predicate": "lives_in", "object": "Berlin", "believed": True, "valid_from": None,
        "from_precision": "unknown", "valid_to": None, "said_at": WEDNESDAY - DAY,
    }  # fmt: skip
    told = said("I live in Berlin.", name="A.")
    assert not derived(told, facts=[row], names={"A.": "Ann"})
    noted, end = derived(said("I live in Rome.", name="Ann"), facts=[row])
    assert isinstance(end, FactEnded) and (end.fact, end.successor, noted.sources) == (7, own(0), [1])


def test_every_event_names_the_rules_its_generation_and_its_message() -> None:
    """Nothing derived is without its reason."""
    events = derived(said("My name is Eve. I live in Rome.", "I moved to Bonn."), generation=3)
    assert {(e.deriver, e.generation) for e in events} == {(RULES, 3)}
    assert [e.sources for e in events] == [[1], [1], [1], [2], [2]]


@pytest.mark.parametrize(
    "text", ["I love " + "very " * 5000 + "much", "a, " * 5000, '"' * 9999, "I work at " * 1000, "(" * 9999]
)
def test_hostile_text_notes_nothing_and_ends(text: str) -> None:
    """No pattern tries more ways than the text is long."""
    assert not derived(said(text)) and not matches(text[:300], denied=False)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("I moved to Rome on 1 March.", "2023-03-01"),
        ("I moved to Rome in December.", "2022-12-01"),
        ("I moved to Rome on 1 December 2022.", "2022-12-01"),
        ("I moved to Rome on 20 December.", "2022-12-20"),
    ],
)
def test_a_date_without_a_year_is_the_last_one(text: str, begins: str) -> None:
    """A day or month without a year, in a statement of May, is in the months before and not in those to come."""
    found = [event for event in derived(said(text)) if isinstance(event, FactNoted)]
    assert [moment(event.valid_from or 0).date().isoformat() for event in found] == [begins]
