"""The offline model quotes what answers: the best hits, in their best passage, with the dates that they mean."""

import pytest

from everlog.actors.models.offline.passages import PASSAGE_CHARS_MAX, passage
from everlog.actors.models.offline.told_dates import DATES_MAX, dates_told
from tests.support.models.offline_requests import REQUESTED, beat, called, calls, found, request, result, said, user

STAMP = "timestamp: 2023-05-08 01:56:00 PM UTC+0000"
FILLER = " ".join(f"This is sentence number {number} about nothing at all." for number in range(30))


def answered(question: str, *hits: str) -> str:
    """Return the answer to a question after a search with these hits."""
    search = called("conversation_search", query=question, request_heartbeat=True)
    lines = [f"{STAMP}, {hit}" for hit in hits]
    return said(request(user(question), search, result(found(*lines)), beat(REQUESTED)))


def test_the_best_hit_comes_first_and_not_the_first_hit() -> None:
    """A hit with the rare words of the question is quoted before the first hit of the search."""
    answer = answered(
        "Where does Ann keep the sextant of her uncle?",
        "Bob - Ann, hello! How are you?",
        "Bob - Ann, do you like the sea?",
        "Ann - I keep the sextant in the attic, my uncle left it to me.",
    )
    assert answer.startswith('On 2023-05-08 Ann said: "I keep the sextant in the attic')


def test_a_question_that_asks_when_prefers_a_hit_that_tells_a_time() -> None:
    """Among hits about the same thing the one with a time comes first, and its date is told."""
    answer = answered(
        "When did Ann sell the boat?",
        "Ann - I am glad that I could sell the boat.",
        "Ann - I could sell the boat last month.",
    )
    assert answer.startswith('On 2023-05-08 Ann said: "I could sell the boat last month." (last month: April 2023)')


def test_pieces_of_a_list_are_quoted_together() -> None:
    """Several hits that answer about equally well are quoted, at most three."""
    pieces = [f"Ann - I visited the harbour of {town}." for town in ("Bergen", "Oslo", "Moss", "Bodo")]
    answer = answered("Which harbour has Ann visited?", *pieces)
    assert answer.count("Ann said") == 3


def test_the_users_own_words_come_before_the_long_reply() -> None:
    """A short statement of the user is quoted before the assistant's long reply about the same words."""
    answer = answered(
        "How much did I pay for the rain barrel?",
        f"assistant - A rain barrel is a good thing to pay for. {FILLER}",
        "user - I did pay 88 euros for the rain barrel.",
    )
    assert answer.startswith('On 2023-05-08 you said: "I did pay 88 euros')


def test_the_assistants_advice_is_quoted_if_it_is_asked_for() -> None:
    """Advice is quoted from the assistant's own reply, in the passage with the words of the question."""
    answer = answered(
        "What did you recommend against moles in the lawn?",
        f"assistant - {FILLER} Against moles in the lawn I recommend garlic. {FILLER}",
        "user - There are moles in the lawn. Ideas?",
    )
    assert 'I said: "' in answer and "I recommend garlic" in answer.split('" ')[0]


def test_a_day_without_an_answer_leads_to_a_search_by_words() -> None:
    """If nothing of a named day answers, the question without the day is searched."""
    asked = user("What did Ann paint on 2023-05-08?")
    search = called("conversation_search_date", start_date="2023-05-08", end_date="2023-05-08")
    for page in ("No results found.", found(f"{STAMP}, Bob - It rained.")):
        ((name, arguments),) = calls(request(asked, search, result(page), beat(REQUESTED)))
        assert (name, arguments["query"]) == ("conversation_search", "What did Ann paint on")


def test_a_long_text_is_quoted_in_its_best_passage() -> None:
    """The passage has the words of the question, whole sentences, and marks where something is left out."""
    found_in = passage(f"{FILLER} The sextant is in the attic. {FILLER}", {"sextant": 2.0, "attic": 1.0})
    assert "The sextant is in the attic." in found_in and len(found_in) <= PASSAGE_CHARS_MAX + 8
    assert found_in.startswith("... This is") and found_in.endswith("attic. ...")


@pytest.mark.parametrize("text", ["short", "x" * 1000, ". " * 500, "", "a\n\nb"])
def test_any_text_has_a_passage(text: str) -> None:
    """Every text has a passage of a bounded length, also one without sentences."""
    assert len(passage(text, {"x": 1.0})) <= PASSAGE_CHARS_MAX + 8


@pytest.mark.parametrize(("text", "meant"), [
    ("I went there yesterday", "yesterday: 7 May 2023"),
    ("it happened last month", "last month: April 2023"),
    ("we leave next month", "next month: June 2023"),
    ("I moved last year", "last year: 2022"),
    ("last Friday I ran", "last friday: 5 May 2023"),
    ("last Monday I ran", "last monday: 1 May 2023"),
    ("next Monday I run", "next monday: 15 May 2023"),
    ("two weeks ago", "two weeks ago: the week of 24 April 2023"),
    ("I quit six months ago", "six months ago: November 2022"),
    ("10 years ago", "10 years ago: 2013"),
    ("last weekend", "last weekend: the weekend of 6 May 2023"),
    ("the day before yesterday", "the day before yesterday: 6 May 2023"),
])  # fmt: skip
def test_relative_dates_count_from_the_day_on_which_they_were_said(text: str, meant: str) -> None:
    """A relative date is resolved against the message's own day, a Monday, 8 May 2023."""
    assert dates_told(text, "2023-05-08") == [meant]


def test_dates_that_cannot_be_are_not_told() -> None:
    """Dates before the calendar, of no day, or beyond the limit are left out, and none raises an error."""
    assert dates_told("99 years ago", "0050-01-01") == []
    assert dates_told("yesterday", "0001-01-01") == []
    assert dates_told("last month", "someday") == []
    assert len(dates_told("yesterday, tomorrow, last year, next year", "2023-05-08")) == DATES_MAX
