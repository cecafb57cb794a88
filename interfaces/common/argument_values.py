"""Parse the values of arguments: text in, value out. Raise argparse.ArgumentTypeError for a value that is not accepted.

Imports nothing heavy: every command loads this module before it does anything else.

Used by the `args_*.py` files of `interfaces/cli`, as types of arguments.
"""

import argparse
import re

SEQ_MAX = 10**15
"""Largest seq that an argument can name."""
PAGE_MAX = 10**6
"""Largest page number that an argument can name; people count pages from 1."""
WINDOW_TOKENS_MAX = 10**8
COUNT_MAX = 10**6
"""Largest number of agents, messages or shards that an argument can name; the store has limits of its own."""


def block(text: str) -> str:
    """Return `text` if it has the form LABEL=FILE or LABEL=FILE:LIMIT."""
    label, sign, path = text.partition("=")
    if not (label and sign and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not LABEL=FILE or LABEL=FILE:LIMIT")
    return text


def event_id(text: str) -> str:
    """Return a UUID of version 7 in lower case."""
    from everlog.events import time_of

    if time_of(text.lower()) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a UUID of version 7 (36 characters)")
    return text.lower()


def _number(text: str, least: int, most: int) -> int:
    """Return the number that `text` writes in decimal digits, from `least` to `most`, both inclusive."""
    # The length is checked before int(), which raises ValueError for thousands of digits.
    if not (text.isdecimal() and len(text) <= 20 and least <= int(text) <= most):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from {least} to {most:,}")
    return int(text)


def duration(text: str) -> int:
    """Return the seconds of a length of time such as 90s, 30m, 1h30m or 2d."""
    found = re.fullmatch(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?", text)
    if found is None or not text:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a length of time such as 90s, 30m, 1h30m or 2d")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def heartbeat_seconds(text: str) -> int:
    """Return the seconds between two heartbeats, from 1 to TIMER_EVERY_S_MAX."""
    from everlog.actors.ports.agent_constants import TIMER_EVERY_S_MAX

    seconds = duration(text)
    if not 1 <= seconds <= TIMER_EVERY_S_MAX:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a length of time from 1s to {TIMER_EVERY_S_MAX // 86400}d"
        )
    return seconds


def moment(text: str) -> int:
    """Return an ISO 8601 time, from 1970 to 9999, as microseconds UTC."""
    from everlog.actors.ports.agent_constants import TIMER_AT_MAX
    from everlog.interfaces.common.time_text import microseconds

    try:
        at = microseconds(text)
    except (ValueError, OverflowError):
        at = -1
    if not 0 <= at <= TIMER_AT_MAX:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not an ISO time from 1970 to 9999, such as 2024-01-31T12:00 (UTC)"
        )
    return at


def seq(text: str) -> int:
    """Return a seq, from 1."""
    return _number(text, 1, SEQ_MAX)


def page(text: str) -> int:
    """Return a page number, from 1."""
    try:
        return _number(text, 1, PAGE_MAX)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; pages are counted from 1") from None


def count(text: str) -> int:
    """Return a count, from 1."""
    return _number(text, 1, COUNT_MAX)


def rows(text: str) -> int:
    """Return a number of rows, from 0; 0 stands for all rows."""
    return _number(text, 0, 10**9)


def window(text: str) -> int:
    """Return a number of tokens, from 1. The smallest window that an agent can work with is checked when it is
    set up.
    """
    return _number(text, 1, WINDOW_TOKENS_MAX)


def whole_number(text: str) -> int:
    """Return a whole number, from 0."""
    return _number(text, 0, 10**15)


def decimal(text: str) -> float:
    """Return a number such as 0.75."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number, such as 0.75") from None


def name_value(text: str) -> str:
    """Return `text` if it has the form NAME=SOMETHING."""
    name, sign, _ = text.partition("=")
    if not (name and sign):
        raise argparse.ArgumentTypeError(f"{text[:80]!r} does not have the form NAME=VALUE")
    return text


def words(text: str) -> str:
    """Return `text` if it is not blank."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the value is empty; leave the option out to keep the present value")
    return text


def allowed(text: str) -> str:
    """Return a grant (a folder, a host or a model) if it is not blank."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the value is empty; leave the option out to grant nothing")
    return text
