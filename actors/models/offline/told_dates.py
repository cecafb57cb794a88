"""Tell the dates that a message means by "yesterday", "last month" or "two weeks ago". Pure, no state.

Used by `hits.py`. A relative date counts from the day on which it was said, never from today; so a date that a quote
does not say is told beside it.
"""

import re
from datetime import datetime

from everlog.events.times import since_epoch
from everlog.projections.search.message_dates import message_dates

DATES_MAX = 2
"""Maximum dates that are told of one text."""
_WHOLE_DATE = re.compile(r"[12]\d{3}")


def dates_told(text: str, said: str) -> list[str]:
    """Return the relative dates of a text with what they mean, such as "last month: April 2023", at most DATES_MAX.

    `said`: the day on which it was said, as YYYY-MM-DD. A date outside of the calendar is left out, and so is one that
    is said with its year.
    """
    try:
        at = since_epoch(datetime.fromisoformat(f"{said}T12:00:00+00:00"))
    except ValueError:
        return []
    told: dict[str, str] = {}
    for one in message_dates(text, at):
        if not _WHOLE_DATE.search(one.words):
            told.setdefault(" ".join(one.words.lower().split()), one.span.told)
    return [f"{words}: {meant}" for words, meant in told.items()][:DATES_MAX]
