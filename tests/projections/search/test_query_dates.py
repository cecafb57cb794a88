"""The days that a query names are found in several languages, and add to a score without leaving anything out."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import strategies as st

from everlog.events.times import MICROSECONDS, moment, since_epoch
from everlog.projections.search.query_dates import QUERY_CHARS_MAX, SLACK_DAYS, SPANS_MAX, closeness, query_spans
from tests.support.law import law

NOW = datetime(2023, 10, 25, 12, tzinfo=UTC)
"""A Wednesday."""

TABLE = (
    ("What did I do on 3 May?", "2023-05-03", "2023-05-04", "day"),
    ("What happened on May 3rd, 2022?", "2022-05-03", "2022-05-04", "day"),
    ("What did Ann say on December 30?", "2022-12-30", "2022-12-31", "day"),
    ("the 21st of March 2020", "2020-03-21", "2020-03-22", "day"),
    ("on 29 February", "2020-02-29", "2020-03-01", "day"),
    ("2023-05-03", "2023-05-03", "2023-05-04", "day"),
    ("2023/05", "2023-05-01", "2023-06-01", "month"),
    ("13.05.2023", "2023-05-13", "2023-05-14", "day"),
    ("5/13/2023", "2023-05-13", "2023-05-14", "day"),
    ("plans of May 2023", "2023-05-01", "2023-06-01", "month"),
    ("in March", "2023-03-01", "2023-04-01", "month"),
    ("What did we do in November?", "2022-11-01", "2022-12-01", "month"),
    ("last May", "2023-05-01", "2023-06-01", "month"),
    ("in summer 2022", "2022-06-01", "2022-09-01", "season"),
    ("last winter", "2022-12-01", "2023-03-01", "season"),
    ("in 2019", "2019-01-01", "2020-01-01", "year"),
    ("last year", "2022-01-01", "2023-01-01", "year"),
    ("yesterday", "2023-10-24", "2023-10-25", "day"),
    ("the day before yesterday", "2023-10-23", "2023-10-24", "day"),
    ("last week", "2023-10-16", "2023-10-23", "week"),
    ("last weekend", "2023-10-21", "2023-10-23", "weekend"),
    ("last Friday", "2023-10-20", "2023-10-21", "day"),
    ("What did I buy on Wednesday?", "2023-10-18", "2023-10-19", "day"),
    ("two weeks ago", "2023-10-09", "2023-10-16", "week"),
    ("ten months ago", "2022-12-01", "2023-01-01", "month"),
    ("a few months ago", "2023-05-01", "2023-09-01", "season"),
    ("the past three weeks", "2023-10-04", "2023-10-26", "month"),
    ("between 3 May and 9 May 2023", "2023-05-03", "2023-05-10", "day"),
    ("from May to July 2023", "2023-05-01", "2023-08-01", "month"),
    ("What did she get for Christmas?", "2022-12-25", "2022-12-26", "day"),
    ("5月3日", "2023-05-03", "2023-05-04", "day"),
    ("２０２２年５月", "2022-05-01", "2022-06-01", "month"),
    ("我昨天去了哪里", "2023-10-24", "2023-10-25", "day"),
    ("上周", "2023-10-16", "2023-10-23", "week"),
    ("上周五", "2023-10-20", "2023-10-21", "day"),
    ("上个月", "2023-09-01", "2023-10-01", "month"),
    ("去年夏天我去了哪里", "2022-06-01", "2022-09-01", "season"),
    ("三年前", "2020-01-01", "2021-01-01", "year"),
    ("十二月二十五号", "2022-12-25", "2022-12-26", "day"),
    ("先週の金曜日", "2023-10-20", "2023-10-21", "day"),
    ("一昨日", "2023-10-23", "2023-10-24", "day"),
    ("지난주 금요일", "2023-10-20", "2023-10-21", "day"),
    ("어제 뭐 했어?", "2023-10-24", "2023-10-25", "day"),
    ("el 3 de mayo", "2023-05-03", "2023-05-04", "day"),
    ("en mayo de 2022", "2022-05-01", "2022-06-01", "month"),
    ("la semana pasada", "2023-10-16", "2023-10-23", "week"),
    ("hace tres días", "2023-10-22", "2023-10-23", "day"),
    ("¿Qué hice ayer?", "2023-10-24", "2023-10-25", "day"),
    ("le 3 mai 2023", "2023-05-03", "2023-05-04", "day"),
    ("la semaine dernière", "2023-10-16", "2023-10-23", "week"),
    ("il y a 3 jours", "2023-10-22", "2023-10-23", "day"),
    ("am 3. Mai 2022", "2022-05-03", "2022-05-04", "day"),
    ("letzten Freitag", "2023-10-20", "2023-10-21", "day"),
    ("vor zwei Wochen", "2023-10-09", "2023-10-16", "week"),
    ("il 3 maggio 2023", "2023-05-03", "2023-05-04", "day"),
    ("due settimane fa", "2023-10-09", "2023-10-16", "week"),
    ("3 de maio de 2023", "2023-05-03", "2023-05-04", "day"),
    ("semana passada", "2023-10-16", "2023-10-23", "week"),
    ("vorige maand", "2023-09-01", "2023-10-01", "month"),
    ("прошлым летом", "2023-06-01", "2023-09-01", "season"),
    ("3 мая 2022", "2022-05-03", "2022-05-04", "day"),
)


@pytest.mark.parametrize(("query", "begin", "end", "precision"), TABLE)
def test_a_query_names_a_span_of_days(query: str, begin: str, end: str, precision: str) -> None:
    (span,) = query_spans(query, since_epoch(NOW))
    assert (str(moment(span.begin).date()), str(moment(span.end).date()), span.precision) == (begin, end, precision)


@pytest.mark.parametrize(
    "query",
    [
        "You may march a second in the sun", "How many may come?", "what may I do", "the second one",
        "a spring in the bed",
        "fall off", "May is my sister", "March on", "30 February", "24/7", "1/2 cup of milk", "v1.2.3 and 10.0.0.1",
        "What about the last one", "I ate in 5 minutes", "May 5 people come", "99/99/2023", "0000-00-00",
        "call 2023-45-99", "year 99999", "in 12345", "3个苹果", "第三天", "", "what is the name of my dog",
        "9999-12-31",
    ],
)  # fmt: skip
def test_words_that_are_no_dates_name_none(query: str) -> None:
    assert [span for span in query_spans(query, since_epoch(NOW)) if span.precision == "day"] == []
    assert len(query_spans(query, since_epoch(NOW))) <= ("February" in query)


def test_an_ambiguous_date_has_both_readings() -> None:
    spans = query_spans("What did I do on 5/3/2023?", since_epoch(NOW))
    assert [str(moment(span.begin).date()) for span in spans] == ["2023-03-05", "2023-05-03"]


def test_days_are_those_of_the_zone() -> None:
    """At 23:30 UTC on 31 December it is the next year in Tokyo, and yesterday is the last day of the old one."""
    now = since_epoch(datetime(2023, 12, 31, 23, 30, tzinfo=UTC))
    tokyo = ZoneInfo("Asia/Tokyo")
    (span,) = query_spans("yesterday", now, tokyo)
    assert moment(span.begin).astimezone(tokyo) == datetime(2023, 12, 31, tzinfo=tokyo)
    (span,) = query_spans("last year", now, tokyo)
    assert moment(span.begin).astimezone(tokyo).date() == date(2023, 1, 1)
    (span,) = query_spans("last year", now)
    assert moment(span.begin).date() == date(2022, 1, 1)


def test_a_day_on_which_the_clocks_change_has_23_or_25_hours() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    (short,) = query_spans("2023-03-26", since_epoch(NOW), berlin)
    (long,) = query_spans("2023-10-29", since_epoch(NOW), berlin)
    assert (short.end - short.begin, long.end - long.begin) == (23 * 3600 * MICROSECONDS, 25 * 3600 * MICROSECONDS)


@pytest.mark.parametrize(
    ("now", "query", "begin"),
    [
        ("2024-01-01", "last month", "2023-12-01"), ("2024-01-01", "yesterday", "2023-12-31"),
        ("2024-03-01", "yesterday", "2024-02-29"), ("2023-03-01", "yesterday", "2023-02-28"),
        ("2024-01-03", "last week", "2023-12-25"), ("2024-01-15", "last December", "2023-12-01"),
        ("2024-01-15", "last winter", "2022-12-01"), ("2024-03-31", "a month ago", "2024-02-01"),
        ("2024-01-01", "last weekend", "2023-12-30"), ("2023-12-31", "3 January", "2023-01-03"),
    ],
)  # fmt: skip
def test_spans_cross_the_ends_of_months_and_years(now: str, query: str, begin: str) -> None:
    (span,) = query_spans(query, since_epoch(datetime.fromisoformat(f"{now}T12:00:00+00:00")))
    assert str(moment(span.begin).date()) == begin


def test_the_score_falls_with_the_distance_from_the_span() -> None:
    (span,) = query_spans("on 3 May", since_epoch(NOW))
    days = [-2, -0.5, 0, 0.5, 1, 3, 7, 9]
    times = np.array([span.begin + int(day * 24 * 3600 * MICROSECONDS) for day in days])
    near = closeness([span], times)
    assert near[2] == near[3] == 1
    assert near[0] == near[-1] == 0
    assert 0 < near[1] < 1
    assert 1 > near[4] > near[5] > near[6] > 0
    assert closeness([], times).tolist() == [0] * len(days)


MOMENTS = st.integers(since_epoch(datetime(1900, 1, 1, tzinfo=UTC)), since_epoch(datetime(2200, 1, 1, tzinfo=UTC)))


@law(st.text(max_size=60), MOMENTS, few=100, many=10_000)
def test_any_query_has_spans_in_order_and_within_limits(query, now):
    spans = query_spans(query, now)
    assert len(spans) <= SPANS_MAX
    assert all(span.begin < span.end and span.precision in SLACK_DAYS for span in spans)
    assert query_spans(query, now) == spans


WORDS_TEXT = """
last next this the of in on ago 3 31 2023 May February Friday week weekend month year days summer a few from
to and - / 2023-02-30 去年 3月 31日 上周 前 hace semanas pasada vor Tagen 9999 1000 years
"""
WORDS = st.sampled_from(WORDS_TEXT.split())


@law(st.lists(WORDS, max_size=12).map(" ".join), st.dates(), few=300, many=20_000)
def test_words_of_dates_in_any_order_never_fail(query, today):
    now = since_epoch(datetime(today.year, today.month, today.day, tzinfo=UTC))
    assert all(span.begin < span.end for span in query_spans(query, now))


def test_a_long_query_is_read_to_a_limit() -> None:
    assert query_spans("x " * QUERY_CHARS_MAX + "yesterday", since_epoch(NOW)) == ()
    assert len(query_spans("2023-05-03 " * 1_000, since_epoch(NOW))) == SPANS_MAX
