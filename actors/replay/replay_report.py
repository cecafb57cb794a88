"""Results of a replay as plain values, for people and for programs. Pure.

Made by `verify.py` and `rebuild_check.py`, and printed by `everlog verify`.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec


class RequestDiff(msgspec.Struct, frozen=True):
    """First part of a request that differs today."""

    part: str
    """Name of the part for people, such as `the memory block 'human'`."""
    also: list[str] = []
    """Names of the other parts that differ."""
    against: str = ""
    """Description of the text that today's text is compared with."""
    lines: list[str] = []
    """Differences line by line: `- ` the text compared with, `+ ` today's text, `  ` a remark."""


class ReplayMismatch(msgspec.Struct, frozen=True):
    """Record that differs from what today's code makes of the log before it."""

    seq: int
    type: str
    turn: int
    what: Literal["request", "reply", "decision"]
    """`request`: the bytes that were sent; `reply`: the events that a reply led to; `decision`: what was done about a
    context that did not fit.
    """
    text: str
    difference: RequestDiff | None = None
    """Difference of a request; None if the mismatch before it differs first in the same part."""

    def __str__(self) -> str:
        return f"seq {self.seq} ({self.type}, turn {self.turn}): {self.text}"


class CallVerdicts(msgspec.Struct):
    """Model calls of an agent: each call's seq is in the list of its verdict."""

    calls: int = 0
    """Number of calls in the log, erased ones included."""
    chosen: int = 0
    """Number of calls selected for checking: all, or a sample."""
    equal: list[int] = []
    mismatch: list[int] = []
    erased: list[int] = []
    """Calls that erased records leave uncertain:
    records that they were made of, records that they left, or they themselves.
    """
    renderer_gone: dict[int, list[int]] = {}
    """Calls by the renderer version that made them, if this everlog has another. These are not checked."""
    reader_gone: dict[int, list[int]] = {}
    """Calls by the reader version that parsed their replies, if this everlog has another.
    Only the request is checked.
    """
    missing_function: dict[str, list[int]] = {}
    """Calls by the name of a function that is not available. Only the request is checked, not what the reply led to."""


class ReplayReport(msgspec.Struct):
    """Result of a replay."""

    agent_id: str
    checked: int = 0
    """Number of projections, or of requests, that were compared."""
    faults: list[str] = []
    """Faults in words. Mismatches that repeat an earlier one are counted with that one."""
    notes: list[str] = []
    """Checks that were not possible, and why."""
    mismatches: list[ReplayMismatch] = []
    """All mismatches."""
    calls: CallVerdicts = msgspec.field(default_factory=CallVerdicts)


MismatchGroup = Sequence[ReplayMismatch]
"""A mismatch, and later ones that repeat it."""

ALIKE_MAX = 10
"""Mismatches of replies, and of decisions, that are listed one by one; further ones count as repeats."""


def groups(mismatches: Sequence[ReplayMismatch]) -> Sequence[MismatchGroup]:
    """Return each new mismatch in a group with those that repeat it."""
    found: list[list[ReplayMismatch]] = []
    last: dict[str, list[ReplayMismatch]] = {}
    count: dict[str, int] = {}
    for mismatch in mismatches:
        what = mismatch.what
        repeats = mismatch.difference is None if what == "request" else count.get(what, 0) >= ALIKE_MAX
        if repeats and what in last:
            last[what].append(mismatch)
            continue
        count[what] = count.get(what, 0) + 1
        last[what] = [mismatch]
        found.append(last[what])
    return found


def headline(group: MismatchGroup) -> str:
    """Describe a group in one line."""
    if len(group) == 1:
        return str(group[0])
    again = span([mismatch.seq for mismatch in group[1:]])
    return f"{group[0]}; the same again later: {again}"


def span(seqs: Sequence[int]) -> str:
    """Describe seqs as people read them: `seq 7`, or the number of seqs and their range."""
    return f"seq {seqs[0]}" if len(seqs) == 1 else f"{len(seqs):,} calls, seq {seqs[0]} to {seqs[-1]}"
