"""Parse the values of arguments: text in, value out. Raise argparse.ArgumentTypeError for a value that is not accepted.

Imports nothing heavy: every command loads this module before it does anything else.

Used by the `args_*.py` files of `interfaces/cli`, as types of arguments.
"""

import argparse
import re
from datetime import datetime

SEQ_MAX = 10**15
"""Largest seq that an argument can name."""
PAGE_MAX = 10**6
"""Largest page number that an argument can name; people count pages from 1."""
WINDOW_TOKENS_MAX = 10**8
COUNT_MAX = 10**6
"""Largest number of agents or messages that an argument can name; the store has limits of its own."""
SHARDS_MAX = 999
"""Largest number of shards, as `store_constants.py` has it."""
GROUP_RULES = ("round-robin", "supervisor", "dynamic")
"""Rules of groups, as `actors/groups/rules.py` has them."""


def block(text: str) -> str:
    """Return `text` if it has the form LABEL=FILE or LABEL=FILE:LIMIT."""
    label, sign, path = text.partition("=")
    if not (label and sign and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not LABEL=FILE or LABEL=FILE:LIMIT")
    return text


def parameter(text: str) -> tuple[str, str]:
    """Return the name and the value of a text of the form NAME=VALUE."""
    name, sign, value = text.partition("=")
    if not sign or re.fullmatch(r"\w+", name) is None:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not NAME=VALUE, with a name of letters and digits")
    return name, value


def ip_address(text: str) -> str:
    """Return the IP address of a network card. A loopback address and 0.0.0.0 are not accepted."""
    import ipaddress

    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        found = None
    if found is None or found.is_loopback or found.is_unspecified:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not the IP address of this machine in its network, such as 192.168.0.10"
        )
    return str(found)


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


def time_of_zone(text: str) -> datetime:
    """Return an ISO 8601 time from 1970 to 9999, without a zone if the text names none."""
    moment(text)  # as UTC: a time at either end of the range is refused in every zone
    return datetime.fromisoformat(text)


def time_of_day(text: str) -> str:
    """Return a time of the day such as 07:00 as a schedule in the five fields of a crontab."""
    found = re.fullmatch(r"(\d{1,2}):(\d\d)", text)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time of the day from 00:00 to 23:59, such as 07:00")
    return f"{int(found[2])} {int(found[1])} * * *"


def schedule(text: str) -> str:
    """Return a schedule in the five fields of a crontab."""
    from everlog.actors.ports.timer_schedules import check_schedule
    from everlog.events import BadInput

    try:
        check_schedule(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return " ".join(text.split())


def seq(text: str) -> int:
    """Return a seq, from 1."""
    return _number(text, 1, SEQ_MAX)


def seq_ranges(text: str) -> list[tuple[int, int]]:
    """Return the ranges of seqs that `text` lists, as `8,12-14`; both ends are inclusive."""
    ranges = []
    for part in text.split(","):
        first, sign, last = (side.strip() for side in part.partition("-"))
        ranges.append((seq(first), seq(last) if sign else seq(first)))
    return ranges


def page(text: str) -> int:
    """Return a page number, from 1."""
    try:
        return _number(text, 1, PAGE_MAX)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; pages are counted from 1") from None


def count(text: str) -> int:
    """Return a count, from 1."""
    return _number(text, 1, COUNT_MAX)


def shards(text: str) -> int:
    """Return a number of shards that a store can be changed to, from 1."""
    return _number(text, 1, SHARDS_MAX)


def port(text: str) -> int:
    """Return the number of a port; 0 stands for a free one."""
    return _number(text, 0, 65_535)


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


def group_rule(text: str) -> str:
    """Return the name that a group with this rule has as its model."""
    if text not in GROUP_RULES:
        raise argparse.ArgumentTypeError(f"there is no rule {text!r}; there are {', '.join(GROUP_RULES)}")
    return f"group/{text}"
