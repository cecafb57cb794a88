"""What a replay found: plain values, for people and for machines. Pure."""

from collections.abc import Sequence
from typing import Literal

import msgspec


class Difference(msgspec.Struct, frozen=True):
    """The first part of a request that is another today than it was."""

    part: str
    """In words, as `the memory block 'human'`; empty where the log does not say which part it is."""
    also: list[str] = []
    """The other parts that differ, in words."""
    against: str = ""
    """What today's words are compared with, in words."""
    lines: list[str] = []
    """What differs, line by line: `- ` what it is compared with, `+ ` today, `  ` a remark."""


class Mismatch(msgspec.Struct, frozen=True):
    """A record that is not what today's code makes of the log before it."""

    seq: int
    type: str
    turn: int
    what: Literal["request", "reply", "decision"]
    """The bytes that were sent; what a reply led to; what was done about a context that did not fit."""
    text: str
    difference: Difference | None = None
    """Of a request, where no mismatch before has the same one."""

    def __str__(self) -> str:
        return f"seq {self.seq} ({self.type}, turn {self.turn}): {self.text}"


class Checked(msgspec.Struct):
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
    missing_function: dict[str, list[int]] = {}
    """By function: the request was checked, and what the reply led to was not, for this everlog was not given it."""


class Report(msgspec.Struct):
    """What a replay found."""

    agent_id: str
    checked: int = 0
    """Projections compared, or requests."""
    faults: list[str] = []
    """What is wrong, in words; mismatches that are the same again are counted with the first of them."""
    notes: list[str] = []
    """What could not be checked, and why."""
    mismatches: list[Mismatch] = []
    """Every one of them."""
    calls: Checked = msgspec.field(default_factory=Checked)


def told(mismatches: Sequence[Mismatch]) -> list[str]:
    """Mismatches in words: each that is new, and how many after it are the same again."""
    groups: list[list[Mismatch]] = []
    for mismatch in mismatches:
        if mismatch.what == "request" and mismatch.difference is None and groups and groups[-1][0].what == "request":
            groups[-1].append(mismatch)
        else:
            groups.append([mismatch])
    return [_group(group) for group in groups]


def _group(group: Sequence[Mismatch]) -> str:
    first = str(group[0])
    if group[0].difference is not None:
        first = "\n".join([first, *_lines(group[0].difference)])
    if len(group) == 1:
        return first
    return f"{first}\nThe same again in {len(group) - 1:,} later ones, from seq {group[1].seq} to {group[-1].seq}."


def _lines(difference: Difference) -> list[str]:
    also = [f"Different as well: {', '.join(difference.also)}."] if difference.also else []
    against = [f"Today's words (+) against {difference.against} (-):"] if difference.against else []
    return [*also, *against, *difference.lines]


def span(seqs: Sequence[int]) -> str:
    """Seqs as people read them: `seq 7`, or how many, from where to where."""
    return f"seq {seqs[0]}" if len(seqs) == 1 else f"{len(seqs):,} calls, seq {seqs[0]} to {seqs[-1]}"
