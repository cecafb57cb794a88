"""What a replay found: plain values, for people and for machines. Pure."""

from collections.abc import Sequence
from typing import Literal

import msgspec


class RequestDiff(msgspec.Struct, frozen=True):
    """The first part of a request that is another today than it was."""

    part: str
    """In words, as `the memory block 'human'`."""
    also: list[str] = []
    """The other parts that differ, in words."""
    against: str = ""
    """What today's words are compared with, in words."""
    lines: list[str] = []
    """What differs, line by line: `- ` what it is compared with, `+ ` today, `  ` a remark."""


class ReplayMismatch(msgspec.Struct, frozen=True):
    """A record that is not what today's code makes of the log before it."""

    seq: int
    type: str
    turn: int
    what: Literal["request", "reply", "decision"]
    """The bytes that were sent; what a reply led to; what was done about a context that did not fit."""
    text: str
    difference: RequestDiff | None = None
    """Of a request, where no mismatch before has the same one."""

    def __str__(self) -> str:
        return f"seq {self.seq} ({self.type}, turn {self.turn}): {self.text}"


class CallVerdicts(msgspec.Struct):
    """The model calls of an agent, each by its seq in the list of what became of it."""

    calls: int = 0
    """All that the log has, erased ones included."""
    chosen: int = 0
    """Those that were to be checked: all, or a sample."""
    equal: list[int] = []
    mismatch: list[int] = []
    erased: list[int] = []
    """Records were erased that they were made of, or that they left, or they themselves."""
    renderer_gone: dict[int, list[int]] = {}
    """By the renderer that made them, which this everlog does not have."""
    reader_gone: dict[int, list[int]] = {}
    """By the reader that read their replies, which this everlog does not have: the request was checked."""
    missing_function: dict[str, list[int]] = {}
    """By function: the request was checked, and what the reply led to was not, for this everlog was not given it."""


class ReplayReport(msgspec.Struct):
    """What a replay found."""

    agent_id: str
    checked: int = 0
    """Projections compared, or requests."""
    faults: list[str] = []
    """What is wrong, in words; mismatches that are the same again are counted with the first of them."""
    notes: list[str] = []
    """What could not be checked, and why."""
    mismatches: list[ReplayMismatch] = []
    """Every one of them."""
    calls: CallVerdicts = msgspec.field(default_factory=CallVerdicts)


MismatchGroup = Sequence[ReplayMismatch]
"""Mismatches in a row that are the same again."""

ALIKE_MAX = 10
"""Of what leads to something else, or would be decided otherwise, so many are told one by one."""


def groups(mismatches: Sequence[ReplayMismatch]) -> Sequence[MismatchGroup]:
    """Each mismatch that is new, with those that only repeat it."""
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
    """A group in one line."""
    if len(group) == 1:
        return str(group[0])
    again = span([mismatch.seq for mismatch in group[1:]])
    return f"{group[0]}; the same again later: {again}"


def span(seqs: Sequence[int]) -> str:
    """Seqs as people read them: `seq 7`, or how many, from where to where."""
    return f"seq {seqs[0]}" if len(seqs) == 1 else f"{len(seqs):,} calls, seq {seqs[0]} to {seqs[-1]}"
