"""Exports, restores, imports, data sets, differences and erasures, as they go over HTTP."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from everlog.actors.agent.conversation_import import ImportLine

SpanOfSeqs = Annotated[list[Annotated[int, msgspec.Meta(ge=1, le=2**53)]], msgspec.Meta(min_length=2, max_length=2)]
ErasedWords = Annotated[list[str], msgspec.Meta(max_length=100)]


class ExportQuery(msgspec.Struct, frozen=True):
    """Contents of an export."""

    with_sources: bool = False
    """True: the documents that the agent can search, too."""


class RestoredRow(msgspec.Struct, frozen=True, kw_only=True):
    """One stream of a restored export."""

    stream: str
    """Name of an agent, or of a source after `source:`."""
    from_seq: int
    to_seq: int
    chain: str
    parent: str | None
    parent_seq: int | None
    erased: int
    restored: int
    """Records that were written; the others were there already."""
    ended: bool
    """True: an ancestor that was restored for its fork only, and is marked as deleted."""


class RestoredShape(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a restore."""

    agent: str
    streams: Sequence[RestoredRow]
    revived: str | None
    """Agent as which one that was deleted here came back; null: none did."""
    erased_since: int = 0
    """Exported records that were erased since the agent was deleted here, which therefore stays deleted."""


class ImportBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A past conversation."""

    messages: Annotated[list[ImportLine], msgspec.Meta(min_length=1, max_length=100_000)]
    """In the order of the conversation; `time` in ISO 8601, UTC without a zone."""


class ImportedShape(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of an import."""

    agent: str
    messages: int
    summaries: int
    """Summaries that were written, because the context would have been too long."""
    delayed: str | None
    """Error for which summaries are made before the next reply instead; null: none."""


class DatasetQuery(msgspec.Struct, frozen=True):
    """Choice of lines."""

    view: Literal["people", "models"] = "people"
    """`people`: what user and agent said; `models`: each recorded request with its reply."""
    turns: Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None = None
    """A line for each so many messages of the user; left out: one line. Of the view `people` only."""
    since: str | None = None
    """Time with a zone."""
    until: str | None = None
    """Time with a zone, inclusive."""


class DiffQuery(msgspec.Struct, frozen=True):
    """Two moments of an agent."""

    before: str
    """Seq, or time with a zone."""
    after: str | None = None
    """Seq, or time with a zone; left out: now."""


class DiffShape(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between two moments of an agent, as `everlog diff --json` prints them."""

    agent: str
    same: bool
    """True if nothing is different."""
    events: int
    turns: int
    difference: Mapping[str, Any]


class EraseBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Records whose content is erased for good; the kinds of selection add up."""

    everything: bool = False
    seqs: Annotated[list[SpanOfSeqs], msgspec.Meta(max_length=1000)] = []
    """Ranges: first and last seq, inclusive."""
    match: ErasedWords = []
    """Each record that says one of these texts."""
    turns: Annotated[list[Annotated[int, msgspec.Meta(ge=1, le=2**53)]], msgspec.Meta(max_length=1000)] = []
    persons: ErasedWords = []
    """Messages of these users, and what the agent said to them."""
    derived: bool = False
    """True: records that say the same, too."""


class ErasurePlanShape(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of an erasure."""

    agent: str
    records: Sequence[Mapping[str, Any]]
    """`stream`, `seq`, `type`, `recorded_at`, `why`, `derived` and `text` of each record that goes."""
    left: Sequence[Mapping[str, Any]]
    """Records that would still say the same."""
    spans: Mapping[str, Sequence[SpanOfSeqs]]
    """Ranges of seqs that go, both ends inclusive, by stream."""
    losses: Sequence[str]
    """Sentences: what the agents lose by it."""
    forks: Sequence[str]
    """Forks that read no longer what is erased."""
    ancestor_seqs: Sequence[int]
    """Selected records of an ancestor, which can only be erased there."""
    unsought: bool
    """True: there are more words than can be looked for, so other records may say the same unnoticed."""
