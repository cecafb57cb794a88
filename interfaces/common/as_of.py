"""The moments of --as-of: a seq, a time, or how long ago."""

import re
from argparse import ArgumentTypeError, Namespace
from datetime import datetime

from everlog.events import BadInput
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common import argument_values, time_text
from everlog.interfaces.common.front_end import CommandEnvironment

SEQ_DIGITS_MAX = 20
"""Digits of the longest number that is looked at as a seq."""
_AGO = re.compile(r"-?((?:\d+[smhd])+)(?: ago)?")


def moment_of_option(given: str | None, world: CommandEnvironment) -> int | datetime | None:
    """The moment that --as-of names: a seq, or a time; "2h" and "2h ago" are that long before now.

    Raises BadInput for anything else.
    """
    if given is None:
        return None
    if re.fullmatch(r"[+-]?\d+", given):
        return int(given[: SEQ_DIGITS_MAX + 1])
    try:
        past = _AGO.fullmatch(given)
        if past is not None:
            return time_text.moment(world.clock.now() - argument_values.duration(past[1]) * MICROSECONDS)
        return time_text.moment(time_text.microseconds(given))
    except (ValueError, OverflowError, ArgumentTypeError) as error:
        raise BadInput(
            f"{given!r} is neither a seq (from 1 to the head) nor a time, as "
            "2024-01-31T12:00, or 2h and 1d12h for one that long ago."
        ) from error


def time_in(args: Namespace, world: CommandEnvironment) -> int | None:
    """The time that --as-of names where many agents are told of, microseconds UTC; None where it is not given.

    Raises BadInput for a seq, which is one agent's own.
    """
    when = moment_of_option(args.as_of, world)
    if isinstance(when, int):
        raise BadInput(f"{when} is a seq, which is one agent's own. Give a time, such as 2024-01-31T12:00 or 2h.")
    return None if when is None else time_text.since_epoch(when)
