"""Parse the moments of --as-of, --since and --until: a seq, a time, or a length of time before now.

Used by the commands that take these options.
"""

import re
from argparse import ArgumentTypeError, Namespace
from datetime import datetime

from everlog.events import BadInput
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common import argument_values, time_text
from everlog.interfaces.common.front_end import CommandEnvironment

SEQ_DIGITS_MAX = 20
"""Largest number of digits of a seq: longer numbers are cut before int(), which raises ValueError for thousands of
digits.
"""
_AGO = re.compile(r"-?((?:\d+[smhd])+)(?: ago)?")


def moment_of_option(given: str | None, world: CommandEnvironment) -> int | datetime | None:
    """Return the seq or the time that --as-of names; None if it was not given. "2h" and "2h ago" are two hours before
    now.

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
            f"{given!r} is not a moment. Give a seq (from 1 to the head), a time such as 2024-01-31T12:00 (UTC), "
            "or a length of time before now such as 2h or 1d12h."
        ) from error


def time_of_option(args: Namespace, world: CommandEnvironment) -> int | None:
    """Return the time of --as-of for a command that reads many agents, as `time_of` does."""
    return time_of(args.as_of, "--as-of", world)


def time_of(given: str | None, option: str, world: CommandEnvironment) -> int | None:
    """Return the time that an option of a command for many agents names, microseconds UTC; None if it was not given.

    Raises BadInput for a seq, because each agent has seqs of its own.
    """
    when = moment_of_option(given, world)
    if isinstance(when, int):
        raise BadInput(
            f"{option} {when} is a seq, and each agent has seqs of its own. "
            "Give a time, such as 2024-01-31T12:00 or 2h."
        )
    return None if when is None else time_text.since_epoch(when)
