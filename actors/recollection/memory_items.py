"""Memories of one agent as plain values: rows of the projection `memories`, and the choice among them. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from everlog.actors.models.daily_usage import BYTES_PER_TOKEN
from everlog.actors.prompt.message_format import format_time
from everlog.events import BadInput
from everlog.events.times import moment

MemoryKind = Literal["message", "archival", "insight", "fact", "plan"]
"""Kinds of memories: messages and stored texts, and what was derived from them."""
KINDS: Sequence[MemoryKind] = get_args(MemoryKind)


class MemoryItem(msgspec.Struct, frozen=True):
    """One memory of an agent: something said, stored or derived."""

    seq: int
    kind: MemoryKind
    at: int = msgspec.field(name="time")
    """Time at which it was said or noted, microseconds UTC."""
    role: str
    """`user`, `assistant`, `archival` or `derived`."""
    name: str
    """Name of the speaker, or subject of a fact; empty if there is none."""
    text: str
    importance: int
    """From 1 to 10."""
    sources: Sequence[int] = ()
    """Seqs of the records that it rests on, ascending."""
    depth: int = 0
    outdated: bool = False
    """True if it rests on a fact that has ended, or is one."""
    deriver: str = ""
    part: int = 0
    """Number of the item of a plan, from 0; 0 for other memories."""

    @property
    def time(self) -> datetime:
        """Time at which it was said or noted, UTC."""
        return moment(self.at)

    @property
    def key(self) -> tuple[int, int]:
        """Seq and part, which name the memory."""
        return self.seq, self.part


def items_of(rows: Iterable[Mapping[str, Any]]) -> list[MemoryItem]:
    """Return rows of the projection `memories` as items, in the order of their times, then of their seqs."""
    items = (msgspec.convert(row, MemoryItem, strict=False) for row in rows)
    return sorted(items, key=lambda item: (item.at, item.seq, item.part))


def check_kinds(kinds: Collection[str] | None) -> None:
    """Raise BadInput for a kind that there is not."""
    if unknown := sorted(set(kinds or ()) - set(KINDS)):
        raise BadInput(f"There is no kind of memories {unknown[0]!r}. Kinds are: {', '.join(KINDS)}.")


def of_kinds(items: Iterable[MemoryItem], kinds: Collection[str] | None) -> list[MemoryItem]:
    """Return the items of these kinds, in their order; None: all. Raise BadInput for an unknown kind."""
    check_kinds(kinds)
    return [item for item in items if kinds is None or item.kind in kinds]


def about(items: Iterable[MemoryItem], names: Collection[str], seqs: Collection[int]) -> list[MemoryItem]:
    """Return the items of an entity: those at `seqs`, and those whose text has one of its names as whole words, in any
    case.
    """
    named = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(names)))})(?!\w)", re.IGNORECASE) if names else None
    return [item for item in items if item.seq in seqs or (named is not None and named.search(item.text))]


def tokens(text: str) -> int:
    """Return the estimated tokens of a text, rounded up: `BYTES_PER_TOKEN` bytes of UTF-8 are one."""
    return -(-size(text) // BYTES_PER_TOKEN)


def size(text: str) -> int:
    """Return the bytes of a text in UTF-8. A lone surrogate counts as three."""
    return len(text.encode("utf-8", "surrogatepass"))


def line_of(item: MemoryItem, zone: str = "UTC") -> str:
    """Return an item in one paragraph: its time in the zone, who said it or its kind, and its text."""
    who = item.name or item.role if item.kind == "message" else item.kind
    return f"[{format_time(item.at, zone)}] {who}{' (outdated)' * item.outdated}: {item.text}"
