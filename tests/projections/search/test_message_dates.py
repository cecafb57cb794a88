"""A message tells of days that count from its own time, and they can be told as a person would tell them."""

from datetime import UTC, datetime

import pytest
from hypothesis import strategies as st

from everlog.events.times import since_epoch
from everlog.projections.search.message_dates import DATES_MAX, MESSAGE_CHARS_MAX, message_dates, tells_time
from tests.support.law import law

SAID_AT = since_epoch(datetime(2023, 5, 24, 12, tzinfo=UTC))
"""A Wednesday."""

TABLE = (
    ("I went there last Friday.", "last Friday", "19 May 2023"),
    ("We moved last month", "last month", "April 2023"),
    ("We met two weeks ago", "two weeks ago", "the week of 8 May 2023"),
    ("I'm going to Rome next summer", "next summer", "summer 2023"),
    ("I ran a race last weekend", "last weekend", "the weekend of 20 May 2023"),
    ("Yesterday was great!", "Yesterday", "23 May 2023"),
    ("10 years ago I moved here", "10 years ago", "2013"),
    ("I started in 2016", "2016", "2016"),
    ("I graduated in June", "June", "June 2023"),
    ("We met on Sunday", "Sunday", "21 May 2023"),
    ("We will meet on Sunday", "Sunday", "28 May 2023"),
    ("The concert is in 3 weeks, I'll be there", "in 3 weeks", "the week of 12 June 2023"),
    ("My birthday is on 3 June", "3 June", "3 June 2023"),
    ("On January 2 I was ill", "January 2", "2 January 2023"),
    ("Last night I dreamt", "Last night", "23 May 2023"),
    ("昨天我去了北京", "昨天", "23 May 2023"),
    ("我上个月搬家了", "上个月", "April 2023"),
    ("fui la semana pasada", "semana pasada", "the week of 15 May 2023"),
    ("El viernes pasado fui al médico con mi hermana", "viernes pasado", "19 May 2023"),
    ("Gestern war ich im Kino", "Gestern", "23 May 2023"),
    ("Le mois dernier je suis allé à Paris", "mois dernier", "April 2023"),
)


@pytest.mark.parametrize(("text", "words", "told"), TABLE)
def test_a_message_tells_of_a_day(text: str, words: str, told: str) -> None:
    assert tells_time(text)
    assert [(one.words, one.span.told) for one in message_dates(text, SAID_AT)] == [(words, told)]


@pytest.mark.parametrize(
    "text",
    ["I may come", "Give me a second", "The sun is out", "I lost 5 kg in 3 weeks", "Have a nice day", "I march alone",
     "", "Call 555-1234", "every week we meet", "my week was fine", "(((((", "我有3个苹果"],
)  # fmt: skip
def test_a_message_without_a_date_tells_of_none(text: str) -> None:
    assert message_dates(text, SAID_AT) == ()


@pytest.mark.parametrize(
    ("said", "text", "told"),
    [
        ("2024-01-02", "last month", "December 2023"), ("2024-01-01", "yesterday", "31 December 2023"),
        ("2024-03-01", "yesterday", "29 February 2024"), ("2023-12-31", "tomorrow", "1 January 2024"),
        ("2023-12-20", "next year", "2024"), ("2024-01-02", "last winter", "winter 2022"),
        ("2024-01-02", "on 30 December", "30 December 2023"), ("2023-12-30", "on 2 January", "2 January 2024"),
    ],
)  # fmt: skip
def test_days_count_across_the_ends_of_months_and_years(said: str, text: str, told: str) -> None:
    at = since_epoch(datetime.fromisoformat(f"{said}T12:00:00+00:00"))
    assert [one.span.told for one in message_dates(text, at)] == [told]


MOMENTS = st.integers(since_epoch(datetime(1, 1, 2, tzinfo=UTC)), since_epoch(datetime(9999, 12, 30, tzinfo=UTC)))


@law(st.text(max_size=60), MOMENTS, few=100, many=10_000)
def test_any_message_tells_of_a_bounded_number_of_days(text, said):
    found = message_dates(text, said)
    assert len(found) <= DATES_MAX
    assert all(one.span.begin < one.span.end and one.span.told and one.words for one in found)


def test_a_long_message_is_read_to_a_limit() -> None:
    assert message_dates("x " * MESSAGE_CHARS_MAX + "yesterday", SAID_AT) == ()
    assert len(message_dates("yesterday, " * 5_000, SAID_AT)) == DATES_MAX
