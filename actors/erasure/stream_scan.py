"""Pass over one stream for an erasure: first to select, then to find what says the same.

Used by `erasure_plan.py`. The first pass runs over the stream that the erasure names, and collects the words to look
for; the second one runs over that stream again and over every stream that may repeat them. Records that a fork shares
with its parent are the parent's: they are never planned in the fork.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from everlog.actors.erasure.derivation import CauseTracker, WordSource, is_bare
from everlog.actors.erasure.record_words import SoughtWords, payload_of
from everlog.actors.erasure.selection import Selection, Selector
from everlog.events import (
    AgentConfigured,
    AgentCreated,
    AgentDeleted,
    ArchivalDeleted,
    ArchivalInserted,
    BlockRemoved,
    DocumentRemoved,
    FunctionResult,
    MemoryEdited,
    Record,
    RecordsErased,
    SourceAttached,
    TurnsHidden,
    is_erased,
)
from everlog.events.times import moment
from everlog.store import LogReader, stream_of, stream_of_block
from everlog.store.sealed.erasure import CONNECTING_KINDS

_TEXT_CHARS = 200
"""Most characters of a record that a plan shows."""


class PlannedRecord(msgspec.Struct, frozen=True):
    """A record that an erasure takes, or that says the same and stays."""

    stream: str
    """Name of the agent; `block:NAME` or `source:NAME` for a shared block and for documents."""
    seq: int
    type: str
    recorded_at: int
    """Microseconds UTC."""
    why: str
    """Reason, in words: `selected`, `caused by 12`, `says the words of sam 12`."""
    derived: bool
    """True if the record was not selected, but followed from a record that was."""
    text: str
    """Its first words."""

    @property
    def time(self) -> datetime:
        """Time at which it was recorded, UTC."""
        return moment(self.recorded_at)


class Marked(NamedTuple):
    """Reason why a record is taken, and if it is taken only because it followed from another one."""

    why: str
    derived: bool

    @property
    def by_words(self) -> bool:
        """True if the record is taken for its words alone, so that the rest of its turn need not follow."""
        return self.derived and not self.why.startswith("caused")


class Identity:
    """Records of one stream that say what the agent is: its blocks, its configuration, and what was undone."""

    def __init__(self) -> None:
        self.blocks: dict[str, list[tuple[int, str]]] = defaultdict(list)
        """By label: seq and type of each change of the block."""
        self.configured: list[int] = []
        self.created: list[int] = []
        self.undone: list[tuple[int, str, int]] = []
        """Seq and type of a record that takes something back, and the seq of what it took back; 0 if not known."""
        self._memories: dict[str, int] = {}

    def note(self, record: Record, payload: Mapping[str, Any]) -> None:
        """Pass over a record that has its content."""
        if record.type in (MemoryEdited.kind, BlockRemoved.kind):
            self.blocks[payload["label"]].append((record.seq, record.type))
        elif record.type == AgentConfigured.kind:
            self.configured.append(record.seq)
        elif record.type == AgentCreated.kind:
            self.created.append(record.seq)
            self.blocks.clear()
            self.configured.clear()
        elif record.type == AgentDeleted.kind:
            self.blocks.clear()
            self.configured.clear()
            self.created.clear()
            self.undone.clear()
        elif record.type == ArchivalInserted.kind:
            self._memories[record.event_id] = record.seq
        elif record.type == ArchivalDeleted.kind:
            # A memory whose insert was erased cannot come back.
            if (stored := self._memories.get(payload["memory_id"])) is not None:
                self.undone.append((record.seq, record.type, stored))
        elif record.type in (DocumentRemoved.kind, TurnsHidden.kind):
            self.undone.append((record.seq, record.type, 0))


class StreamScan(msgspec.Struct):
    """Outcome of a pass over one stream."""

    stream: str
    own_from: int
    """First seq that is the stream's own: 1, or the one after the fork point."""
    marked: dict[int, Marked] = {}
    """Reasons by seq, also of records that a fork shares with its parent."""
    records: list[PlannedRecord] = []
    bare: list[PlannedRecord] = []
    """Records without words that followed: the results of calls that are only done."""
    blank: set[int] = set()
    """Seqs of records that hold no content: tombstones, and those that connect partitions and forks."""
    above: list[int] = []
    """Seqs that were selected, but are records of an ancestor."""
    linked: set[str] = set()
    """Streams of the shared blocks that the agent copied, and of the sources that it can search."""
    identity: Identity = msgspec.field(default_factory=Identity)
    kinds: set[str] = set()
    """Kinds of its records, tombstones too."""


