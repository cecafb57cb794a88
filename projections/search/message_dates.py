"""Find the days that a message tells of, "last Friday" counted from the day of the message and not from today.

Used by the ranking, to tell which messages answer "when", and by the offline model, which says the date. Pure: the
message's own time and the agent's time zone are arguments.
"""

import re
import unicodedata
from datetime import UTC, date, tzinfo
from functools import lru_cache
from typing import NamedTuple

from everlog.events.times import moment
from everlog.projections.search.date_grammar import FUTURE, NEAREST, date_words, speaks_of_future
from everlog.projections.search.date_spans import DaySpan
from everlog.projections.search.east_asian_dates import speaks_of_future_there
from everlog.projections.search.query_dates import dates_in
from everlog.store.base.stemming import language_of

MESSAGE_CHARS_MAX = 10_000
"""Characters of a message, from its beginning, in which dates are sought."""
DATES_MAX = 16
"""Maximum number of dates of one message: the first."""
_OTHER = re.compile("[0-9年月日周週星昨今明去来季春夏秋冬前년월일주어오내제]")
_WORD = re.compile(r"\w+")


class MessageDate(NamedTuple):
    """Days that a message tells of."""

    words: str
    """Words of the message, in Unicode's form C."""
    span: DaySpan


def tells_time(text: str) -> bool:
    """Return True if a text may name a date: a quick test, true of every text in which `message_dates` finds one."""
    text = text[:MESSAGE_CHARS_MAX].lower()
    return not date_words().isdisjoint(_WORD.findall(text)) or _OTHER.search(text) is not None


def message_dates(text: str, said_at: int, zone: tzinfo = UTC) -> tuple[MessageDate, ...]:
    """Return the days that a message tells of, in order.

    `said_at`: time of the message, microseconds UTC. A date without a year is the nearest to it, and a weekday without
    more the last before it; both lie after it if the sentence speaks of the future.
    """
    text = text[:MESSAGE_CHARS_MAX]
    if not tells_time(text):
        return ()
    return _dates(text, moment(said_at).astimezone(zone).date().toordinal())


@lru_cache(maxsize=4096)
def _dates(text: str, today_ordinal: int) -> tuple[MessageDate, ...]:
    today = date.fromordinal(today_ordinal)
    text = unicodedata.normalize("NFC", text)
    ahead = speaks_of_future(text, language_of(text)) or speaks_of_future_there(text)
    found = dates_in(text, today, FUTURE if ahead else NEAREST)
    return tuple(MessageDate(text[begin:end], span) for begin, end, span in found[:DATES_MAX])
