"""What a word of the command line may be: text in, value out, or what is wrong with it. Imports nothing heavy."""

import argparse
import re

SEQ_MAX = 10**15
"""Largest seq that can be asked for."""
PAGE_MAX = 10**6
"""Last page that can be asked for."""
WINDOW_TOKENS_MAX = 10**8
COUNT_MAX = 10**6
"""Most agents, messages or shards that can be asked for; the store has limits of its own."""


def block(text: str) -> str:
    """LABEL=FILE or LABEL=FILE:LIMIT."""
    label, sign, path = text.partition("=")
    if not (label and sign and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not LABEL=FILE or LABEL=FILE:LIMIT")
    return text


def event_id(text: str) -> str:
    """A UUID of version 7, in lower case."""
    from everlog.events import time_of

    if time_of(text.lower()) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a UUID of version 7 (36 characters)")
    return text.lower()


def _number(text: str, least: int, most: int) -> int:
    """A number in digits. Its length is looked at first: Python converts no endless ones."""
    if not (text.isdecimal() and len(text) <= 20 and least <= int(text) <= most):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from {least} to {most:,}")
    return int(text)


def duration(text: str) -> int:
    """Seconds from 90s, 30m, 1h30m, 2d."""
    found = re.fullmatch(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?", text)
    if found is None or not text:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time as 90s, 30m, 1h30m or 2d")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def heartbeat_seconds(text: str) -> int:
    """Seconds between two heartbeats, from 1."""
    from everlog.actors.ports.agent_constants import TIMER_EVERY_S_MAX

    seconds = duration(text)
    if not 1 <= seconds <= TIMER_EVERY_S_MAX:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time from 1s to {TIMER_EVERY_S_MAX // 86400}d")
    return seconds


def moment(text: str) -> int:
    """Microseconds UTC of an ISO time."""
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
    """A seq, from 1."""
    return _number(text, 1, SEQ_MAX)


def page(text: str) -> int:
    """A page, from 0."""
    return _number(text, 0, PAGE_MAX)


def count(text: str) -> int:
    """How many of something, from 1."""
    return _number(text, 1, COUNT_MAX)


def rows(text: str) -> int:
    """A number of rows; 0 for all."""
    return _number(text, 0, 10**9)


def window(text: str) -> int:
    """Tokens, from 1; what an agent can do with is told when it is set up."""
    return _number(text, 1, WINDOW_TOKENS_MAX)


def whole_number(text: str) -> int:
    """A whole number from 0."""
    return _number(text, 0, 10**15)


def decimal(text: str) -> float:
    """A number, as 0.75."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number, such as 0.75") from None


def name_value(text: str) -> str:
    """NAME=SOMETHING."""
    name, sign, _ = text.partition("=")
    if not (name and sign):
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is not NAME=...")
    return text


def words(text: str) -> str:
    """Text that is not blank."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; leave the option out to keep what was set before")
    return text


def allowed(text: str) -> str:
    """What an agent may reach; not blank."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; leave the option out to allow nothing")
    return text