def select(
    reader: LogReader, stream: str, own_from: int, selection: Selection, source: WordSource
) -> tuple[dict[int, Marked], list[int]]:
    """Return the selected records of a stream with those that they caused, and the selected ones of an ancestor.

    The words to look for are collected in `source`. Records that an earlier erasure named and that still have their
    content are selected too: it was interrupted.
    """
    selector, causes = Selector(selection), CauseTracker()
    marked: dict[int, Marked] = {}
    above: list[int] = []
    whole: list[int] = []
    for record in _with_content(reader, stream):
        payload = payload_of(record)
        why = selector.why(record, payload)
        if record.seq < own_from:
            if why is not None and why != "selected":
                above.append(record.seq)
            source.keep(record, payload)
            continue
        whole.append(record.seq)
        cause = causes.cause_of(record, payload)
        if why is None and not cause:
            source.keep(record, payload)
            if record.type == RecordsErased.kind:
                marked.update(_unfinished(record, payload, whole))
            continue
        causes.take(record, payload)
        source.take(record, payload, caused=why is None, whole=Selector.is_whole(why))
        marked[record.seq] = Marked(why or f"caused by {cause}", why is None)
    return marked, above


def _unfinished(record: Record, payload: Mapping[str, Any], whole: Sequence[int]) -> Iterator[tuple[int, Marked]]:
    """Yield the records that an erasure names and that still have their content."""
    for seq in whole:
        if payload["from_seq"] <= seq <= min(payload["to_seq"], record.seq - 1):
            yield seq, Marked(f"the erasure at {record.seq} was interrupted", derived=False)


def scan(
    reader: LogReader,
    stream: str,
    own_from: int,
    marked: Mapping[int, Marked],
    sought: SoughtWords,
    *,
    since: AbstractSet[str] | None = None,
) -> StreamScan:
    """Find the records of a stream that say the same as those that are `marked`, or followed from them.

    `since`: streams of shared blocks and sources; only records from the first copy of one of them on, or from the first
    that is marked on, can have followed. None: all records.
    """
    found = StreamScan(stream, own_from, dict(marked))
    causes = CauseTracker()
    active = since is None
    for record in _with_content(reader, stream, found.blank, found.kinds):
        payload = payload_of(record)
        found.identity.note(record, payload)
        origin = _linked(record, payload, found)
        mark = found.marked.get(record.seq)
        active = active or mark is not None or (since is not None and origin in since)
        if mark is None and active and record.seq >= own_from and record.type != RecordsErased.kind:
            mark = _followed(record, payload, causes, sought)
        if mark is None:
            continue
        causes.take(record, payload, by_words=mark.by_words)
        found.marked[record.seq] = mark
        if record.seq >= own_from:
            (found.bare if mark.derived and is_bare(record) else found.records).append(
                PlannedRecord(
                    stream, record.seq, record.type, record.recorded_at, mark.why, mark.derived,
                    _first_words(record, payload),
                )
            )  # fmt: skip
    return found


def _first_words(record: Record, payload: Mapping[str, Any]) -> str:
    label = payload.get("label") or payload.get("document") or ""
    text = record.text or (f"{payload.get('name')}: done" if record.type == FunctionResult.kind else "")
    return " ".join(f"{label}: {text}".split() if label else text.split())[:_TEXT_CHARS]


def _followed(record: Record, payload: Mapping[str, Any], causes: CauseTracker, sought: SoughtWords) -> Marked | None:
    if cause := causes.cause_of(record, payload):
        return Marked(f"caused by {cause}", derived=True)
    why = sought.found_in(record, payload)
    return None if why is None else Marked(why, derived=True)


def _linked(record: Record, payload: Mapping[str, Any], found: StreamScan) -> str:
    """Note the shared block or the source that a record brings to the agent. Return its stream; empty for none."""
    if record.type == MemoryEdited.kind and payload.get("origin"):
        origin = stream_of_block(payload["origin"])
    elif record.type == SourceAttached.kind:
        origin = stream_of(payload["source"])
    else:
        return ""
    found.linked.add(origin)
    return origin


def _with_content(
    reader: LogReader, stream: str, blank: set[int] | None = None, kinds: set[str] | None = None
) -> Iterator[Record]:
    """Yield the records of a stream that have content; the seqs of the others go into `blank`, all kinds into
    `kinds`.
    """
    for record in reader.read(stream):
        if kinds is not None:
            kinds.add(record.type)
        if is_erased(record.payload) or record.type in CONNECTING_KINDS:
            if blank is not None:
                blank.add(record.seq)
        else:
            yield record
